"""All trials that one machine makes by itself, in order.

Law: the looks come before the others are waited for, and the trials after that, since machines that one server takes
for one client must know of each other before they open or lock anything. Each trial is announced before it begins, so
that the waiting process knows which one hangs. A trial that fails is a figure, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from spoold.doctor import access, clocks, locks, names, pace, renames
from spoold.doctor.share import Share
from spoold.system.mounts import mount_of

Trial = Callable[[], dict[str, Any]]


def looks(share: Share) -> dict[str, Trial]:
    """Return by name what is only looked at."""
    return {
        "marker": partial(access.look_at_marker, share),
        "mount": partial(_mount, share),
        "space": partial(access.measure_room, share),
    }


def trials(share: Share, room: str, node: str, *, quick: bool) -> dict[str, Trial]:
    """Return the trials by name. quick: for `spool init`: about 1 s on a slow share, with every kind of trial."""
    return {
        "access": partial(access.try_access, share, room),
        "names": partial(names.try_names, share, room),
        "rename": partial(renames.try_renames, share, room),
        "crossing": partial(renames.try_crossing, share, room, node, every_pair=not quick),
        "exclusive": partial(access.try_exclusive, share, room),
        "durability": partial(access.try_durability, share, room),
        "locks": partial(locks.try_locks, share, room),
        "clock": partial(clocks.try_clock, share, room),
        "hints": partial(clocks.try_hints, share, room),
        "race": partial(renames.try_race, share, room, 20 if quick else 50),
        "pace": partial(pace.try_pace, share, room, 5 if quick else 100),
    }


def carry_out(trials: dict[str, Trial]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield each trial twice: its name and None before it begins, and its figures when it is over."""
    for name, trial in trials.items():
        yield name, None
        try:
            figures = trial()
        except OSError as error:
            figures = {"error": f"{error.strerror or error} ({error.filename or ''})"}
        yield name, figures


def _mount(share: Share) -> dict[str, Any]:
    mount = mount_of(share.root)
    if mount is None:
        return {"known": False}
    return {
        "known": True,
        "point": mount.point,
        "fstype": mount.fstype,
        "source": mount.source,
        "network": mount.network,
        "options": list(mount.options),
    }
