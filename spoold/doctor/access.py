"""Trials of permission to write, exclusive creation, fsync and free space.

Law: files are made in the room alone; the directories of the tree are asked, and nothing is written there. A damaged
marker is a figure, and not an error.

Touches: the environment.
"""

from __future__ import annotations

import os
from typing import Any

from spoold.doctor.renames import outcome
from spoold.doctor.share import Share
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.settings import Marker
from spoold.system.sharing import umask


def look_at_marker(share: Share) -> dict[str, Any]:
    """Figures of `marker`. Errors: OSError."""
    if layout.MARKER not in share.list(""):
        return {"present": False, "spool_id": "", "claim": ""}
    try:
        marker = codec.load_model(Marker, share.read(layout.MARKER), layout.MARKER)
    except BadFile as error:
        return {"present": True, "spool_id": "", "claim": "", "problem": str(error)}
    return {"present": True, "spool_id": marker.spool_id, "claim": marker.claim}


def measure_room(share: Share) -> dict[str, Any]:
    """Figures of `space`. Errors: OSError."""
    usage = share.usage()
    mib = 1 << 20
    return {
        "free_mb": usage.free_bytes // mib if usage.total_bytes else None,
        "total_mb": usage.total_bytes // mib,
        "free_inodes": usage.free_inodes,
    }


def try_access(share: Share, room: str) -> dict[str, Any]:
    """Figures of `access`. Errors: OSError."""
    place = layout.join(room, "access")
    share.mkdir(place)
    file, directory = layout.join(place, "file"), layout.join(place, "directory")
    share.write(file, b"", durable=False)
    share.mkdir(directory)
    (file_mode, owner), (dir_mode, _) = share.mode(file), share.mode(directory)
    present = set(share.list(""))
    tree = [name for name in layout.TREE if name in present] if layout.MARKER in present else []
    return {
        "uid": os.geteuid(),
        "owner": owner,
        "umask": "" if (mask := umask()) is None else f"{mask:04o}",
        "file_mode": f"{file_mode:04o}",
        "dir_mode": f"{dir_mode:04o}",
        "denied": [name for name in tree if not share.writable(name)],
    }


def try_exclusive(share: Share, room: str) -> dict[str, Any]:
    """Figures of `exclusive`. Errors: OSError."""
    place = layout.join(room, "exclusive")
    share.mkdir(place)
    file, directory = layout.join(place, "file"), layout.join(place, "directory")
    share.create_exclusive(file)
    share.mkdir(directory)
    return {
        "file": outcome(lambda: share.create_exclusive(file)) == "EEXIST",
        "directory": outcome(lambda: share.mkdir(directory)) == "EEXIST",
    }


def try_durability(share: Share, room: str) -> dict[str, Any]:
    """Figures of `durability`. Errors: OSError."""
    file = layout.join(room, "durable")
    return {
        "file": outcome(lambda: share.write(file, b"x" * 4096, durable=True)),
        "directory": outcome(lambda: share.sync(room)),
    }
