"""A token in claimed/<me>/ → a running job, or an attempt that is decided because it cannot run here.

Law: nothing starts once the lease is over, since another worker may have the task by then. A claim that cannot be
read is tried again for a while before it is decided. What a task gets, such as the results of the tasks that it runs
after, has a size that others decide: it is brought over several steps, as `attempt.Preparation` says.
"""

from __future__ import annotations

import errno
import hashlib
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

from spoold.protocol import codec, layout
from spoold.protocol.approval import Approval
from spoold.protocol.errors import BadFile
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName
from spoold.protocol.request import Verb
from spoold.protocol.result import Code, Status
from spoold.protocol.snapshot import Durations
from spoold.protocol.task import Task
from spoold.rules.attempts import attempt_outcome as outcomes
from spoold.rules.attempts import end_conditions
from spoold.rules.attempts.attempt_outcome import unable_here
from spoold.rules.attempts.durations import auto_s
from spoold.rules.attempts.retry_rule import may_be_raised, raised
from spoold.rules.attempts.task_policy import retry_policy
from spoold.rules.gates.registry import conditions_of
from spoold.rules.gates.standing_requests import answer_of, is_of, record
from spoold.runner.job import Job, NoSlot, RunnerPort
from spoold.store import snapshots
from spoold.store.approval_answers import decided, feedback, rounds
from spoold.store.attempt_records import Ledger
from spoold.store.contained_faults import Fault
from spoold.store.dependency_results import OUTCOMES_NAME as FILE
from spoold.store.dependency_results import Outcomes, write_dependencies
from spoold.store.existence import regular
from spoold.store.journal import Journal
from spoold.store.step_timing import Slice
from spoold.store.store import Store
from spoold.system.scratch import Scratch
from spoold.worker.attempts.agent_messages import Telling
from spoold.worker.attempts.attempt import Attempt, Preparation, Redacting
from spoold.worker.attempts.lease import OwnLease
from spoold.worker.attempts.lent_slots import Lending
from spoold.worker.attempts.worker_limits import Allowance
from spoold.worker.handlers.availability import Fitness
from spoold.worker.handlers.job_preparation import CannotRun, Workplace, handler_of, inherited, prepare
from spoold.worker.handlers.secrets import Lacking, Secrets
from spoold.worker.handlers.worker_config import WorkerConfig

# For so long (s) a claim may be refused to its worker, or be unreadable for another reason. If two tries are further
# apart than this (s, or two beats), the share was silent, and the count begins anew.
REFUSED_S, UNREADABLE_S, APART_S = 5.0, 120.0, 30.0
# How long (s) the leader's figures of durations are used before they are read again; and those that lack a type.
FIGURES_S, UNKNOWN_S = 30.0, 3.0
FEEDBACK, PREVIOUS = "feedback.json", "previous.json"
_NO_TASK = Task.model_validate({"type": "invalid"})


class _Closed(Exception):
    """A limit that the task uses is closed; the words say which."""


class _LeaseOver(Exception):
    """Preparing took so long that another worker may have got the task meanwhile."""


