"""All trials that one machine makes by itself, in order.

Law: the looks come before the others are waited for, and the trials after that, since machines that one server takes
for one client must know of each other before they open or lock anything. Each trial is announced before it begins, so
that the waiting process knows which one hangs. A trial that fails is a figure, and the others go on.

Touches: threads, the clock, the environment.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from spoold.doctor import shared_trials
from spoold.doctor.shared_trials import outcome
from spoold.doctor.trial_share import LockKind, Share, name_of
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lanes import Lane
from spoold.protocol.names import COUNT_MAX, DELAY_MAX_MS, ID_MAX, TaskName
from spoold.protocol.settings import Marker
from spoold.rules.share.trial_findings import NO_ANSWER
from spoold.system.hints import Hints
from spoold.system.mounts import mount_of
from spoold.system.permissions import umask
from spoold.system.wakeup import readable

Trial = Callable[[], dict[str, Any]]


def looks(share: Share) -> dict[str, Trial]:
    """Return by name what is only looked at."""
    return {
        "marker": partial(look_at_marker, share),
        "mount": partial(_mount, share),
        "space": partial(measure_room, share),
    }


def trials(share: Share, room: str, node: str, *, quick: bool) -> dict[str, Trial]:
    """Return the trials by name. quick: for `spool init`: about 1 s on a slow share, with every kind of trial."""
    return {
        "access": partial(try_access, share, room),
        "names": partial(try_names, share, room),
        "rename": partial(shared_trials.try_renames, share, room),
        "crossing": partial(shared_trials.try_crossing, share, room, node, every_pair=not quick),
        "exclusive": partial(try_exclusive, share, room),
        "durability": partial(try_durability, share, room),
        "locks": partial(try_locks, share, room),
        "clock": partial(try_clock, share, room),
        "hints": partial(try_hints, share, room),
        "race": partial(shared_trials.try_race, share, room, 20 if quick else 50),
        "pace": partial(shared_trials.try_pace, share, room, 5 if quick else 100),
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


# Trials of permission to write, exclusive creation, fsync and free space.


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


# Trials of the server's clock against this machine's, the resolution of mtimes, and change hints.


HINT_WITHIN_S = 1.0
LOOKS = 12


def try_clock(share: Share, room: str) -> dict[str, Any]:
    """Figures of `clock`: the mtime of a file that was just written is the server's time. Errors: OSError."""
    offsets: list[float] = []
    stamps: list[int] = []
    for number in range(LOOKS):
        file = layout.join(room, f"clock.{number}")
        before = time.time()
        share.write(file, b"x", durable=False)
        stamp = share.stat(file).mtime_ns
        offsets.append(stamp / 1e9 - (before + time.time()) / 2)
        stamps.append(stamp)
    steps = [after - before for before, after in pairwise(sorted(set(stamps)))]
    # The median: an offset from a call that had to wait is worth less than the others.
    return {"offset_s": round(sorted(offsets)[LOOKS // 2], 3), "mtime_step_ns": min(steps, default=None)}


def try_hints(share: Share, room: str) -> dict[str, Any]:
    """Figures of `hints`: whether this machine gets a hint of its own change within one second."""
    works, hints = False, Hints(share.root)
    try:
        hints.watch([room])
        if hints.reason is None:
            share.write(layout.join(room, "hint"), b"", durable=False)
            works = bool(readable(HINT_WITHIN_S, hints.fileno()))
        reason = hints.reason or ("" if works else "no hint came for a new file")
    finally:
        hints.close()
    return {"works": works, "reason": reason}


# Trials of whether a lock excludes a second one on this machine; `contest` tries several machines.


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


# Trials of names: those that spoold makes must be listed as they were written.


# As many bytes as a name may have.
LONGEST = "5000.hff58yhhc0-3." + "n" * 224 + ".a1f0c0.json"
# Every character of the grammar of tasks and of lanes, and the longest name.
MADE = (
    "4990.hff58yhhc0-3.Build_=+,.-x.a2f1c0r1500d.json",
    "type=build,run=command,cpu=1.5,mem=4096,need=docker+node",
    LONGEST,
)
# The longest lane that there may be, and in it the longest task: some servers limit the whole path.
LANE = Lane("t" * 48, run="command", need=("a" * 48, "b" * 48, "c" * 31)).encode()
TASK = TaskName(
    5000, "hff58yhhc0-zzzzzz", "n" * ID_MAX, COUNT_MAX, COUNT_MAX, COUNT_MAX, DELAY_MAX_MS, conditional=True
).encode()


def try_names(share: Share, room: str) -> dict[str, Any]:
    """Figures of `names`. Errors: OSError."""
    place = layout.join(room, "names")
    share.mkdir(place)
    lost = [_short(name) for name in MADE if not _survives(share, place, name)]
    if not _holds_lane(share, place):
        lost.append(f"{_short(LANE)}/{_short(TASK)}")
    share.write(layout.join(place, "case"), b"", durable=False)
    share.write(layout.join(place, "CASE"), b"", durable=False)
    return {
        "lost": lost,
        "case_sensitive": {"case", "CASE"} <= set(share.list(place)),
        "unicode": _survives(share, place, "Grüße ☃.json"),
    }


def _survives(share: Share, place: str, name: str) -> bool:
    with contextlib.suppress(OSError):
        share.write(layout.join(place, name), b"", durable=False)
        return name in share.list(place)
    return False


def _holds_lane(share: Share, place: str) -> bool:
    lane = layout.join(place, LANE)
    with contextlib.suppress(OSError):
        share.mkdir(lane)
        return LANE in share.list(place) and _survives(share, lane, TASK)
    return False


def _short(name: str) -> str:
    return name if len(name) < 80 else f"{name[:24]}… ({len(name)} bytes)"
