"""`netlab test-agents`: its options, what it needs besides the lab, and the lab that it makes and removes."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.laboratory.agents.provider import ACCOUNTS
from tools.laboratory.agents.trial import Trial
from tools.laboratory.lab import Lab
from tools.laboratory.protocols import PROTOCOLS

CLIS = ("opencode", "qwen", "codex", "claude")
NOBODY = "none"
LAPTOPS, DISK_MB, BOUND_S = 3, 4096, 7200
# A guest's kernel maps each page of a process by itself, and opencode has more of them than Linux allows by default.
MAPPINGS = 262_144
_MAPPINGS = Path("/proc/sys/vm/max_map_count")


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    made = verbs.add_parser(
        "test-agents",
        help="real command lines of agents, merges, a power cut, a git server that is away, and a spent quota",
    )
    made.add_argument(
        "clis", type=Path, metavar="FOLDER", help="holds CLI/node_modules/.bin/CLI, as for tests.agents.record"
    )
    made.add_argument("--edits", type=int, default=24, help="in turn by each of the command lines (default: 24)")
    made.add_argument("--slots", type=int, default=3, help="agents at once on each laptop (default: 3)")
    made.add_argument(
        "--cut-at",
        type=int,
        action="append",
        metavar="N",
        help="a laptop loses power when N merges have landed; may be repeated (default: 6)",
    )
    made.add_argument(
        "--away",
        type=float,
        default=60,
        metavar="S",
        help="the git server is away so long, twice (default: 60; 0: not)",
    )
    made.add_argument(
        "--quota",
        choices=(*ACCOUNTS, NOBODY),
        default="codex",
        help="whose account is used up for a while, so that its tasks run as another (default: codex)",
    )
    made.add_argument("--closed", type=float, default=240, metavar="S", help="for how long it is (default: 240)")
    made.add_argument("--memory", type=int, default=3072, metavar="MB", help="of each laptop (default: 3072)")
    made.add_argument("--within", type=float, default=3600, metavar="S", help="give up then (default: 3600)")


def carry_out(options: argparse.Namespace) -> bool:
    """Make a lab, play the trial, remove the lab; whether all claims hold. Errors: SystemExit for what is missing."""
    found = {cli: options.clis.resolve() / cli / "node_modules" / ".bin" for cli in CLIS}
    clis = {cli: folder for cli, folder in found.items() if (folder / cli).exists()}
    for cli in sorted(found.keys() - clis.keys()):
        print(f"not played  {cli}: there is no {found[cli] / cli}")
    if not clis:
        raise SystemExit(f"netlab: no command line of an agent is in {options.clis}")
    if int(_MAPPINGS.read_text()) < MAPPINGS:
        raise SystemExit(
            f"netlab: a process may have {int(_MAPPINGS.read_text()):,} mappings here, and agents in a guest need "
            f"{MAPPINGS:,}: sysctl -w vm.max_map_count={MAPPINGS}"
        )
    scratch = Path(tempfile.mkdtemp(prefix="spoold-agents-"))
    print(f"logs, and a copy of the share in the end: {scratch}", flush=True)
    lab = Lab(options.name, PROTOCOLS["nfs4.2"], LAPTOPS, "", BOUND_S, None, options.memory, DISK_MB)
    lab.up()
    cuts = sorted(options.cut_at or [options.edits // 4])
    try:
        trial = Trial(lab, clis, options.edits, options.slots, cuts, options.within, scratch, _say)
        trial.account = options.quota if options.quota in clis and len(clis) > 1 else ""
        trial.closed_s, trial.away_s = options.closed, options.away
        trial.away_at = [options.edits // 8, options.edits // 2] if options.away else []
        return trial.run()
    finally:
        lab.down()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
