"""Does this worker want more work just now? Not while the share is full, or the machine has enough to do.

Law: it only stops new claims and leaves running tasks alone. Where nothing is offered, nothing is asked and no reason
is kept. An unknown figure is no reason.
"""

from __future__ import annotations

from spoold.store.polling import Polling
from spoold.store.store import Store
from spoold.system.host import Host
from spoold.worker.config import WorkerConfig

# How often (s) the share is asked for its room, where that costs a round trip.
EVERY_S = 2.0


class Pressure:
    """Why a worker with free slots takes no task; full: the share is. Reads its free room and the machine's load."""

    def __init__(self, store: Store, host: Host, config: WorkerConfig, cpus: float) -> None:
        self._store = store
        self._host = host
        self._config = config
        self._cpus = cpus
        self._polling = Polling(store)
        self.why: str | None = None
        self.full = False

    @property
    def notes(self) -> tuple[str, ...]:
        """The reason, as a note for people."""
        return (self.why,) if self.why else ()

    def lost(self, offered: bool) -> bool:
        """Whether nothing new is taken now; `why` then has the reason. offered: whether there is anything to take.

        Errors: OSError.
        """
        if not offered:
            self.why, self.full = None, False
        elif self._polling.take("room", EVERY_S):
            self.why = self._reason()
        return self.why is not None

    def _reason(self) -> str | None:
        room = self._store.room()
        self.full = room.full
        if room.full:
            return f"{room.value}: nothing new is started"
        if self._config.max_load is None and not self._config.min_free_mb:
            return None
        load = self._host.load("/")
        busy, free_mb, most = load.load1, load.mem_available_mb, self._config.max_load
        if most is not None and busy is not None and busy / self._cpus > most:
            return f"the load of {busy:.1f} on {self._cpus:g} cpus is above max_load: nothing new is started"
        if free_mb is not None and free_mb < self._config.min_free_mb:
            return f"only {free_mb} MiB are available, less than min_free_mb: nothing new is started"
        return None
