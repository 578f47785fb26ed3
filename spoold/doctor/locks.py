"""Whether a lock excludes a second one of this machine. What other machines see of it is for `contest`."""

from __future__ import annotations

from typing import Any

from spoold.doctor.share import LockKind, Share, name_of
from spoold.protocol import layout


def try_locks(share: Share, room: str) -> dict[str, Any]:
    """Figures of `locks`. Errors: OSError."""
    file = layout.join(room, "lock")
    share.write(file, b"", durable=False)
    return {"flock": _excludes(share, file, "flock"), "ofd": _excludes(share, file, "ofd")}


def _excludes(share: Share, file: str, kind: LockKind) -> str:
    try:
        with share.locked(file, kind) as first, share.locked(file, kind) as second:
            return "granted twice" if first and second else "excludes" if first else "refused"
    except OSError as error:
        return name_of(error)
