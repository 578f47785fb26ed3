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


def hinted(current: Callable[[], object | None]) -> Callable[[], bool]:
    """Whether the present actor's hints work, so that polls may be rare."""

    def works() -> bool:
        actor = current()
        hints = getattr(actor, "hints", None)
        return hints is not None and hints.reason is None

    return works
