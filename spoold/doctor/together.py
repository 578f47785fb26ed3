"""All trials of several machines, in order.

Law: every member makes the same trials at the same time and in the order of this table. If a member is lost, the
trial ends with NobodyCame and no later one begins.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from spoold.doctor import contest, freshness
from spoold.doctor.alone import Trial
from spoold.doctor.freshness import in_turns
from spoold.doctor.meeting import Group


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


def introduce(group: Group, me: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return host and figures of every member, by node. Errors: NobodyCame, OSError."""
    return group.step("introduced", me)
