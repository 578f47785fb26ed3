"""What a master and a worker have in common as the loop drives them: an opened spool, hints, and how they sleep."""

from __future__ import annotations

from collections.abc import Callable

from spoold.daemon.pulse import Pulse, pulsing
from spoold.store.mounting import mount_facts
from spoold.store.store import Store, open_store
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem

# systemd/system/spool-sleep.service waits for a status that begins with this word.
ASLEEP = "asleep: the machine may sleep"


def open_spool(root: str, writer: str, pulse: Pulse) -> Store:
    """The spool at `root` for one writer. Errors: Unavailable, BadFile, OSError."""
    store = open_store(pulsing(PosixFileSystem(root), pulse), SystemClock(), writer, root)
    store.mount = mount_facts(root)
    return store


<<<<<<< HEAD
=======
class MasterActor:
    """A master with its hints."""

    _WATCHED = (layout.PENDING, layout.RETURNED, layout.COMPLETED, layout.FAILED, layout.CONTROL, layout.MASTER)

    def __init__(self, root: str, name: str | None, pulse: Pulse) -> None:
        self._make: Callable[[], Master] = lambda: _master(root, name, pulse)
        self._master: Master | None = self._make()
        self._bell = Bell()
        self.hints = Hints(root)
        self._leaving = False
        self._led = False
        self._rest_s = 0.0

    def step(self) -> Beat:
        if self._leaving:
            return Beat(busy=False, next_due=None, done=True)
        self._rest_s = 0.0
        if self._master is None:
            return Beat(busy=False, next_due=None)
        self.hints.clear()
        self.hints.watch(self._WATCHED)
        step = self._master.step()
        self._rest_s = step.rest_s
        if step.leading != self._led:
            self._led = step.leading
            log.info("%s", self.describe())
        return Beat(step.busy, step.next_due)

    def wait(self, timeout_s: float) -> None:
        rest_s = min(self._rest_s, timeout_s)
        if not readable(rest_s, self._bell.fileno()):
            readable(timeout_s - rest_s, self._bell.fileno(), self.hints.fileno())
        self._bell.hush()

    def wake(self) -> None:
        self._bell.ring()

    def leave(self, hurry: bool) -> None:
        del hurry  # a master has nothing to finish
        self._leaving = True

    def rest(self, resting: bool) -> None:
        """A leader that sleeps would keep everybody waiting for its lease: it resigns, and comes back as another."""
        if resting and self._master is not None:
            self._master.close()
            self._master, self._led = None, False
        elif not resting and self._master is None:
            self._master = self._make()

    @property
    def resting(self) -> bool:
        return self._master is None

    def close(self) -> None:
        self.hints.close()
        if self._master is not None:
            self._master.close()
        self._bell.close()

    @property
    def idle(self) -> bool:
        return True

    def describe(self) -> str:
        if self._master is None:
            return ASLEEP
        me = self._master.store.writer
        if not self._master.leading:
            return f"{me} stands by; {self._master.leadership.holder} leads"
        return f"{me} leads epoch {self._master.leadership.epoch}"


def _master(root: str, name: str | None, pulse: Pulse) -> Master:
    store = open_spool(root, node_id(name, "m"), pulse)
    restore(store.fs)
    store.open_tmp()
    return Master(store, SystemHost())


class WorkerActor:
    """A worker with its runner, scratch and hints."""

    def __init__(self, root: str, config: WorkerConfig, pulse: Pulse) -> None:
        host = SystemHost()
        can, slots = abilities(config, host)
        store = open_spool(root, node_id(config.name), pulse)
        self._runner = Runner(slots)
        scratch = LocalScratch(store.writer, root, host)
        environ, inhibitor = dict(os.environ), SystemInhibitor() if config.laptop.inhibit_sleep else None
        self._writers = ThreadPoolExecutor(min(slots, WRITERS_MAX), "writer") if store.durable else None
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
        )
        self._host = host
        self._config = config
        self._registered = False
        self.hints = Hints(root)
        # What is ready is worth waking up for only with a slot free.
        self._offers = Hints(root)
        self._watching = False
        self._leaving = False
        self._hurry = False

    def step(self) -> Beat:
        if not self._registered:
            self._register()
        if self._leaving:
            self._worker.drain(0.0 if self._hurry else self._config.drain_grace_s)
        self._watch()
        step = self._worker.step()
        return Beat(step.busy, step.next_due, step.done)

    def _register(self) -> None:
        # What a predecessor left on this machine goes first: only then may its tasks run again elsewhere.
        for left in find_abandoned(self._host):
            killed = sweep({"SPOOL_ROOT": left.spool, "SPOOL_WORKER_ID": left.worker})
            log.info("%s, which ran here before, is gone (%d processes of it killed)", left.worker, killed)
            left.remove()
        for gone in self._worker.register():
            self._worker.report_gone(gone)
        self._registered = True
        self._runner.prestart(1)
        log.info("%s", self.describe())

    def _watch(self) -> None:
        if self.hints.reason is not None:
            return  # no hints here: a listing for their sake would cost a round trip
        self.hints.clear()
        self.hints.watch([layout.CONTROL])
        if self._offers.clear() or not self._watching:
            self._offers.watch([layout.READY])
            lanes = self._worker.store.fs.list(layout.READY)
            self._offers.watch([layout.join(layout.READY, lane) for lane in sorted(lanes)])
            self._watching = True

    def wait(self, timeout_s: float) -> None:
        hungry = len(self._worker.running) < self._worker.slots
        self._runner.wait(timeout_s, self.hints.fileno(), self._offers.fileno() if hungry else -1)

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
        self.hints.close()
        self._offers.close()
        self._worker.close()
        if self._writers is not None:
            self._writers.shutdown(wait=False)

    @property
    def idle(self) -> bool:
        return not self._worker.running

    def describe(self) -> str:
        worker = self._worker
        if worker.asleep:
            return ASLEEP
        return f"{worker.store.writer} runs {len(worker.running)} of at most {worker.slots} tasks"


def abilities(config: WorkerConfig, host: SystemHost) -> tuple[Capabilities, int]:
    """What this worker can serve, and how many slots it has: as configured, else as the machine is."""
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
    )
    return can, config.slots or max(1, int(cpus))


>>>>>>> f356679 (A leader rests as long as that keeps nobody waiting)
def hinted(current: Callable[[], object | None]) -> Callable[[], bool]:
    """Whether the present actor's hints work, so that polls may be rare."""

    def works() -> bool:
        actor = current()
        hints = getattr(actor, "hints", None)
        return hints is not None and hints.reason is None

    return works
