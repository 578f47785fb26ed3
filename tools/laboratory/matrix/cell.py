"""One cell of the matrix: a fresh spool, tasks, one fault, and the judgement.

Law: bounded in time; whatever happens, the lab is clean afterwards; what a failed cell saw is kept in a folder.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools.laboratory.channel import Failed
from tools.laboratory.guests import wait_until
from tools.laboratory.lab import Lab
from tools.laboratory.matrix import exclusion
from tools.laboratory.matrix.faults import Fault
from tools.laboratory.matrix.ledger import Ledger, Verdict, judge
from tools.laboratory.matrix.pool import Pool
from tools.laboratory.matrix.told import Unproven
from tools.laboratory.matrix.trace import Execution
from tools.laboratory.matrix.workload import Workload, short

TASKS = 2000
FAULT_BOUND_S = 180.0
PER_TASK_S = 0.9
# TCP sends again after twice as long each time: a client that was cut off for 52 s is next heard after 103.
RECONNECTED_S = 100.0


@dataclass(slots=True)
class Cell:
    """What one cell came to. seconds: all of it, with starting and cleaning up."""

    protocol: str
    fault: str
    faults: int = 0
    notes: str = ""
    seconds: float = 0.0
    verdict: Verdict = field(default_factory=Verdict)
    evidence: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.verdict.problems

    def plain(self) -> dict[str, Any]:
        """For programs."""
        return {**asdict(self), "passed": self.passed}


def play(lab: Lab, fault: Fault, evidence: Path, tasks: int = TASKS) -> Cell:
    """One cell from beginning to end. Never raises for what the lab or spoold did: that is the cell's failure."""
    cell = Cell(lab.protocol.name, fault.name)
    pool = Pool(lab, fault.name, fault.user, fault.leader)
    began = time.monotonic()
    plain = fault.name == "plain"
    workload = short(tasks) if plain else fault.workload()
    seen: Ledger | None = None
    kernels: dict[str, str] = {}
    try:
        if fault.cloned:
            lab.clone(fault.cloned, boot=fault.resumed)
        pool.make("" if plain else fault.settings)
        pool.start_all()
        pool.submit(workload.batch)
        workload.expect(fault.more())
        told = fault.inflict(pool)
        cell.faults, cell.notes = told.faults, told.notes
        bound_s = FAULT_BOUND_S + fault.lasts_s * 2 + PER_TASK_S * tasks * plain
        _wait(pool, workload, began + bound_s - time.monotonic())
    except (Failed, Unproven, TimeoutError, RuntimeError, OSError, ValueError) as error:
        cell.verdict.problems.append(f"{type(error).__name__}: {error}")
        kernels = _kernels(pool)
    try:
        problems = cell.verdict.problems
        problems += _audit(pool)
        seen = _gather(pool, workload)
        cell.verdict = judge(seen, fault.overlap_s, unbroken=fault.unbroken)
        cell.verdict.problems[:0] = problems
        if fault.fences and not problems and not cell.verdict.fenced:
            cell.verdict.problems.append("no attempt was taken from a worker, so nothing was shown")
    except (Failed, TimeoutError, RuntimeError, OSError, ValueError) as error:
        cell.verdict.problems.append(f"{type(error).__name__}: {error}")
    cell.seconds = time.monotonic() - began
    if not cell.passed:
        cell.evidence = str(evidence / f"{cell.protocol}-{cell.fault}")
        _keep(pool, cell, seen, kernels, Path(cell.evidence))
    pool.clean()
    return cell


def _wait(pool: Pool, workload: Workload, within_s: float) -> None:
    """Wait until all tasks have completed. Errors: TimeoutError that says how many have."""
    done = 0

    def all_done() -> bool:
        nonlocal done
        # A server that has just come back may still be busy with its disk.
        with contextlib.suppress(Failed):
            done = pool.completed()
        return done >= workload.tasks

    try:
        wait_until("all tasks complete", all_done, max(10.0, within_s), every_s=0.5)
    except TimeoutError:
        raise TimeoutError(f"{done} of {workload.tasks} tasks had completed when the time was over") from None


def _audit(pool: Pool) -> list[str]:
    """Stop all nodes, then ask `spool fsck`."""
    for laptop in pool.lab.laptops:
        pool.lab.guests[laptop].thaw()
        pool.lab.network.heal(laptop)
    problems = []
    # A node in a call that the share has not answered cannot leave.
    if away := [laptop for laptop in pool.lab.laptops if not pool.mounted(laptop, RECONNECTED_S)]:
        problems.append(f"not connected again within {RECONNECTED_S:g} s: {', '.join(away)}")
    try:
        pool.stop_all()
    except TimeoutError as error:
        problems.append(str(error))
    audit = pool.spool("laptop2", "fsck", check=False, timeout=120)
    if audit.code:
        problems.append(f"spool fsck: {(audit.out or audit.err).strip()}")
    return problems


def _gather(pool: Pool, workload: Workload) -> Ledger:
    told = pool.witness()
    executions: list[Execution] = list(pool.kept)
    for laptop in pool.lab.laptops:
        executions += pool.trace(laptop)
    return Ledger(
        parents=workload.parents,
        files=told.files,
        results=told.results,
        commits=told.commits,
        executions=executions,
        blind=frozenset(pool.blind),
        undone=pool.undone,
        stems=workload.stems,
        refused=frozenset(workload.refused),
        exclusion=exclusion.of(workload),
    )


def _kernels(pool: Pool) -> dict[str, str]:
    """While nodes may still wait for what went wrong: where, for each guest that answers."""
    told = {}
    for guest in pool.guests:
        with contextlib.suppress(Failed, TimeoutError, OSError):
            told[guest] = pool.kernel(guest)
    return told


def _keep(pool: Pool, cell: Cell, seen: Ledger | None, kernels: dict[str, str], folder: Path) -> None:
    """Keep what tells why: the verdict, what the ledger was, what nodes and kernels said, and all journals."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cell.json").write_text(json.dumps(cell.plain(), indent=1))
    if seen is not None:
        (folder / "ledger.json").write_text(json.dumps(asdict(seen), indent=1, default=sorted))
    for guest, told in kernels.items():
        (folder / f"{guest}-kernel.txt").write_text(told)
    for guest in pool.guests:
        for role in ("master", "worker"):
            with contextlib.suppress(Failed, OSError):
                if told := pool.log(guest, role):
                    (folder / f"{guest}-{role}.log").write_text(told)
    with contextlib.suppress(Failed, OSError):
        (folder / "events.jsonl").write_text(pool.on_disk("cat events/*.jsonl | sort"))
