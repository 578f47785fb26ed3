"""The whole matrix: one lab per protocol, some of them at once, and a line for each cell as it ends.

Each protocol has a fair share of the time there is, and begins with another fault than the one before. A fault that
no lab has met yet goes before those that one has, so that a machine too slow for all cells still sees every protocol
and every fault. With another turn each begins further on, so that several runs together play all cells. What was not
played is told, never counted.

Law: whatever ends the run, no lab stays behind.
"""

from __future__ import annotations

import json
import queue
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tools.laboratory.lab import Lab
from tools.laboratory.matrix.cell import TASKS, Cell, play
from tools.laboratory.matrix.faults import FAULTS, Fault
from tools.laboratory.matrix.ledger import Verdict
from tools.laboratory.protocols import PROTOCOLS

LAPTOPS = 3
INTERRUPTED = 130
# With each turn a protocol begins so many faults further on: about as many as a slow machine does not come to.
TURN = 5
SHOWN = 8  # of what is wrong with a cell; all of it is in its evidence
_COLUMNS = "{:<8} {:<21} {:>5} {:>6} {:>4} {:>7} {:>6} {:>6} {:>4} {:>7} {:>5}  {}"
HEAD = _COLUMNS.format(
    "protocol", "fault", "tasks", "faults", "lost", "doubled", "re-run", "fenced", "late", "overlap", "s", ""
)


@dataclass(slots=True)
class Matrix:
    """What is to be run, and what came of it so far."""

    name: str
    protocols: Sequence[str]
    faults: Sequence[str]
    tasks: int = TASKS
    evidence: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "spoold-netlab-evidence")
    cells: list[Cell] = field(default_factory=list)
    within_s: float | None = None
    turn: int = 0
    unplayed: list[str] = field(default_factory=list)
    _labs: list[Lab] = field(default_factory=list)
    _met: set[str] = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)
    _printing: threading.Lock = field(default_factory=threading.Lock)
    _choosing: threading.Lock = field(default_factory=threading.Lock)

    def run(self, jobs: int) -> int:
        """Run it with that many labs at once; returns the exit status."""
        began = time.monotonic()
        todo: queue.SimpleQueue[tuple[str, float | None]] = queue.SimpleQueue()
        ends = shares(len(self.protocols), jobs, began, self.within_s)
        # SMB, the slowest by far, is the last of them: the longest first.
        for protocol, end in zip(reversed(self.protocols), ends, strict=True):
            todo.put((protocol, end))
        _warm()
        print(HEAD, flush=True)
        threads = [threading.Thread(target=self._work, args=(todo,), daemon=True) for _ in range(jobs)]
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            print("netlab: interrupted; taking the labs down", file=sys.stderr, flush=True)
            return INTERRUPTED
        finally:
            self._over.set()
            # Whoever is in a hurry and interrupts once more must not leave half a lab behind.
            now = [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)]
            # A thread may be about to start one more guest; it ends at its next question to one.
            for _ in range(2):
                for lab in self._labs:
                    lab.down()
                for thread in threads:
                    thread.join(30)
            signal.signal(signal.SIGINT, now[0])
            signal.signal(signal.SIGTERM, before)
        failed = sum(not cell.passed for cell in self.cells)
        print(f"{len(self.cells) - failed} passed, {failed} failed, in {time.monotonic() - began:.0f} s", flush=True)
        if self.unplayed:
            print(f"{len(self.unplayed)} not played for want of time: {', '.join(self.unplayed)}", flush=True)
        if unseen := self._unseen():
            print(f"too little was played: nothing of {', '.join(unseen)}", flush=True)
        return 1 if failed or unseen else 0

    def _unseen(self) -> list[str]:
        """What no cell has shown: a machine on which that is so has not passed."""
        shown = {cell.protocol for cell in self.cells} | {cell.fault for cell in self.cells}
        return [name for name in (*self.protocols, *self.faults) if name not in shown]

    def _work(self, todo: queue.SimpleQueue[tuple[str, float | None]]) -> None:
        """One lab after the other."""
        while not self._over.is_set():
            try:
                protocol, end = todo.get_nowait()
            except queue.Empty:
                return
            lab = Lab(f"{self.name}-{protocol}", PROTOCOLS[protocol], LAPTOPS)
            self._labs.append(lab)
            faults = self._order(protocol)
            longest = 0.0
            try:
                lab.up()
                while faults and not self._over.is_set():
                    now = time.monotonic()
                    if end is not None and longest and now + longest > end:
                        self.unplayed += [f"{protocol} {fault.name}" for fault in faults]
                        break
                    fault = self._next(faults)
                    self._tell(self._play(lab, fault))
                    faults.remove(fault)
                    longest = max(longest, time.monotonic() - now)
            except (Exception, SystemExit) as error:  # noqa: BLE001  a lab that breaks fails its cells, not the others
                for fault in faults if not self._over.is_set() else ():
                    verdict = Verdict(problems=[f"the lab broke: {type(error).__name__}: {error}"])
                    self._tell(Cell(protocol, fault.name, verdict=verdict))
            finally:
                lab.down()

    def _order(self, protocol: str) -> list[Fault]:
        """The faults of a protocol. The first is further on for each protocol, and with each turn."""
        faults = list(cells_of(protocol, self.faults))
        cut = list(self.protocols).index(protocol) * len(faults) // len(self.protocols)
        cut = (cut + self.turn * TURN) % max(len(faults), 1)
        return faults[cut:] + faults[:cut]

    def _next(self, faults: Sequence[Fault]) -> Fault:
        """The first that no lab has met; the first at all, where each has been met."""
        with self._choosing:
            fault = next((fault for fault in faults if fault.name not in self._met), faults[0])
            self._met.add(fault.name)
            return fault

    def _play(self, lab: Lab, fault: Fault) -> Cell:
        """One cell; once more if it failed with nothing lost or doubled: then a machine was too slow, or a fault was
        not seen to take place, which says nothing of the product. What failed first is told all the same.
        """
        cell = play(lab, fault, self.evidence, self.tasks)
        if cell.passed or cell.verdict.lost or cell.verdict.doubled or self._over.is_set():
            return cell
        with self._printing:
            print(f"    {cell.protocol} {cell.fault}, once more, since nothing was lost or doubled:", flush=True)
            for problem in cell.verdict.problems[:SHOWN]:
                print(f"        {problem}", flush=True)
        return play(lab, fault, self.evidence, self.tasks)

    def _tell(self, cell: Cell) -> None:
        with self._printing:
            if self._over.is_set():
                return
            self.cells.append(cell)
            print(line_of(cell), flush=True)
            for problem in cell.verdict.problems[:SHOWN]:
                print(f"    {problem}", flush=True)
            if cell.evidence:
                print(f"    evidence: {cell.evidence}", flush=True)

    def write(self, path: Path) -> None:
        """All cells as JSON."""
        path.write_text(json.dumps([cell.plain() for cell in self.cells], indent=1) + "\n")


