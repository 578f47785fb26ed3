"""An ended attempt → its result → its commit.

Law: first the log, then the result under the very name that the file of an ended task gets, then the rename that
commits; so a reader of a committed task finds its result. A fenced worker finds its claim gone, and deletes its
result if another node decided the attempt. What waits for a disk or a server goes to several threads at once: each
item is written once, by one of them. Of other workers only listings count, each made at most once for all tasks that
end together.

Touches: threads.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from spoold.protocol import amount, codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import EndedName, EventsName, TaskName, is_node, key, parse_ended, parse_events, parse_task
from spoold.protocol.result import Code, Error, Status, Total, own_reason
from spoold.rules.attempts import attempt_outcome as outcomes
from spoold.rules.attempts import end_conditions, retry_rule
from spoold.rules.attempts.attempt_costs import plus
from spoold.rules.attempts.attempt_outcome import Outcome
from spoold.rules.attempts.durations import Lately
from spoold.rules.attempts.reported_figures import CHANGED, Touched, common, figures_in, touched_in
from spoold.rules.attempts.retry_rule import in_vain
from spoold.rules.attempts.task_policy import RetryPolicy, retry_policy
from spoold.rules.workers import matching
from spoold.runner.job import Ending
from spoold.store import heartbeats
from spoold.store.approval_answers import replies
from spoold.store.attempt_records import Ledger, read_record, set_aside, write_record
from spoold.store.contained_faults import Handling
from spoold.store.existence import names_in
from spoold.store.journal import Journal
from spoold.store.mover import Fate
from spoold.store.path_conflicts import why_unwritten
from spoold.store.step_timing import Slice
from spoold.store.store import Store, stamp
from spoold.system.errnos import Fault, fault_of
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.attempt_output import Logs, Output, output_of
from spoold.worker.attempts.worker_limits import Allowance

# The conclusion about an ended attempt, and its record: the fields of its result, with the sum over all attempts.


_SUMMED = ("duration_s", "cpu_s", "tokens_used", "cost_usd")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion about an ended attempt: its outcome, the decision of the retry rule, and its output.

    before: the total of the attempts before it; summed: whether that could be read; overlaps: which other attempts
    changed the same files at the same time.
    """

    outcome: Outcome
    decision: retry_rule.Again | retry_rule.End
    output: Output
    before: Total | None = None
    summed: bool = True
    overlaps: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class Spent:
    """The total of the attempts that this worker has committed since it started. Times in seconds."""

    attempts: int = 0
    duration_s: float = 0.0
    cpu_s: float = 0.0
    tokens_used: float = 0
    cost_usd: float = 0

    def add(self, attempt: Attempt, output: Output) -> None:
        """Add one attempt."""
        self.attempts += 1
        if attempt.ending is not None:
            self.duration_s = amount.plus(self.duration_s, attempt.ending.duration_s)
            self.cpu_s = amount.plus(self.cpu_s, attempt.ending.cpu_s or 0.0)
        self.tokens_used = amount.plus(self.tokens_used, output.figures.tokens_used or 0)
        self.cost_usd = amount.plus(self.cost_usd, output.figures.cost_usd or 0)

    def total(self) -> Total:
        """Return the total as a heartbeat says it."""
        return Total(
            attempts=self.attempts,
            duration_s=round(self.duration_s, 3),
            cpu_s=round(self.cpu_s, 3),
            tokens_used=self.tokens_used,
            cost_usd=round(self.cost_usd, 9),
        )


