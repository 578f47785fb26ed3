"""All trials of several machines, in order; and before them, who the members are.

Law: a member that speaks after its process was looked for in vain, on a machine of its own identity, runs on a twin
of that machine. Every member makes the same trials at the same time and in the order of this table. If a member is
lost, the trial ends with NobodyCame and no later one begins.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from spoold.doctor import contest, freshness
from spoold.doctor.alone import Trial
from spoold.doctor.freshness import in_turns
from spoold.doctor.meeting import Group, NobodyCame
from spoold.system.host import Host, HostIdentity, ProcessIdentity, surely_gone

EXAMINED_WITHIN_S = 60.0


def trials(group: Group, files: int) -> dict[str, Trial]:
    """The trials by name; each raises NobodyCame when a member is lost."""
    return {
        "freshness": partial(in_turns, group, freshness.see_listed),
        "absent": partial(in_turns, group, freshness.see_absent),
        "moved": partial(in_turns, group, freshness.see_moved),
        "read_rename": partial(in_turns, group, freshness.see_read_rename),
        "replaced": partial(in_turns, group, freshness.see_replaced),
        "beats": partial(freshness.see_beats, group),
        "claims": partial(contest.try_claims, group, files),
        "handover": partial(contest.try_handover, group),
        "locks": partial(contest.try_locks, group),
        "same_destination": partial(contest.try_same_destination, group),
        "noreplace": partial(contest.try_noreplace, group),
        "exclusive": partial(contest.try_exclusive, group),
    }


def introduce(group: Group, host: Host, measured: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return host and figures of every member, by node, and the members that run on a twin of another's machine.

    Errors: NobodyCame, OSError.
    """
    process = host.process()
    me = {"host": asdict(host.identity()), "pid": process.pid, "start": process.start_time, "measured": measured}
    people = group.step("introduced", me)
    try:
        missed = [node for node in group.others if _is_missed(people[node], host)]
    except (KeyError, TypeError):
        raise NobodyCame("not all machines run the same version of spoold; install one version on all") from None
    missed = sorted({node for found in group.step("sought", missed).values() for node in found})
    if missed:
        group.step("alive")  # who speaks now did so after it was looked for
    return people, missed


def _is_missed(said: dict[str, Any], host: Host) -> bool:
    """Whether a process that should be here is not found. Errors: KeyError, TypeError for what is no introduction."""
    return surely_gone(HostIdentity(**said["host"]), ProcessIdentity(said["pid"], said["start"]), host)


def compare(group: Group, measured: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the figures of every member's own trials, by node. Errors: NobodyCame, OSError."""
    return group.step("examined", measured, within_s=EXAMINED_WITHIN_S)
