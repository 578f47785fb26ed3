"""An ended attempt → its result → its commit.

Order: the log, then the result, durable, under the very name that the task file will get; then the rename that
commits. Whoever reads a committed task finds its result; whoever was fenced finds its claim gone and throws its
result away.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code, Error, Status
from spoold.rules import outcome as outcomes
from spoold.rules import retry
from spoold.rules.outcome import Outcome
from spoold.rules.policy import RetryPolicy, retry_policy
from spoold.store.journal import Journal
from spoold.store.looks import Looks
from spoold.store.mover import Fate
from spoold.store.store import Store, stamp
from spoold.system.scratch import Scratch
from spoold.worker.attempt import Attempt
from spoold.worker.job import Ending
from spoold.worker.output import Output, output_of
from spoold.worker.writers import Writers

LOG_CHUNK = 1 << 20
# How often (s) new output is brought to the logs: where that costs round trips, and where it costs a look.
LOGS_S, LOCAL_LOGS_S = 0.5, 0.1
# So many results are made durable with one wait, where the disk is this machine's. That waits for what others have
# written, too: after one that took longer (s), each waits for itself for a while (s).
TOGETHER = 3
LONG_S, APART_S = 0.25, 60.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an ended attempt comes to: its outcome, what the retry rule makes of it, and its output."""

    outcome: Outcome
    decision: retry.Again | retry.End
    output: Output


Judged = tuple[Attempt, Verdict]


class Settling:
    """Commits ended attempts for one worker."""

    def __init__(self, store: Store, scratch: Scratch, journal: Journal, writers: Writers | None) -> None:
        """writers: None where nobody waits for the disk."""
        self._writers = writers
        self._store = store
        self._scratch = scratch
        self._journal = journal
        self._looks = Looks(store)
        self._apart_until = -math.inf

    def settle(self, attempts: list[Attempt]) -> list[Attempt]:
        """Commit what is over; returns those that are done with. The others stay for the next step.

        All results are made durable together, before the first commit. Errors: none of the environment's; they are
        noted on the attempt.
        """
        # With a result out, the claim may be gone because an earlier commit was carried out late: commit looks.
        done: list[Attempt] = []
        judged: list[Judged] = []
        for attempt in attempts:
            if attempt.fenced and not attempt.result_written:
                self._forget(attempt)
                done.append(attempt)
            else:
                self.log(attempt)
                judged.append((attempt, self._judge(attempt)))
        return done + [attempt for attempt, verdict in self._publish(judged) if self._commit(attempt, verdict)]

    def bring_logs(self, attempts: Iterable[Attempt]) -> None:
        """Bring new output of what runs to the share, if it is time. Never raises OSError."""
        if self._looks.take("logs", LOGS_S, LOCAL_LOGS_S):
            for attempt in attempts:
                if not attempt.over:
                    self.log(attempt)

    def log(self, attempt: Attempt) -> None:
        """Bring new output of an attempt to the share. Never raises OSError: a log is not worth a task."""
        ending = attempt.ending
        if ending is not None and not ending.output_bytes and ending.kind != "lost":
            return  # it said nothing; of one that was lost nobody counted it
        while not attempt.log_complete:
            chunk = self._scratch.read(attempt.key, "output", attempt.logged, LOG_CHUNK)
            if not chunk:
                break
            if not self._append(attempt, chunk):
                return
            attempt.logged += len(chunk)
        if ending is not None and ending.output_dropped and attempt.logged and not attempt.log_complete:
            gap = f"\n[{ending.output_dropped} bytes left out here: log_max_mb of the worker]\n".encode()
            self._append(attempt, gap + ending.tail.encode())
            attempt.log_complete = True  # the log is complete: nothing comes after its tail

    def _append(self, attempt: Attempt, data: bytes) -> bool:
        try:
            self._store.fs.append(attempt.log, data)
        except OSError as error:
            attempt.notes = [f"the log of {attempt.key} cannot be written: {error.strerror}"]
            return False
        return True

    def _judge(self, attempt: Attempt) -> Verdict:
        policy = retry_policy(attempt.task, self._store.settings)
        output = output_of(attempt, self._scratch)
        outcome = outcome_of(attempt, policy, output.figures.retry_after_s)
        if output.fault is not None and outcome.status is Status.SUCCESS:
            outcome = outcomes.failure(Code.OUTPUT_INVALID, output.fault)
        return Verdict(outcome, retry.decide(attempt.name, outcome, policy), output)

    def _publish(self, judged: list[Judged]) -> list[Judged]:
        """Those whose results are out, and survive a power cut where that is asked for. Never raises OSError."""
        fs, durable, now = self._store.fs, self._store.durable, self._store.clock.monotonic
        together = durable and not fs.remote and len(judged) >= TOGETHER and now() >= self._apart_until
        write = partial(self._written, durable=durable and not together)
        if self._writers is None or together:
            written = [pair for pair in judged if write(pair)]
        else:
            written = self._writers.write(write, judged)
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
            self._write_result(attempt, verdict, durable=durable)
        except OSError as error:
            attempt.warn(f"the result of {attempt.key} cannot be written: {error.strerror}")
            return False
        return True

    def _write_result(self, attempt: Attempt, verdict: Verdict, *, durable: bool) -> None:
        if attempt.result_written:
            return
        ending, outcome, output = attempt.ending, verdict.outcome, verdict.output
        error = verdict.decision.error
        # The fields of a Result. Made of values that are checked already, so no model need check them again.
        result = {
            "task_id": attempt.name.id,
            "attempt": attempt.name.attempt,
            "worker_id": attempt.worker,
            "status": outcome.status,
            "started_at": stamp(ending.started_at if ending else attempt.started_at),
            "completed_at": stamp(ending.ended_at) if ending else self._store.stamp(),
            "duration_s": round(ending.duration_s, 6) if ending else 0.0,
            "exit_code": ending.exit_code if ending else None,
            "output": output.value,
            "error": error.model_dump(mode="json") if error else None,
            "tokens_used": output.figures.tokens_used,
            "cost_usd": output.figures.cost_usd,
            "log": attempt.log.rpartition("/")[2] if attempt.logged else None,
            "type": attempt.task.kind,
            "batch": attempt.task.batch,
            "partial": outcome.status is not Status.SUCCESS and bool(output.value),
            "max_rss_mb": round(ending.max_rss_bytes / (1 << 20), 1) if ending and ending.max_rss_bytes else None,
        }
        self._store.fs.write(attempt.result, codec.dump(result), durable=durable)

    def _commit(self, attempt: Attempt, verdict: Verdict) -> bool:
        decision = verdict.decision
        if isinstance(decision, retry.End):
            target = layout.join(decision.state, attempt.ended)
            event = "COMPLETED" if decision.state is State.COMPLETED else "FAILED"
        else:
            target = layout.join(layout.RETURNED, decision.name.encode_returned(attempt.worker))
            event = "RETURNED"
        moved = self._store.move(attempt.claim, target)
        if moved.fate is Fate.LOST:
            self._forget(attempt)
            return True
        if not moved:
            attempt.notes = [f"{attempt.key} cannot be committed yet: {moved.error}"]
            return False
        detail = _detail(attempt.ending, decision.error)
        self._journal.note(event, attempt.name.id, attempt.name.attempt, **detail)
        self._scratch.close(attempt.key)
        return True

    def _forget(self, attempt: Attempt) -> None:
        """Fenced: the task went on without this attempt, whose result must not be found."""
        self._journal.note("FENCED", attempt.name.id, attempt.name.attempt)
        if attempt.result_written:
            with contextlib.suppress(OSError):
                self._store.fs.unlink(attempt.result)
        self._scratch.close(attempt.key)


