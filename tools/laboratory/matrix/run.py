"""The whole matrix: one lab per protocol, some of them at once, and a line for each cell as it ends.

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
    _labs: list[Lab] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _printing: threading.Lock = field(default_factory=threading.Lock)

    def run(self, jobs: int) -> int:
        """Run it with that many labs at once; returns the exit status."""
        began = time.monotonic()
        todo: queue.SimpleQueue[str] = queue.SimpleQueue()
        for protocol in reversed(self.protocols):  # SMB, the slowest by far, is the last of them: the longest first
            todo.put(protocol)
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
        return 1 if failed or not self.cells else 0

    def _work(self, todo: queue.SimpleQueue[str]) -> None:
        """One lab after the other."""
        while not self._over.is_set():
            try:
                protocol = todo.get_nowait()
            except queue.Empty:
                return
            lab = Lab(f"{self.name}-{protocol}", PROTOCOLS[protocol], LAPTOPS)
            self._labs.append(lab)
            faults = list(cells_of(protocol, self.faults))
            try:
                lab.up()
                while faults and not self._over.is_set():
                    self._tell(self._play(lab, faults[0]))
                    faults.pop(0)
            except (Exception, SystemExit) as error:  # noqa: BLE001  a lab that breaks fails its cells, not the others
                for fault in faults if not self._over.is_set() else ():
                    verdict = Verdict(problems=[f"the lab broke: {type(error).__name__}: {error}"])
                    self._tell(Cell(protocol, fault.name, verdict=verdict))
            finally:
                lab.down()

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