class Starting:
    """Starts tasks that this worker has claimed, as long as its lease lasts."""

    def __init__(
        self,
        store: Store,
        runner: RunnerPort,
        scratch: Scratch,
        config: WorkerConfig,
        journal: Journal,
        lease: OwnLease,
        allowance: Allowance,
        lending: Lending,
        telling: Telling,
        *,
        root: str,
        environ: Mapping[str, str],
    ) -> None:
        self._store = store
        self._runner = runner
        self._scratch = scratch
        self._config = config
        self._journal = journal
        self._lease = lease
        self._allowance = allowance
        self._root, self._lending, self._telling = root, lending, telling
        self._base = inherited(config, environ)
        self._secrets = Secrets(config.secrets, environ, config.place("secrets"))
        self._since: dict[tuple[str, int], tuple[float, float]] = {}  # first and last try of unreadable files
        self._figures: dict[str, Durations] = {}
        self._figures_until = 0.0
        self.fitness = Fitness(store.clock)

    def start(
        self, name: TaskName, kinds: Collection[str], time: Slice, *, idle: bool, here: Collection[Attempt]
    ) -> Attempt | None:
        """Start the task, or begin to prepare it. A task that cannot run comes back decided. kinds: the other
        types as which it was claimed, or may have been, '' for its own; none where that is unknown. time: that this
        step has for what tasks get; idle: whether a slot is surely free; here: the attempts that run beside it.

        One that spoold cannot start comes back decided, too: that is charged to this task, and to no other.
        None when its file cannot be read just now, or when the lease is over: then the next listing of the claims
        shows whether it is still this worker's to start.
        """
        attempt = Attempt(name, self._store.writer, _NO_TASK, Lane("invalid"), self._store.clock.wall())
        with self._store.faults.handling("claimed task", name.id, name.id, name.attempt) as handling:
            return self._start(name, kinds, time, idle, here)
        assert handling.fault is not None  # else it has returned
        self._end(attempt, handling.fault)
        return attempt

    def _end(self, attempt: Attempt, fault: Fault) -> None:
        """End an attempt that spoold cannot start."""
        attempt.preparing, why = None, outcomes.failure(Code.INVALID_TASK, fault.cause, final=fault.lasts)
        if attempt.key in self._runner.running():
            attempt.stopping = why
            self._runner.stop(attempt.key, why.message, 0.0)
        else:
            attempt.decided = why

    def _start(
        self, name: TaskName, kinds: Collection[str], time: Slice, idle: bool, here: Collection[Attempt]
    ) -> Attempt | None:
        worker, wall, file = self._store.writer, self._store.clock.wall(), name.encode()
        path = layout.claimed(worker, file)
        try:
            with regular(path):
                data = self._store.fs.read(path)
            self._since.pop((name.id, name.attempt), None)
            task = codec.load_task(data, path)
            lane = self._lane(task, name)
        except OSError as error:
            return self._unreadable(name, error)
        except BadFile as error:
            attempt = Attempt(name, worker, _NO_TASK, Lane("invalid"), wall)
            attempt.decided = outcomes.failure(Code.INVALID_TASK, str(error), final=True)
            return attempt
        attempt = Attempt(name, worker, task, lane.under(next(iter(kinds), "") or task.kind), wall)
        if len(kinds) > 1:  # two errors hid from which lane it came; the leader counts one of them
            attempt.decided = outcomes.handed_back("its worker does not know as which type it claimed it")
            return attempt
        return attempt if self._try(attempt, data, time, idle, here) else None

    def go_on(self, attempt: Attempt, time: Slice, *, idle: bool, here: Collection[Attempt]) -> bool:
        """Go on with a task that is being prepared, as `start`; False when it has to begin anew, since the lease
        under which it began is over.
        """
        with self._store.faults.handling(
            "claimed task", attempt.name.id, attempt.name.id, attempt.name.attempt
        ) as handling:
            return self._try(attempt, None, time, idle, here)
        assert handling.fault is not None  # else it has returned
        self._end(attempt, handling.fault)
        return True

    def _try(self, attempt: Attempt, data: bytes | None, time: Slice, idle: bool, here: Collection[Attempt]) -> bool:
        """Prepare it, and start it when that is done. data: its file, to begin with. False: its lease is over."""
        try:
            if data is not None:
                attempt.preparing = self._begin(attempt, data)
            assert attempt.preparing is not None
            if attempt.preparing.lease != self._lease.number or self._lease.over:
                raise _LeaseOver
            if not attempt.preparing.go_on(time):
                return True
            self._run(attempt, attempt.preparing.job, idle, self._lending.counted(here))
        except _LeaseOver:
            self._scratch.close(attempt.key)
            return False
        except _Closed as closed:
            self._scratch.close(attempt.key)
            attempt.decided = outcomes.handed_back(str(closed))
        except CannotRun as error:
            attempt.decided = error.outcome
        except NoSlot:
            # A claim that turned up late: the worker's count of its tasks is to blame, not its machine.
            attempt.decided = outcomes.handed_back("its worker has no slot free for it")
        except OSError as error:
            attempt.decided = outcomes.not_started(f"this worker cannot start it now: {error}")
        except (ValueError, TypeError) as error:
            # The fault will be there again next time: it must cost the task something.
            attempt.decided = outcomes.failure(Code.SPAWN_FAILED, f"it cannot be started: {error}")
        attempt.preparing = None
        return True

    def _lane(self, task: Task, name: TaskName) -> Lane:
        """Return the lane of the attempt: with more memory, if earlier attempts ran out. Errors: OSError."""
        policy = retry_policy(task, self._store.settings)
        if not may_be_raised(task, name, policy):
            return task.lane
        return raised(task, name, policy, Ledger(self._store.fs).before(name.id, name.attempt))

    def _unreadable(self, name: TaskName, error: OSError) -> Attempt | None:
        """Decide what a read error means. A share may refuse for a moment. If it goes on refusing, the file is not
        ours to read, and if it goes on failing, the file is damaged: a claim that never starts would hold its task
        for ever.
        """
        now, attempted = self._store.clock.monotonic(), (name.id, name.attempt)
        since, last = self._since.get(attempted, (now, now))
        if now - last > max(APART_S, 2 * self._store.settings.heartbeat.interval_s):
            since = now
        self._since[attempted] = since, now
        refused = error.errno in (errno.EACCES, errno.EPERM)
        if now - since < (REFUSED_S if refused else UNREADABLE_S):
            return None
        del self._since[attempted]
        attempt = Attempt(name, self._store.writer, _NO_TASK, Lane("invalid"), self._store.clock.wall())
        message = (
            f"this worker may not read the task's file ({error.strerror}); let its user read dropped files"
            if refused
            else f"the task's file cannot be read ({error.strerror}); check the disk that it is on"
        )
        attempt.decided = outcomes.failure(Code.SPAWN_FAILED, message)
        return attempt

    def _begin(self, attempt: Attempt, data: bytes) -> Preparation:
        """Begin to prepare it. data: the content of its file. Errors: CannotRun; OSError."""
        with self.fitness.writing():
            folder = self._scratch.open(attempt.key)
        spool_id = self._store.marker.spool_id
        place = Workplace(self._store.writer, self._root, folder, self._lending.directory, spool_id)
        auto = partial(self._auto_s, attempt.kind)
        config, given = self._config, self._given(attempt)
        attempt.redacting = says = Redacting(given, config.redact, config.output_tail_kb << 10)
        parts = (place, config, self._store.settings, self._base, auto, given, says.kept)
        job = prepare(attempt.task, attempt.name, *parts, kind=attempt.kind)
        attempt.seen = hashlib.sha256(data).hexdigest()
        if attempt.lane.mem_mb > attempt.task.requires.mem_mb:
            job = replace(job, memory_bytes=attempt.lane.mem_mb << 20)
        if (moment := conditions_of(attempt.task).deadline) is not None:
            attempt.deadline = moment
        self._keep(attempt.key, "task.json", data)
        return Preparation(job, self._bring(attempt), self._lease.number)

    def _bring(self, attempt: Attempt) -> Iterator[None]:
        """Bring it what it runs after, one by one. Errors: OSError."""
        yield from write_dependencies(self._store.fs, attempt.task, partial(self._keep, attempt.key))
        if attempt.task.after_batch is not None:
            search = Outcomes(self._store.fs, self._store.clock, attempt.task.after_batch)
            while not search.go_on():
                yield
            self._keep(attempt.key, f"deps/{FILE}", search.file())

    def _run(self, attempt: Attempt, job: Job, idle: bool, others: list[Lane]) -> None:
        """Start a task that has all that it gets."""
        folder = job.output_path.rpartition("/")[0]
        if attempt.deadline < math.inf:
            limit = end_conditions.limit(job.timeout_s, self._store.common.left_s(attempt.deadline))
            attempt.deadline_cut, job = limit.by_deadline, replace(job, timeout_s=limit.timeout_s)
        closed = self._allowance.closed(attempt.lane, idle, others)
        if attempt.task.approval is not None:
            self._bring_answer(attempt, attempt.task.approval)
        if attempt.name.attempt > 1:  # a first attempt is nobody's second thought
            job = self._bring_feedback(attempt, job, f"{folder}/{FEEDBACK}")
            job = self._bring_previous(attempt, job, f"{folder}/{PREVIOUS}")
        self._telling.bring(attempt)
        if self._lease.over:
            raise _LeaseOver
        if closed is not None:
            raise _Closed(closed)
        self._allowance.starts(attempt.lane)
        with self.fitness.starting():
            self._runner.start(job)
        self.fitness.proved()
        of = {"instead_of": attempt.lane.instead_of} if attempt.lane.instead_of else {}
        self._journal.note("STARTED", attempt.name.id, attempt.name.attempt, type=attempt.kind, **of)

    def _given(self, attempt: Attempt) -> dict[str, str]:
        """Return the secrets that its handler names. Errors: CannotRun: another worker may have them."""
        handler = handler_of(attempt.task, self._config, attempt.kind)
        try:
            return {} if handler is None else self._secrets.given(handler.secrets)
        except Lacking as error:
            raise CannotRun(unable_here(f"this worker cannot run it: {error}")) from None

    def _bring_answer(self, attempt: Attempt, approval: Approval) -> None:
        """Give the task the answer that lets it start. Without one it goes back: the leader may not have seen what
        was asked for last. Errors: CannotRun; OSError.
        """
        given = decided(self._store.fs, attempt.name, approval, attempt.claim)
        if given is None or given.request.verb is Verb.REJECT:
            why = "nobody's answer to its question stands" if given is None else f"it was rejected {given.told}"
            raise CannotRun(outcomes.not_started(why))
        if not is_of(given, attempt.seen):
            why = (
                f"its file is not the one that was approved {given.told}: it has changed since "
                f"(SHA-256 {attempt.seen}, approved was {given.seen}); `spool retry {attempt.name.id}` asks anew"
            )
            raise CannotRun(outcomes.failure(Code.REJECTED, why, final=True))
        attempt.approval = record(given, approval.ask, approval.choices)
        if before := rounds(self._store.fs, attempt.name, attempt.claim):
            attempt.approval["rounds"] = before
        self._keep(attempt.key, "answer.json", codec.dump(answer_of(given, approval.choices)))

    def _bring_feedback(self, attempt: Attempt, job: Job, path: str) -> Job:
        """Give a task that a person sent back the reason. Errors: OSError."""
        told = feedback(self._store.fs, attempt.name, attempt.claim)
        if told is None:
            return job
        self._keep(attempt.key, FEEDBACK, codec.dump(told))
        return replace(job, own={**job.own, "SPOOL_FEEDBACK_FILE": path})

    def _bring_previous(self, attempt: Attempt, job: Job, path: str) -> Job:
        """Give it the record of the attempt before it; of one that was handed back only if it left something, since
        the attempt before that one says more. Errors: OSError.
        """
        records = Ledger(self._store.fs).before(attempt.name.id, attempt.name.attempt)
        found = next((one for one in records if one.status != Status.HANDED_BACK or one.output), None)
        if found is None:
            return job
        self._keep(attempt.key, PREVIOUS, codec.dump(found))
        return replace(job, own={**job.own, "SPOOL_PREVIOUS_FILE": path})

    def _auto_s(self, kind: str) -> float | None:
        """Return what `timeout = "auto"` means for a type now, by the leader's last snapshot. Errors: OSError."""
        now = self._store.clock.monotonic()
        if now >= self._figures_until:
            found = snapshots.latest(self._store.fs)
            self._figures = dict(found[1].durations) if found is not None else {}
            self._figures_until = now + (FIGURES_S if auto_s(self._figures.get(kind)) else UNKNOWN_S)
        return auto_s(self._figures.get(kind))

    def _keep(self, key: str, name: str, data: bytes) -> None:
        with self.fitness.writing():
            self._scratch.write(key, name, data)
