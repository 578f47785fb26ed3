"""A token in claimed/<me>/ → a running job, or an attempt that is decided because it cannot run here."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules import outcome as outcomes
from spoold.rules.gates import conditions_of
from spoold.store.dependencies import write_dependencies
from spoold.store.journal import Journal
from spoold.store.regular import regular
from spoold.store.store import Store
from spoold.system.scratch import Scratch
from spoold.worker.attempt import Attempt
from spoold.worker.config import WorkerConfig
from spoold.worker.fitness import Fitness
from spoold.worker.job import RunnerPort
from spoold.worker.preparing import CannotRun, Place, inherited, prepare

REFUSED_S = 5.0
_NO_TASK = Task.model_validate({"type": "invalid"})


class _LeaseOver(Exception):
    """Preparing took so long that others may have been given the task meanwhile."""


class Starting:
    """Starts what this worker has claimed, as long as its lease lasts. lease_until in seconds of CLOCK_BOOTTIME."""

    def __init__(
        self,
        store: Store,
        runner: RunnerPort,
        scratch: Scratch,
        config: WorkerConfig,
        journal: Journal,
        *,
        root: str,
        environ: Mapping[str, str],
    ) -> None:
        self._store = store
        self._runner = runner
        self._scratch = scratch
        self._config = config
        self._journal = journal
        self._root = root
        self._base = inherited(config, environ)
        self._since: dict[str, float] = {}
        self.fitness = Fitness(store.clock)
        self.lease_until = 0.0

    def start(self, name: TaskName) -> Attempt | None:
        """Start the task. What cannot be run comes back decided.

        None when its file cannot be read just now, or when the lease is over: then the next listing of the claims
        tells whether it is still this worker's to start.
        """
        worker, wall, file = self._store.writer, self._store.clock.wall(), name.encode()
        path = layout.claimed(worker, file)
        try:
            with regular(path):
                data = self._store.fs.read(path)
            self._since.pop(file, None)
            task = codec.load_task(data, path)
        except OSError as error:
            return self._unreadable(name, error)
        except BadFile as error:
            attempt = Attempt(name, worker, _NO_TASK, Lane("invalid"), wall)
            attempt.decided = outcomes.failure(Code.INVALID_TASK, str(error), final=True)
            return attempt
        attempt = Attempt(name, worker, task, task.lane, wall)
        try:
            self._run(attempt, data)
        except _LeaseOver:
            self._scratch.close(attempt.key)
            return None
        except CannotRun as error:
            attempt.decided, attempt.unable = error.outcome, True
        except (OSError, RuntimeError) as error:
            attempt.decided = outcomes.not_started(f"this worker cannot start it now: {error}")
        except (ValueError, TypeError) as error:
            # Whatever is wrong with it is wrong again next time: it must cost the task something.
            attempt.decided = outcomes.failure(Code.SPAWN_FAILED, f"it cannot be started: {error}")
        return attempt

    def _unreadable(self, name: TaskName, error: OSError) -> Attempt | None:
        """A share may refuse for a moment. One that goes on refusing means that the file is not ours to read, and a
        claim that never starts would hold its task for ever.
        """
        now = self._store.clock.monotonic()
        since = self._since.setdefault(name.encode(), now)
        if error.errno not in (errno.EACCES, errno.EPERM) or now - since < REFUSED_S:
            return None
        attempt = Attempt(name, self._store.writer, _NO_TASK, Lane("invalid"), self._store.clock.wall())
        message = f"this worker may not read the task's file ({error.strerror}); let its user read what is dropped"
        attempt.decided = outcomes.failure(Code.SPAWN_FAILED, message)
        return attempt

    def _run(self, attempt: Attempt, data: bytes) -> None:
        with self.fitness.asked():
            folder = self._scratch.open(attempt.key)
        place = Place(self._store.writer, self._root, folder)
        job = prepare(attempt.task, attempt.name, place, self._config, self._store.settings, self._base)
        moment = conditions_of(attempt.task).deadline
        if moment is not None:
            left_s = max(0.001, moment - self._store.clock.wall())
            if job.timeout_s is None or left_s < job.timeout_s:
                attempt.deadline_cut = True
                job = replace(job, timeout_s=left_s)
        self._keep(attempt.key, "task.json", data)
        write_dependencies(self._store.fs, attempt.task, partial(self._keep, attempt.key))
        if self._store.clock.boottime() >= self.lease_until:
            raise _LeaseOver
        with self.fitness.asked():
            self._runner.start(job)
        self.fitness.proved()
        self._journal.note("STARTED", attempt.name.id, attempt.name.attempt, type=attempt.task.kind)

    def _keep(self, key: str, name: str, data: bytes) -> None:
        with self.fitness.asked():
            self._scratch.write(key, name, data)