def shares(protocols: int, jobs: int, now: float, within_s: float | None) -> list[float | None]:
    """When the lab of each protocol is to end, in the order in which they begin. Those of one job share the time; the
    first protocols are the ones that have a job for themselves, if any have.
    """
    if within_s is None:
        return [None] * protocols
    rounds = [number // jobs for number in range(protocols)]
    job = [number % jobs if turn % 2 == 0 else jobs - 1 - number % jobs for number, turn in enumerate(rounds)]
    return [now + within_s * (turn + 1) / job.count(mine) for turn, mine in zip(rounds, job, strict=True)]


def cells_of(protocol: str, names: Iterable[str]) -> Iterable[Fault]:
    """The faults of these names that a protocol can have."""
    return (FAULTS[name] for name in names if protocol in (FAULTS[name].protocols or (protocol,)))


def line_of(cell: Cell) -> str:
    """A cell as a line of the table."""
    verdict = cell.verdict
    return _COLUMNS.format(
        cell.protocol, cell.fault, verdict.tasks, cell.faults, verdict.lost, verdict.doubled, verdict.rerun,
        verdict.fenced, verdict.late, f"{verdict.overlap_s:.1f}", f"{cell.seconds:.0f}",
        " ".join(part for part in ("ok" if cell.passed else "FAILED", cell.notes and f"({cell.notes})") if part),
    )  # fmt: skip


def _warm() -> None:
    """Import all that nodes import, so that byte code lies where the guests read it."""
    import importlib
    import pkgutil

    import spoold

    for module in pkgutil.walk_packages(spoold.__path__, "spoold."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
