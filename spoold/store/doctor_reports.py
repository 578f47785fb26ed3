"""The doctor's reports in doctor/, for readers; and how nodes mount the spool, with the problems of their mounts.

Law: any other entry in doctor/ belongs to a trial under way, and is passed over. So is a report that cannot be read.
A mount that is unknown is None and no finding. Only the kernel's table of mounts and the nodes' own reports are
asked; the doctor's reports say which mounts are approved.
"""

from __future__ import annotations

from collections.abc import Mapping

from spoold.protocol import codec, layout
from spoold.protocol.doctor_report import Report, ReportName, parse_report
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat, MountFacts
from spoold.rules.share.mount_options import disapproved, facts_of
from spoold.store.existence import reading
from spoold.store.store import Store
from spoold.system.filesystem import FileSystem
from spoold.system.mounts import mount_of


def list_reports(fs: FileSystem) -> list[ReportName]:
    """The reports in the order of their numbers; none if the directory is missing. Errors: OSError."""
    try:
        names = fs.list(layout.DOCTOR)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in map(parse_report, names) if name is not None)


def read_reports(fs: FileSystem) -> dict[ReportName, Report]:
    """Every report that can be read, in the order of their numbers. Errors: OSError if they cannot be listed."""
    found = {}
    for name in list_reports(fs):
        path = layout.join(layout.DOCTOR, name.encode())
        try:
            with reading("report of the doctor", path):
                found[name] = codec.load_model(Report, fs.read(path), path)
        except (OSError, BadFile):
            continue  # superseded meanwhile, or not the doctor's file
    return found


# How nodes mount a spool: this node's report of its mount, and the problems with the mounts of all.


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