def _detail(ending: Ending | None, error: Error | None) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    if ending is not None:
        detail |= {"duration_s": round(ending.duration_s, 3), "exit_code": ending.exit_code}
    if error is not None:
        detail |= {"code": error.code, "message": error.message}
    return detail


def outcome_of(attempt: Attempt, policy: RetryPolicy, retry_after_s: float | None) -> Outcome:
    """How an attempt that is over ended, for the retry rule."""
    ending = attempt.ending
    if ending is None:
        assert attempt.decided is not None
        return attempt.decided
    match ending.kind:
        case "exited":
            assert ending.exit_code is not None
            return _exited(ending, policy, retry_after_s)
        case "timeout" if attempt.deadline_cut:
            return outcomes.past_deadline(f"its deadline passed while it ran: {ending.message}")
        case "stopped" if attempt.stopping is not None:
            return attempt.stopping
        case "stopped" | "fenced":
            return outcomes.handed_back(ending.message)
        case "lost":
            return outcomes.worker_died(ending.message)
        case "spawn_failed" if ending.exit_code is not None:
            return _exited(ending, policy, None)
        case kind:
            return outcomes.failure(_CODES[kind], ending.message)


_CODES = {
    "signaled": Code.SIGNALED,
    "timeout": Code.TIMEOUT,
    "oom": Code.OOM_KILLED,
    "stalled": Code.STALLED,
    "spawn_failed": Code.SPAWN_FAILED,
}


def _exited(ending: Ending, policy: RetryPolicy, retry_after_s: float | None) -> Outcome:
    assert ending.exit_code is not None
    outcome = outcomes.of_exit(ending.exit_code, policy.on, policy.never, retry_after_s)
    return (
        outcome if outcome.status is Status.SUCCESS else replace(outcome, message=ending.message or outcome.message)
    )
