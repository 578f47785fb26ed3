"""tools/bench: the figures, as a table or as JSON.

Law: it measures and does not judge; the exit status is 0 once everything was measured, whatever came out, unless
`--check` asks for 1 where a limit does not hold. 2: the cluster did not come up.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict

from tools.benchmark.cluster import Cluster, Trouble
from tools.benchmark.figures import Figure, idle_cpu, spread, start_latency


def main() -> int:
    """Measure and print; returns the exit status."""
    options = _parse()
    try:
        with Cluster(options.dir) as cluster:
            figures = [
                *start_latency(cluster, options.tasks, options.pause),
                idle_cpu(cluster, options.seconds),
            ]
    except Trouble as trouble:
        print(f"tools/bench: {trouble}", file=sys.stderr)
        return 2
    if options.json:
        machine = {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()}
        print(json.dumps({"machine": machine, "figures": [{**asdict(f), "holds": f.holds} for f in figures]}))
    else:
        _print(figures)
    return 1 if options.check and not all(figure.holds for figure in figures) else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/bench", description="How soon tasks start, and what idling costs.")
    parser.add_argument("--json", action="store_true", help="print JSON, with every sample")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit does not hold")
    parser.add_argument("--dir", metavar="DIR", help="where the spool is made, e.g. on a share; else in TMPDIR")
    parser.add_argument("--tasks", type=int, default=30, metavar="N", help="how many tasks are timed (default: 30)")
    parser.add_argument(
        "--pause", type=float, default=0.3, metavar="S", help="seconds between two of them (default: 0.3)"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, metavar="S", help="how long idling is measured (default: 20)"
    )
    return parser.parse_args()


def _print(figures: list[Figure]) -> None:
    for figure in figures:
        verdict = "holds" if figure.holds else "is over"
        print(f"{figure.name:<17} {figure.value:.3f} {figure.unit:<10} {verdict:<7} < {figure.limit:g}", end="   ")
        print(f"samples {spread(figure.samples)}")
    print()
    for figure in figures:
        print(f"{figure.name}: {figure.meaning}.")


if __name__ == "__main__":
    sys.exit(main())
