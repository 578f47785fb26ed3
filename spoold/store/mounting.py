"""How this machine mounts a spool, as heartbeats and the doctor's reports tell it. Reads the mount table only."""

from __future__ import annotations

from spoold.protocol.heartbeat import MountFacts
from spoold.rules.mounting import facts_of
from spoold.system.mounts import mount_of


def mount_facts(root: str) -> MountFacts | None:
    """What matters of the mount on which a directory lies; None where that cannot be told."""
    mount = mount_of(root)
    return facts_of(mount.fstype, mount.options, network=mount.network) if mount is not None else None
