"""A worker for the loop: with its runner, scratch and hints, and its own node id.

Law: the processes of dead workers of this machine are killed before these workers are reported as gone: only then may
their tasks run again elsewhere. A ready task wakes a worker only while a slot is free.

Touches: the environment.
"""

from __future__ import annotations

import logging
import os

from spoold.daemon.loop import ASLEEP, StepResult, open_spool
from spoold.daemon.node_ids import node_id
from spoold.daemon.progress_watch import Pulse
from spoold.protocol import layout
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, ShutOut
from spoold.protocol.heartbeat import Capabilities
from spoold.rules.workers.matching import runs_no_commands
from spoold.runner import freezer, start_checks
from spoold.runner.job_runner import Runner, sweep
from spoold.system.hardware import SystemInhibitor
from spoold.system.hints import Hints
from spoold.system.host import SystemHost, succeed
from spoold.system.scratch import LOANS, LocalScratch, find_abandoned
from spoold.system.slot_loans import LocalLoans
from spoold.worker.attempts.settling import Writers
from spoold.worker.handlers.availability import Lookup
from spoold.worker.handlers.job_preparation import inherited, passed_on
from spoold.worker.handlers.worker_config import WorkerConfig
from spoold.worker.worker import Worker

log = logging.getLogger("spoold")


class WorkerActor:
    """A worker with its runner, scratch and hints."""

    def __init__(self, root: str, config: WorkerConfig, pulse: Pulse, outlived: list[str]) -> None:
        """outlived: what this process lost when it was taken for dead, over all its names; it grows."""
        host = SystemHost()
        can, slots = abilities(config, host)
        store = open_spool(root, node_id(config.name), pulse)
        self._runner = Runner(slots, calls=_interpreter(config), environ=passed_on(config, os.environ))
        self._scratch = scratch = LocalScratch(store.writer, root, host)
        self._lent = LocalLoans(f"{scratch.root}/{LOANS}", scratch.put_aside)
        environ, inhibitor = dict(os.environ), SystemInhibitor() if config.laptop.inhibit_sleep else None
        self._writers = Writers(slots) if store.durable else None
        self._worker = Worker(
            store,
            host,
            self._runner,
            scratch,
            config,
            can,
            slots,
            root=root,
            environ=environ,
            inhibitor=inhibitor,
            writers=self._writers,
            found=Lookup(config, inherited(config, environ), store.clock, environ),
            outlived=tuple(outlived),
            loans=self._lent,
        )
        self._host, self._outlived = host, outlived
        self._config, self._can = config, can
        self._registered, self._left = False, set[str]()
        self.hints = Hints(root)
        # Hints of ready tasks; they wake the worker only while a slot is free.
        self._offers = Hints(root)
        self._loans = Hints(self._lent.directory)  # a task that lends its slot, or wants it back
        self._watching = False
        self._leaving = False
        self._hurry = False

    @property
    def runner(self) -> Runner:
        """The runner of its tasks."""
        return self._runner

    def step(self) -> StepResult:
        if not self._registered:
            self._register()
        if self._leaving:
            self._worker.drain(0.0 if self._hurry else self._config.drain_grace_s)
        self._watch()
        try:
            step = self._worker.step()
        except ShutOut:
            self._outlived[:] = self._worker.outlived
            raise
        return StepResult(step.busy, step.next_due, step.done)

    def _register(self) -> None:
        # Processes of a dead predecessor on this machine end first: only then may its tasks run again elsewhere.
        abandoned = find_abandoned(self._host)
        for left in abandoned:
            killed = sweep({"SPOOL_ROOT": left.spool, "SPOOL_WORKER_ID": left.worker})
            log.info("%s, which ran here before, is gone (%d processes of it killed)", left.worker, killed)
        self._scratch.take_over(abandoned)
        if ended := freezer.sweep(freezer.home()):
            log.info("removed %s of dead workers, and killed their processes", amount(ended, "control group"))
        self._left |= {left.worker for left in abandoned} | succeed(self._worker.store.writer)
        self._worker.register(self._left)
        self._registered = True
        self._runner.prestart(1)
        log.info("%s", self.describe())
        if remark := runs_no_commands(self._can):
            log.info("%s %s", self._worker.store.writer, remark)

    def _watch(self) -> None:
        self._loans.clear()
        self._loans.watch([""])
        if self.hints.reason is not None:
            return  # no hints here, so a listing for them would waste a round trip
        self.hints.clear()
        self.hints.watch([layout.CONTROL])
        if self._offers.clear() or not self._watching:
            self._offers.watch([layout.READY])
            lanes = self._worker.store.fs.list(layout.READY)
            self._offers.watch([layout.join(layout.READY, lane) for lane in sorted(lanes)])
            self._watching = True

    def wait(self, timeout_s: float) -> None:
        hungry = self._worker.vacancies.free(len(self._worker.running)) > 0
        offers = self._offers.fileno() if hungry else -1
        self._runner.wait(timeout_s, self.hints.fileno(), self._loans.fileno(), offers)

    def wake(self) -> None:
        self._runner.wake()

    def leave(self, hurry: bool) -> None:
        self._leaving, self._hurry = True, hurry

    def rest(self, resting: bool) -> None:
        if resting:
            self._worker.fall_asleep()
        else:
            self._worker.wake_up()

    @property
    def resting(self) -> bool:
        return self._worker.asleep

    def close(self) -> None:
        self._loans.close()
        self.hints.close()
        self._offers.close()
        self._worker.close()
        self._lent.close()
        if self._writers is not None:
            self._writers.close()

    @property
    def idle(self) -> bool:
        return not self._worker.running

    @property
    def trouble(self) -> str | None:
        ended = (attempt for attempt in self._worker.running if attempt.over)
        return next((note for attempt in ended for note in attempt.notes), self._worker.shortage)

    def describe(self) -> str:
        worker = self._worker
        if worker.asleep:
            return ASLEEP
        running = min(len(worker.running), worker.slots)  # a task that waits in a slot does not run
        return f"{worker.store.writer} runs {running} of at most {amount(worker.slots, 'task')}"


def _interpreter(config: WorkerConfig) -> str:
    """Return the interpreter of callables. Errors: BadFile if another than the worker's own cannot call any."""
    python = config.python.interpreter
    if python is not None and (why := start_checks.useless(python)) is not None:
        fix = "name a Python of 3.11 or newer, such as /srv/mytools/.venv/bin/python."
        raise BadFile(config.place("python"), "interpreter", f"{python} {why}.", fix)
    return config.python.executable


def abilities(config: WorkerConfig, host: SystemHost) -> tuple[Capabilities, int]:
    """Return a worker's capabilities and its number of slots: from its configuration, else from the machine."""
    capacity = host.capacity()
    cpus = config.cpus or capacity.cpus
    can = Capabilities(
        cpus=cpus,
        mem_mb=config.mem_mb or capacity.mem_mb,
        gpus=capacity.gpus if config.gpus is None else config.gpus,
        labels=config.labels,
        types=config.types,
        handlers=tuple(sorted(config.handlers)),
        pools=config.pools,
        allow_command=config.allow_command,
        python=config.python.allow,
        about={kind: handler.about for kind, handler in sorted(config.handlers.items()) if handler.about},
        instead={kind: handler.instead for kind, handler in sorted(config.handlers.items()) if handler.instead},
    )
    return can, config.slots or max(1, int(cpus))
