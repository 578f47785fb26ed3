"""What moves to the archive, which is what has ended long ago or is too much; and what is deleted for good.

Law: the leader counts the age of a task that ended under it from when it first saw that, on its own clock, and of
any other from the stamp of its result: a change of leader makes no task younger. It deletes by the server's stamps,
in days, where minutes do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spoold.protocol.lifecycle import State
from spoold.protocol.settings import RetentionSettings

# However far off the next deletion is, a directory is looked through this often (s): clocks can be set.
LOOK_AGAIN_S = 86400.0


@dataclass(frozen=True, slots=True)
class Stay:
    """For how long (s) ended tasks of one state stay where people look first, and how many of them at most."""

    max_age_s: float
    keep: int


def stay(state: State, settings: RetentionSettings, *, clear_all: bool) -> Stay:
    """For how long tasks that ended in this state stay. clear_all: a request has all of them archived now."""
    if clear_all:
        return Stay(0.0, 0)
    return Stay(settings.completed_s if state is State.COMPLETED else settings.failed_s, settings.keep)


def due(seen: Mapping[str, float], now: float, max_age_s: float, keep: int) -> list[str]:
    """Names to be archived now, oldest first.

    seen: name → when it ended (monotonic, s).
    """
    excess = max(0, len(seen) - keep)
    names: list[str] = []
    for index, (name, since) in enumerate(sorted(seen.items(), key=lambda pair: pair[1])):
        if index >= excess and now - since < max_age_s:
            break
        names.append(name)
    return names


def too_old(age_s: float, limit_s: float) -> bool:
    """Whether a file of this age (s) is to be deleted, where it may stay for limit_s."""
    return age_s > limit_s


def none_due_s(ages: Iterable[float], settings: RetentionSettings) -> float:
    """For how long (s) nothing in a directory of the archive is to be deleted.

    ages: of the tasks that stay in it (s). What comes into it meanwhile has been ended for a while already.
    """
    least_s = settings.archive_s - max(settings.completed_s, settings.failed_s)
    return min([LOOK_AGAIN_S, least_s, *(settings.archive_s - age_s for age_s in ages)])
