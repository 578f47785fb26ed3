"""What every part measures with: places, peers, sizes, and a way to run a contender.

Law: a contender runs in a process and a folder of its own; one that fails is a figure that says why, and the others
go on. Touches: processes, scratch folders, standard error for progress.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tools.benchmark.machine import Place
from tools.benchmark.order import Order, Outcome, parse
from tools.benchmark.peers import PINS, Peers

CHECKOUT = Path(__file__).resolve().parents[2]
OURS = ("spoold", "executor", "sketch")
# Filling a backlog, starting and cleaning up come on top of the drain itself.
BESIDES_S, FILL_RATE = 120.0, 1500.0
LEAVE_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How large and how often. rounds: by backlog; elsewhere: at most so many in any place but the first.

    peer_bound_s, bound_s: when a drain is cut off, of a peer and of ourselves (s); samples: of latencies; seconds: of
    idling; waiting: the backlogs behind a leader that is killed; graph: the size of the DAGs.
    """

    name: str
    rounds: Mapping[int, int]
    elsewhere: int
    peer_bound_s: float
    bound_s: float
    samples: int
    seconds: float
    waiting: tuple[int, ...]
    graph: int

    @property
    def depths(self) -> tuple[int, ...]:
        """The backlogs, least first."""
        return tuple(sorted(self.rounds))

    def limited(self, rounds: int | None, deepest: int | None) -> Scale:
        """The same with at most so many rounds, and no backlog above this one; the least always stays."""
        most = rounds or max(self.rounds.values())
        cap = max(deepest or self.depths[-1], self.depths[0])
        kept = {tasks: min(times, most) for tasks, times in self.rounds.items() if tasks <= cap}
        waiting = tuple(tasks for tasks in self.waiting if tasks <= cap)
        return replace(self, rounds=kept, waiting=waiting or self.waiting[:1])


QUICK_ROUNDS = {1000: 3, 10_000: 2}
FULL_ROUNDS = {1000: 5, 10_000: 3, 100_000: 2, 1_000_000: 1}
FULL_WAITING = (100, 10_000, 100_000, 1_000_000)
SCALES = {
    "tiny": Scale("tiny", {40: 1}, 1, 5, 20, 3, 2, (200,), 60),
    "quick": Scale("quick", QUICK_ROUNDS, 1, 4, 40, 60, 15, (100, 10_000), 1000),
    "full": Scale("full", FULL_ROUNDS, 3, 10, 400, 300, 60, FULL_WAITING, 10_000),
}
# Filling a million files takes each peer minutes: once is enough, and where files are cheapest.
ONLY_LAST_PLACE = 1_000_000


@dataclass(frozen=True, slots=True)
class Bench:
    """One call of tools/bench."""

    scale: Scale
    places: tuple[Place, ...]
    peers: Peers

    @property
    def disk(self) -> Place:
        """The first place: the disk behind TMPDIR, or the one that was chosen."""
        return self.places[0]

    def run(self, contender: str, place: Place, order: Order) -> Outcome:
        """Have one contender carry out an order (its folder is given here). What goes wrong is in `missing`."""
        if contender in self.peers.missing:
            return Outcome(missing=self.peers.missing[contender])
        python = self.peers.python if contender in PINS else sys.executable
        limit = BESIDES_S + order.bound_s + order.tasks / FILL_RATE
        with place.scratch() as folder:
            command = [python, "-P", "-m", f"tools.benchmark.contenders.{contender}"]
            command.append(json.dumps(asdict(replace(order, folder=folder))))
            environ = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environ,
                start_new_session=True,
                cwd=folder,
            )
            try:
                said, complained = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                _end(process)
                return Outcome(missing=f"it did not come to an end within {limit:.0f} s")
            except BaseException:
                _end(process)
                raise
        try:
            return parse(said.decode())
        except ValueError:
            return Outcome(missing=complained.decode(errors="replace").strip()[-300:] or f"{process.returncode=}")

    def rounds(self, place: Place, tasks: int) -> int:
        """How often a backlog is drained in a place."""
        if tasks >= ONLY_LAST_PLACE and place != self.places[-1]:
            return 0
        wanted = self.scale.rounds[tasks]
        return wanted if place == self.places[0] else min(wanted, self.scale.elsewhere)

    def has(self, program: str) -> bool:
        """Whether a program of the system can be used."""
        return program not in self.peers.missing and shutil.which(program) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to leave and take along what it started; then insist."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=LEAVE_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def tell(sentence: str) -> None:
    """Progress, for whoever waits."""
    print(f"tools/bench: {sentence}", file=sys.stderr, flush=True)
