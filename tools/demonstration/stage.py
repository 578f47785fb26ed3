"""What all demonstrations stand on: the terminal, signals, and the end of everything that was started.

Law: whatever happens, the cluster is stopped and its scratch folder removed. Touches: the terminal, signals.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from rich.console import Console

from spoold import SpoolError
from tools.demonstration.cluster import Cluster, Trouble
from tools.demonstration.proof import Claim

WIDTH = 118
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
C = TypeVar("C", bound=Cluster)


class Interrupted(BaseException):
    """A signal asks us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def interrupt(number: int, frame: FrameType | None) -> None:
    """A signal becomes an exception, so that everything is cleaned up on the way out."""
    del frame
    raise Interrupted(number)


def terminal() -> Console:
    """Standard output: as wide as it is, or wide enough where nobody says; what it cannot encode becomes '?'."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace", line_buffering=True)
    shown = sys.stdout.isatty()
    return Console(force_terminal=shown, width=None if shown else WIDTH, highlight=False, soft_wrap=not shown)


def perform(make: Callable[[], C], play: Callable[[C], bool], *, keep: bool) -> int:
    """Make a cluster and play on it; returns the exit status: 0 if all claims hold, 1 if one does not."""
    for number in SIGNALS:
        # What our caller wants ignored (nohup, a job in the background) stays so.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    cluster: C | None = None
    try:
        cluster = make()
        return 0 if play(cluster) else 1
    except (Trouble, SpoolError, OSError) as error:
        print(f"tools/demo: {error}", file=sys.stderr)
        return 1
    except Interrupted as error:
        print(f"tools/demo: {error}: stopping everything", file=sys.stderr)
        return 128 + error.number
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if cluster is not None:
            cluster.stop(within_s=0.0)
            if keep:
                print(f"kept: {cluster.scratch} (try `spool --spool {cluster.root} status`)")
            else:
                cluster.remove()


def judge(console: Console, claims: list[Claim], took_s: float, what: str) -> bool:
    """Print the claims, and the verdict on what was played; returns whether all of them hold."""
    for claim in claims:
        mark, style = ("ok       ", "green") if claim.holds else ("NOT TRUE ", "bold red")
        console.print(f"{mark} {claim.sentence}", style=style, markup=False)
    good = all(claim.holds for claim in claims)
    verdict = "all claims hold" if good else "NOT ALL CLAIMS HOLD"
    console.print(f"\n{verdict}, after {took_s:.1f} s and {what}", style="bold", markup=False)
    return good


def statuses(ended: dict[str, int]) -> str:
    """How processes ended, in words."""
    return ", ".join(f"{name} ended with {status}" for name, status in ended.items())
