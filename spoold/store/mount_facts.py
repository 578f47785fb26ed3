"""How nodes mount a spool: this node's report of its mount, and the problems with the mounts of all.

Law: a mount that is unknown is None and no finding. Only the kernel's table of mounts and the nodes' own reports are
asked; the doctor's reports say which mounts are approved.
"""

from __future__ import annotations

from collections.abc import Mapping

from spoold.protocol.heartbeat import Heartbeat, MountFacts
from spoold.rules.share.mount_options import disapproved, facts_of
from spoold.store.reports import read_reports
from spoold.store.store import Store
from spoold.system.mounts import mount_of


def mount_facts(root: str) -> MountFacts | None:
    """The facts about the mount of a directory that affect safety; None if they are unknown."""
    mount = mount_of(root)
    return facts_of(mount.fstype, mount.options, network=mount.network) if mount is not None else None


def mounts_of(beats: Mapping[str, Heartbeat]) -> dict[str, MountFacts]:
    """The mounts that nodes have reported, by node."""
    return {node: beat.mount for node, beat in beats.items() if beat.mount is not None}


def mount_warnings(store: Store, mounts: Mapping[str, MountFacts]) -> list[str]:
    """The nodes that mount the spool in a way that the doctor has not approved. Errors: OSError.

    Nothing is read if all nodes are on local disks.
    """
    shared = any(mount.network for mount in mounts.values())
    reports = read_reports(store.fs).values() if shared else ()
    return disapproved(mounts, reports, store.marker.claim)
