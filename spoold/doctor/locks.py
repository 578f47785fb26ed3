"""Trials of whether a lock excludes a second one on this machine; `contest` tries several machines.

Law: a lock without an answer must not end the examination: NFS 3 waits for the server's lock daemon, or for the end
of its grace time, while the share itself works. So a thread asks, and is left behind if need be.

Touches: threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from spoold.doctor.share import LockKind, Share, name_of
from spoold.protocol import layout
from spoold.rules.share.checkup import NO_ANSWER

WITHIN_S = 10.0


def try_locks(share: Share, room: str) -> dict[str, Any]:
    """Figures of `locks`. Errors: OSError."""
    file = layout.join(room, "lock")
    share.write(file, b"", durable=False)
    flock = answered(lambda: _excludes(share, file, "flock"))
    return {
        "flock": flock,
        "ofd": NO_ANSWER if flock == NO_ANSWER else answered(lambda: _excludes(share, file, "ofd")),
    }


def answered(ask: Callable[[], str], within_s: float = WITHIN_S) -> str:
    """Return the answer to a question about locks, or NO_ANSWER after within_s seconds."""
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(ask()), daemon=True)
    thread.start()
    thread.join(within_s)
    return said[0] if said else NO_ANSWER


def _excludes(share: Share, file: str, kind: LockKind) -> str:
    try:
        with share.locked(file, kind) as first, share.locked(file, kind) as second:
            return "granted twice" if first and second else "excludes" if first else "refused"
    except OSError as error:
        return name_of(error)