def record_of(attempt: Attempt, verdict: Conclusion, now: str, uses: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a Result, made of values that are checked already, so no model need check them again.

    uses: the units that it used of each limit.
    """
    ending, outcome, output = attempt.ending, verdict.outcome, verdict.output
    error = verdict.decision.error
    result = {
        "task_id": attempt.name.id,
        "attempt": attempt.name.attempt,
        "worker_id": attempt.worker,
        "status": outcome.status,
        "started_at": stamp(ending.started_at if ending else attempt.started_at),
        "completed_at": stamp(ending.ended_at) if ending else now,
        "duration_s": round(ending.duration_s, 6) if ending else 0.0,
        "exit_code": ending.exit_code if ending else None,
        "output": output.value,
        "output_format": output.format,
        "output_problem": output.problem,
        "error": error.model_dump(mode="json") if error else None,
        "tokens_used": output.figures.tokens_used,
        "cost_usd": output.figures.cost_usd,
        "log": attempt.log.rpartition("/")[2] if attempt.logged or attempt.frozen_s else None,
        "type": attempt.kind,
        "instead_of": attempt.lane.instead_of or None,
        "batch": attempt.task.batch,
        "budgets": attempt.task.budgets,
        "budget": attempt.task.reserves,
        "partial": outcome.status is not Status.SUCCESS and bool(output.value),
        "max_rss_mb": round(ending.max_rss_bytes / (1 << 20), 1) if ending and ending.max_rss_bytes else None,
        "frozen_s": round(ending.frozen_s, 3) if ending and ending.frozen_s else None,
        "cpu_s": round(ending.cpu_s, 6) if ending and ending.cpu_s is not None else None,
        "estimated": False,
        "changed_files": output.figures.changed_files or None,
        "files_overlap": verdict.overlaps or None,
        "total": None,
        "approval": attempt.approval,
        "questions": attempt.questions,
        "uses": dict(uses) or None,
    }
    if attempt.name.attempt > 1 and verdict.summed:
        own = Total.model_validate({"attempts": 1, **{name: result[name] for name in _SUMMED}})
        total = own if verdict.before is None else plus(verdict.before, own)
        result["total"] = total.model_dump(mode="json")
    return result


# This many results are made durable with one wait, where the disk is this machine's. That waits for the writes of
# other programs, too: after a wait longer than LONG_S (s), each result waits for itself for a while (s).
TOGETHER = 3
LONG_S, APART_S = 0.25, 60.0


Judged = tuple[Attempt, Conclusion]


class Settling:
    """Commits ended attempts for one worker."""

    def __init__(
        self,
        store: Store,
        scratch: Scratch,
        journal: Journal,
        writers: Writers | None,
        allowance: Allowance,
        most_output: int,
    ) -> None:
        """writers: None where no write waits for the disk. most_output: bytes that a log may have."""
        self._allowance = allowance
        self._writers = writers
        self._store = store
        self._scratch = scratch
        self._journal = journal
        self.logs = Logs(store, scratch, most_output)
        self._company = Company(store)
        self._overlaps = Overlaps(store, journal)
        self._apart_until = -math.inf
        # Attempts that failed or asked for another try, by code, since this worker started.
        self.endings: Counter[str] = Counter()
        self.spent = Spent()
        self._lately = Lately()
        self.left = False  # whether an attempt has more output than one step brings
        self._moved: list[str] = []  # entries that were in the place of results, added by several threads

    def told(self) -> dict[str, Any]:
        """Return what a heartbeat says of the attempts that were committed."""
        return {"endings": dict(self.endings), "spent": self.spent.total(), "durations": self._lately.said()}

    def settle(self, attempts: list[Attempt]) -> list[Attempt]:
        """Commit attempts that are over; return those that are done with. The others stay for the next step.

        All results are made durable together, before the first commit. Errors: none of the environment's; they are
        noted on the attempt.
        """
        # With a result out, the claim may be gone because an earlier commit was carried out late: commit looks.
        done: list[Attempt] = []
        judged: list[Judged] = []
        self._company.forget()
        ledger, time, self.left = Ledger(self._store.fs), Slice(self._store.clock), False
        for attempt in attempts:
            if attempt.fenced and not attempt.result_written:
                self._forget(attempt)
                done.append(attempt)
            elif not self.logs.bring(attempt, time):
                self.left = True
            else:
                try:
                    judged.append((attempt, self._judge_safely(attempt, ledger)))
                except OSError as error:
                    attempt.warn(f"the outcome of {attempt.name.id} cannot be decided yet: {error.strerror}")
        written = self._publish(judged)
        self._company.forget()  # what others decided meanwhile counts
        return done + [attempt for attempt, verdict in written if self._commit_safely(attempt, verdict)]

    def _judge_safely(self, attempt: Attempt, ledger: Ledger) -> Conclusion:
        """Judge an attempt. If spoold cannot handle what it left, its end counts as it was, without that."""
        with self._handling("end of the task", attempt) as handling:
            return self._judge(attempt, ledger)
        assert handling.fault is not None  # else it has returned
        cause = handling.fault.cause
        with self._handling("outcome of the task", attempt):
            policy = retry_policy(attempt.task, self._store.settings)
            attempt.judged = attempt.judged or outcome_of(attempt, policy, None)
            return _bare(attempt.judged, retry_rule.decide(attempt.name, attempt.judged, policy), cause)
        attempt.judged = outcomes.failure(Code.INVALID_TASK, cause, final=True)
        return _bare(
            attempt.judged, retry_rule.End(State.FAILED, Error(code=Code.INVALID_TASK, message=cause)), cause
        )

    def _handling(self, kind: str, attempt: Attempt) -> Handling:
        return self._store.faults.handling(kind, attempt.name.id, attempt.name.id, attempt.name.attempt)

    def _judge(self, attempt: Attempt, ledger: Ledger) -> Conclusion:
        policy = retry_policy(attempt.task, self._store.settings)
        output = output_of(attempt, self._scratch)
        outcome = outcome_of(attempt, policy, output.figures.retry_after_s)
        if attempt.judged is None:  # once: the set of living workers changes, and a written result must stay true
            if outcome.code is Code.TRY_LATER and output.figures.not_here is not None:
                outcome = outcomes.not_here(outcome, output.figures.not_here, own_reason(output.value))
            if outcome.elsewhere and (others := self._company.untried(attempt)):
                outcome = matching.passed_on(outcome, others)
            if outcome.code is Code.OOM_KILLED:
                outcome = in_vain(
                    attempt.task, attempt.name, policy, outcome, ledger.before(attempt.name.id, attempt.name.attempt)
                )
            if outcome.code is Code.TRY_LATER and output.figures.quota is not None:
                outcome = self._allowance.report(attempt, outcome, output.figures.quota)
            attempt.judged = outcome
            if attempt.asked:
                attempt.questions = replies(self._store.fs, attempt.name, attempt.claim)
        outcome = attempt.judged
        before, summed = None, True
        if attempt.name.attempt > 1:
            try:
                before = ledger.total_before(attempt.name.id, attempt.name.attempt)
            except OSError:
                summed = False  # a record without a total has readers look at the ones before it
        overlaps = self._overlaps.of(attempt, output.figures.changed_files)
        return Conclusion(outcome, retry_rule.decide(attempt.name, outcome, policy), output, before, summed, overlaps)

    def _publish(self, judged: list[Judged]) -> list[Judged]:
        """Return those whose results are out, and survive a power cut if that is asked for. Never raises OSError."""
        fs, durable, now = self._store.fs, self._store.durable, self._store.clock.monotonic
        together = durable and not fs.remote and len(judged) >= TOGETHER and now() >= self._apart_until
        write = partial(self._written, durable=durable and not together)
        if self._writers is None or together:
            written = [pair for pair in judged if write(pair)]
        else:
            written = self._writers.write(write, judged)
        while self._moved:
            self._journal.note("SET_ASIDE", message=self._moved.pop())
        began = now()
        try:
            if together:
                fs.flush()
            elif durable and written:
                fs.sync(layout.RESULTS)
        except OSError as error:
            for attempt, _ in written:
                attempt.warn(f"the result of {attempt.key} cannot be made durable: {error.strerror}")
            return []
        finally:
            if together and now() - began > LONG_S:
                self._apart_until = now() + APART_S
        for attempt, _ in written:
            attempt.result_written = True
        return written

    def _written(self, judged: Judged, *, durable: bool) -> bool:
        """Whether the result was written; called from several threads, each for another attempt."""
        attempt, verdict = judged
        try:
            with self._handling("record of the task", attempt) as handling:
                self._write_result(attempt, verdict, durable=durable)
                return True
            assert handling.fault is not None  # else it has returned
            verdict = _bare(verdict.outcome, verdict.decision, handling.fault.cause)
            with self._handling("bare record of the task", attempt):
                self._write_result(attempt, verdict, durable=durable)
                return True
        except OSError as error:
            why = why_unwritten(self._store.fs, attempt.result, error)
            attempt.warn(f"the result of {attempt.key} cannot be written: {why}")
        return False

    def _write_result(self, attempt: Attempt, verdict: Conclusion, *, durable: bool) -> None:
        if attempt.result_written:
            return
        result = record_of(attempt, verdict, self._store.stamp(), self._allowance.limits(attempt.lane))
        self._moved += write_record(self._store, attempt.result, codec.dump(result), durable=durable)

    def _commit_safely(self, attempt: Attempt, verdict: Conclusion) -> bool:
        with self._handling("commit of the task", attempt):
            return self._commit(attempt, verdict)
        return False  # the next step moves it, or finds that it was moved

    def _commit(self, attempt: Attempt, verdict: Conclusion) -> bool:
        decision = verdict.decision
        if isinstance(decision, retry_rule.End):
            target = layout.join(decision.state, attempt.ended)
            event = "COMPLETED" if decision.state is State.COMPLETED else "FAILED"
        else:
            target = layout.join(layout.RETURNED, decision.name.encode_returned(attempt.worker))
            event = "RETURNED"
        moved = self._store.move(Mover.WORKER, event, attempt.claim, target)
        if isinstance(moved.error, IsADirectoryError):
            with contextlib.suppress(OSError):
                self._journal.note("SET_ASIDE", message=f"{target} was a directory: {set_aside(self._store, target)}")
                moved = self._store.move(Mover.WORKER, event, attempt.claim, target)
        if moved.fate is Fate.LOST or (isinstance(moved.error, PermissionError) and self._displaced(attempt)):
            self._forget(attempt)
            return True
        if not moved:
            attempt.notes = [f"{attempt.key} cannot be committed yet: {moved.error}"]
            return False
        # From here on it is committed, whatever becomes of the accounts.
        with self._handling("account of the task", attempt):
            self.logs.close(attempt)
            self._allowance.ended(attempt)
            if event == "COMPLETED" and attempt.ending is not None:
                self._lately.add(attempt.kind, attempt.ending.duration_s)
            if verdict.outcome.code not in (None, Code.HANDED_BACK):
                self.endings[str(verdict.outcome.code)] += 1
            self.spent.add(attempt, verdict.output)
        with self._handling("journal of the task", attempt):
            detail = _detail(attempt.ending, decision.error)
            self._journal.note(event, attempt.name.id, attempt.name.attempt, **detail)
            self._overlaps.committed(attempt)
        with self._handling("folder of the task", attempt):
            self._scratch.close(attempt.key)
        return True

    def _displaced(self, attempt: Attempt) -> bool:
        """Whether its claim's name belongs to another entry; then the claim is as good as taken away."""
        try:
            return self._store.fs.stat(attempt.claim).kind != "file"
        except OSError:
            return False

    def _forget(self, attempt: Attempt) -> None:
        """Drop a fenced attempt: the task went on without it, and its result must not be found."""
        self.logs.forget(attempt)
        self._overlaps.forget(attempt)
        self._journal.note("FENCED", attempt.name.id, attempt.name.attempt)
        if attempt.result_written and not self._counts(attempt):
            with contextlib.suppress(OSError):
                self._store.fs.unlink(attempt.result)
        with self._handling("folder of the task", attempt):
            self._scratch.close(attempt.key)

    def _counts(self, attempt: Attempt) -> bool:
        """Whether its result counts, or may: its own commit may have been carried out behind an error, and a leader
        has moved the token on by now; so only what another node decided of this attempt says that it does not. Such
        a node writes its record before it takes the token. A twin of the same name writes under the same names: its
        claim is looked for before the ends, as it may give it another name, and commit it in between.
        """
        if self._store.shared:
            return True
        fs, mine = self._store.fs, (key(attempt.name.id), attempt.name.attempt)
        try:
            claims = names_in(fs, layout.join(layout.CLAIMED, attempt.worker))
            others = [name for claim in claims if claim != attempt.file and (name := parse_task(claim)) is not None]
            if any((key(name.id), name.attempt) == mine for name in others):
                return True
            if any(attempt.ended in names_in(fs, state) for state in (State.COMPLETED, State.FAILED)):
                return True
            told = self._company.ended(attempt.name)
            return all(one.decider == attempt.worker for one in told if one.attempt == attempt.name.attempt)
        except OSError:
            return True


def _bare(outcome: Outcome, decision: retry_rule.Again | retry_rule.End, cause: str) -> Conclusion:
    """The conclusion about an attempt of whose words nothing can be used."""
    return Conclusion(outcome, decision, Output(f"(not kept: {cause})"), summed=False)


def _detail(ending: Ending | None, error: Error | None) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    if ending is not None:
        detail |= {"duration_s": round(ending.duration_s, 3), "exit_code": ending.exit_code}
    if error is not None:
        detail |= {"code": error.code, "message": error.message}
        if error.cause:
            detail["cause"] = error.cause
    return detail


def outcome_of(attempt: Attempt, policy: RetryPolicy, retry_after_s: float | None) -> Outcome:
    """Return how an attempt that is over ended, for the retry rule."""
    ending = attempt.ending
    if ending is None:
        assert attempt.decided is not None
        return attempt.decided
    match ending.kind:
        case "exited":
            assert ending.exit_code is not None
            return _exited(ending, policy, retry_after_s)
        case "timeout":
            asks = ending.exit_code == outcomes.TRY_LATER and outcomes.TRY_LATER not in policy.never
            if asks and not attempt.deadline_cut:  # it was not at work any more, and says so
                return _exited(ending, policy, retry_after_s)
            return end_conditions.timed_out(ending.message, by_deadline=attempt.deadline_cut)
        case "stopped" if attempt.stopping is not None:
            return attempt.stopping
        case "stopped" | "fenced":
            return outcomes.handed_back(ending.message)
        case "lost":
            return outcomes.worker_died(ending.message)
        case "refused":
            return outcomes.refused(ending.message)
        case "spawn_failed":
            return _refused(ending, policy)
        case kind:
            return outcomes.failure(_CODES[kind], ending.message)


_CODES = {
    "signaled": Code.SIGNALED,
    "oom": Code.OOM_KILLED,
    "stalled": Code.STALLED,
}


def _refused(ending: Ending, policy: RetryPolicy) -> Outcome:
    """Return the outcome of a program that never began: its charge depends on whose fault that is."""
    fault = Fault.WORKER if ending.refusal is None else fault_of(ending.refusal)
    if fault is Fault.TASK:
        return outcomes.failure(Code.INVALID_TASK, ending.message, final=True)
    if fault is not Fault.WORKER or ending.exit_code is None:
        return outcomes.not_started(ending.message)
    return _exited(ending, policy, None)


def _exited(ending: Ending, policy: RetryPolicy, retry_after_s: float | None) -> Outcome:
    assert ending.exit_code is not None
    outcome = outcomes.of_exit(ending.exit_code, policy.on, policy.never, retry_after_s)
    return (
        outcome if outcome.status is Status.SUCCESS else replace(outcome, message=ending.message or outcome.message)
    )


# Which other tasks changed the same files at the same time, of an attempt whose result says what it changed.


# So much (bytes) of the end of each journal is read.
TAIL_BYTES = 1 << 20
# A journal that was last written so long (s) before the attempt began is not read.
STALE_S = 600.0


class Overlaps:
    """Finds them for one worker, each attempt once."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._found: dict[str, tuple[dict[str, Any], ...]] = {}

    def of(self, attempt: Attempt, files: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
        """Return the attempts that overlap with this one, each with the files: as in a result."""
        if not files or attempt.ending is None:
            return ()
        if attempt.key not in self._found:
            # The pool's time: the clocks of two workers may differ.
            ended = self._store.common.wall()
            began = ended - attempt.ending.duration_s - attempt.ending.frozen_s
            mine = Touched(attempt.name.id, attempt.name.attempt, began, ended, files)
            self._journal.note(CHANGED, mine.task, mine.attempt, began=began, ended=ended, files=files)
            self._journal.flush(last=True)
            self._found[attempt.key] = common(mine, self._others(began))
        return self._found[attempt.key]

    def committed(self, attempt: Attempt) -> None:
        """Tell the journal of overlaps, once the attempt is committed."""
        if found := self._found.pop(attempt.key, ()):
            self._journal.note("FILES_OVERLAP", attempt.name.id, attempt.name.attempt, overlaps=found)

    def forget(self, attempt: Attempt) -> None:
        """Forget an attempt that is not committed."""
        self._found.pop(attempt.key, None)

    def _others(self, began: float) -> Iterator[Touched]:
        with contextlib.suppress(OSError):
            names = sorted(name for name in map(parse_events, self._store.fs.list(layout.EVENTS)) if name is not None)
            newest = {name.writer: name for name in names}
            for name in newest.values():
                found: list[Touched] = []
                with self._store.faults.handling("journal", name.encode()):
                    found += self._read(name, began)
                yield from found

    def _read(self, name: EventsName, began: float) -> Iterator[Touched]:
        """What a journal tells, unless it was last written long before that moment: dead nodes leave many."""
        path = layout.join(layout.EVENTS, name.encode())
        data = b""
        with contextlib.suppress(OSError):
            seen = self._store.fs.stat(path)
            if seen.mtime_ns / 1e9 > began - STALE_S:
                data = self._store.fs.read(path, offset=max(0, seen.size - TAIL_BYTES))
        for line in data.splitlines():
            if CHANGED.encode() in line:
                touched = None
                with self._store.faults.handling("line of journal", name.encode()), contextlib.suppress(BadFile):
                    touched = touched_in(codec.load(line, path))
                if touched is not None:
                    yield touched


# The threads in which a worker waits for a disk or a server: requests made at once take as long as one.


T = TypeVar("T")

# At most this many threads wait for the disk at once.
HANDS_MAX = 16


class Writers:
    """As many hands as a worker has slots, one of them the caller's own thread."""

    def __init__(self, slots: int) -> None:
        self._hands = min(slots, HANDS_MAX)
        self._others = ThreadPoolExecutor(max(self._hands - 1, 1), "writer")

    def write(self, write: Callable[[T], bool], items: list[T]) -> list[T]:
        """Return the items that were written. Errors: those of `write`.

        Each hand gets all of its share at once: handing over one by one takes as long as some disks do.
        """

        def work(share: list[T]) -> list[T]:
            return [item for item in share if write(item)]

        mine, *theirs = (items[first :: self._hands] for first in range(self._hands))
        waiting = [self._others.submit(work, share) for share in theirs if share]
        return work(mine) + [item for share in waiting for item in share.result()]

    def close(self) -> None:
        """End without waiting for threads that wait for the disk."""
        self._others.shutdown(wait=False)


# The other workers, when this one has a task that it cannot run: which of them could, and have not tried?


class Company:
    """One worker's view of the others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claiming: list[str] | None = None
        self._beats: dict[str, Heartbeat] = {}
        self._results: dict[str, list[EndedName]] | None = None

    def forget(self) -> None:
        """Forget what was seen so far: it is old."""
        self._claiming = self._results = None

    def untried(self, attempt: Attempt) -> set[str]:
        """Return the others that could run this task and have not tried. Errors: OSError."""
        if self._claiming is None:
            # Beats first: a worker that joins between the two looks then shows by its directory alone, and counts.
            self._beats = heartbeats.read_all(self._store.fs)
            self._claiming = [node for node in self._store.fs.list(layout.CLAIMED) if is_node(node)]
        others = matching.able(self._store.writer, attempt.lane, self._claiming, self._beats)
        if not others or matching.surely_untried(attempt.name, others):
            return others
        return others - self._tried(attempt, others)

    def ended(self, name: TaskName) -> list[EndedName]:
        """Return the attempts of a task that have a record. Errors: OSError."""
        if self._results is None:
            self._results = {}
            for found in map(parse_ended, names_in(self._store.fs, layout.RESULTS)):
                if found is not None:
                    self._results.setdefault(key(found.id), []).append(found)
        return self._results.get(key(name.id), [])

    def _tried(self, attempt: Attempt, others: Collection[str]) -> set[str]:
        told = [e for e in self.ended(attempt.name) if e.attempt < attempt.name.attempt and e.decider in others]
        return {ended.decider for ended in told if self._could_not(ended)}

    def _could_not(self, ended: EndedName) -> bool:
        found = read_record(self._store.fs, layout.join(layout.RESULTS, ended.encode()))
        if found is None or found.error is None:
            return False
        not_here = found.error.code is Code.TRY_LATER and figures_in(found.output).not_here is not None
        return not_here or found.error.code is Code.SPAWN_FAILED
