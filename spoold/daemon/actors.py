"""Code for masters and workers in the loop: an opened spool, hints, and the status during sleep.

Law: the pulse sees each call that an opened store makes through its file-system port, so that a call that hangs has a
name. ASLEEP begins with the word that `spool-sleep.service` waits for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial

from spoold.daemon.pulse import Pulse, pulsing
from spoold.protocol import layout
from spoold.rules.share.sharing import node_remark
from spoold.store.mount_facts import mount_facts
from spoold.store.store import Store, largest, open_store
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem
from spoold.system.sharing import owners_of

log = logging.getLogger("spoold")

# systemd/system/spool-sleep.service waits for a status that begins with this word.
ASLEEP = "asleep: the machine may sleep"


def open_spool(root: str, writer: str, pulse: Pulse) -> Store:
    """Open the spool at `root` for one writer. Errors: Unavailable, BadFile, OSError."""
    fs = PosixFileSystem(root, layout.PRIVATE)
    store = open_store(pulsing(fs, pulse), SystemClock(), writer, root)
    fs.whole = largest(store.basics)
    store.mount = partial(mount_facts, root)
    if not fs.forgets:  # an SMB mount shows modes that it invents
        _warn_of_owners(root)
    return store


@cache
def _warn_of_owners(root: str) -> None:
    """Warn, once in a process, if owner and umask would keep other nodes from this node's files."""
    f = owners_of(root, layout.TREE)
    said = node_remark(
        f.uid, f.owner, f.group, f.root_mode, f.umask, f.unshared, member=f.member, primary=f.primary, where=root
    )
    if said is not None:
        log.warning("%s", said)


def hinted(current: Callable[[], object | None]) -> Callable[[], bool]:
    """Return a function that says whether the present actor's hints work, so that polls may be rare."""

    def works() -> bool:
        actor = current()
        hints = getattr(actor, "hints", None)
        return hints is not None and hints.reason is None

    return works
