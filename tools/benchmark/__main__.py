"""tools/bench: everything that can be measured on one machine, as a table and as JSON.

Law: it measures and does not judge; the exit status is 0 once everything was measured, whatever came out, unless
`--check` asks for 1 where a target does not hold. 2: nothing could be measured as it was asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.benchmark.bench import SCALES, Bench, tell
from tools.benchmark.cluster import Trouble
from tools.benchmark.figure import Figure, joined, summed_up
from tools.benchmark.machine import facts, places
from tools.benchmark.parts import PARTS
from tools.benchmark.peers import PINS, Peers
from tools.benchmark.publish import publish
from tools.benchmark.table import lines, verdict


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; returns the exit status."""
    options = _parse(arguments)
    try:
        machine, figures = _read(options.sources) if options.sources else _measure(options)
    except (Trouble, OSError) as trouble:
        print(f"tools/bench: {trouble}", file=sys.stderr)
        return 2
    figures = summed_up(figures)
    if options.publish:
        publish(machine, figures)
    print("\n".join(lines(figures)))
    print(f"\n{verdict(figures)}")
    return 1 if options.check and any(figure.holds is False for figure in figures) else 0


Record = tuple[dict[str, Any], list[Figure]]


def _read(files: Sequence[str]) -> Record:
    """What earlier calls wrote: all of their figures and places, and the rest of the machine as the last saw it."""
    machine: dict[str, Any] = {}
    figures: list[Figure] = []
    commands: list[str] = []
    measured: dict[str, None] = {}
    for file in files:
        record = json.loads(Path(file).read_text())
        machine = record["machine"]
        commands += machine["commands"]
        measured |= dict.fromkeys(machine["places"])
        figures += [Figure.from_json(found) for found in record["figures"]]
    return {**machine, "commands": commands, "places": list(measured)}, joined(figures)


def _command(options: argparse.Namespace, asked: Sequence[str]) -> str:
    """The call as a reader may repeat it: what to measure, and not where this one wrote it to."""
    words = [] if options.scale == "quick" else [f"--{options.scale}"]
    words += [f"--rounds {options.rounds}"] if options.rounds else []
    words += [f"--deepest {options.deepest}"] if options.deepest else []
    words += [f"--without {name}" for name in options.without]
    return " ".join(["tools/bench", *asked, *words])


def _measure(options: argparse.Namespace) -> Record:
    """Part by part; after each one everything so far is written, so that an interrupted call is not lost."""
    used = places(options.dir)
    peers = Peers(Path(os.environ.get("ENVIRONMENT") or sys.prefix) / "peers")
    scale = SCALES[options.scale].limited(options.rounds, options.deepest)
    if any(PARTS[name].peers for name in options.parts):
        peers.install()
    peers.missing |= dict.fromkeys(options.without, "left out with --without")
    bench, began = Bench(scale, used, peers), time.monotonic()
    asked = [] if options.parts == list(PARTS) else options.parts
    machine = {**facts(used), "commands": [_command(options, asked)]}
    figures: list[Figure] = []
    for name in options.parts:
        tell(f"{name}: {PARTS[name].meaning}")
        figures += PARTS[name].measure(bench)
        machine["seconds"] = round(time.monotonic() - began)
        if options.json:
            record = {"machine": machine, "figures": [figure.as_json() for figure in figures]}
            Path(options.json).write_text(json.dumps(record, indent=1) + "\n")
    return machine, figures


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    told = "\n".join(f"  {name:<9} {part.meaning}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="tools/bench",
        description="How fast spoold is, and its peers beside it.",
        epilog=f"parts:\n{told}\n\nNFS round trips for each task: tools/netlab measure",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these parts; all if none is named")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--full",
        dest="scale",
        action="store_const",
        const="full",
        default="quick",
        help="also backlogs of 100,000 and 1,000,000, and more rounds: hours instead of minutes",
    )
    size.add_argument("--tiny", dest="scale", action="store_const", const="tiny", help="only to see that it works")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=[*PINS, "nq", "sketch"],
        help="leave out a contender, and say so",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="at most N rounds of each race")
    parser.add_argument("--deepest", type=int, metavar="N", help="no backlog above N tasks")
    parser.add_argument("--dir", metavar="DIR", help="measure in this folder; else on TMPDIR's disk and in memory")
    parser.add_argument("--json", metavar="FILE", help="write everything, with every sample")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a target does not hold")
    parser.add_argument("--publish", action="store_true", help="renew docs/benchmarks.md, and its chart")
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        metavar="FILE",
        help="measure nothing, take what --json wrote; may be given again for more of it",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    options.parts = options.parts or list(PARTS)
    return options


if __name__ == "__main__":
    # Asked to leave, it leaves nothing behind: every `with` on the way out removes what it made.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sys.exit(main())
