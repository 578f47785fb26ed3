"""Trials that one machine makes by itself and several make together: renames, claims by several threads at once, and
the time that each operation takes.

Law: touches its room, and one empty file whose name begins with a dot that visits the directories of the tree. A
claim is made as a worker makes it, with a look after every error. Of the time, one round is always measured, however
slow the share is, and no other begins after WITHIN_S.

Touches: threads, the clock.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations, pairwise
from typing import Any

from spoold.doctor.trial_share import HOPPING, Share, name_of
from spoold.protocol import layout
from spoold.store import mover

THREADS = 4


def outcome(act: Callable[[], object]) -> str:
    """Call act; return "done" or the error's name."""
    try:
        act()
    except OSError as error:
        return name_of(error)
    return "done"


def try_renames(share: Share, room: str) -> dict[str, Any]:
    """Figures of `rename`. Errors: OSError."""
    place = layout.join(room, "rename")
    share.mkdir(place)
    for name in ("a", "b", "c", "d"):
        share.write(layout.join(place, name), name.encode(), durable=False)
    for name in ("one", "two"):
        share.mkdir(layout.join(place, name))

    def moved(src: str, dst: str) -> str:
        return outcome(lambda: share.rename(layout.join(place, src), layout.join(place, dst)))

    return {
        "over": moved("a", "b"),
        "into": moved("b", "one/b"),
        "directory": moved("two", "one/two"),
        "over_directory": moved("c", "one"),
        "noreplace": outcome(lambda: share.rename_noreplace(layout.join(place, "c"), layout.join(place, "d"))),
    }


def try_crossing(share: Share, room: str, node: str, *, every_pair: bool) -> dict[str, Any]:
    """Figures of `crossing`: one file goes round all directories of the tree, or along every pair of them.

    A directory that cannot be left or entered is listed once for each pair, and the walk goes on. Without a tree, two
    directories of the room stand for it. Errors: OSError.
    """
    present = set(share.list(""))
    tree = [name for name in layout.TREE if name in present and name != layout.DOCTOR]
    if layout.MARKER not in present or len(tree) < 2:
        tree = [layout.join(room, "one"), layout.join(room, "two")]
        for directory in tree:
            share.mkdir(directory)
    name = f"{HOPPING}{node}"
    failed: list[str] = []
    pairs = list(combinations(tree, 2) if every_pair else _round(tree))
    for one, other in pairs:
        failed += _there_and_back(share, one, other, name)
    return {"pairs": len(pairs), "failed": failed}


def _there_and_back(share: Share, one: str, other: str, name: str) -> list[str]:
    """Make a file in one directory, rename it to the other and back; return the failure, if any."""
    here, there = layout.join(one, name), layout.join(other, name)
    made = outcome(lambda: share.write(here, b"", durable=False))
    if made != "done":
        return [f"{one}: {made}"]
    said = outcome(lambda: share.rename(here, there))
    if said == "done":
        said = outcome(lambda: share.rename(there, here))
    outcome(lambda: share.unlink(here))
    return [] if said == "done" else [f"{one}→{other}: {said}"]


def _round(tree: Iterable[str]) -> Iterator[tuple[str, str]]:
    listed = list(tree)
    return pairwise([*listed, listed[0]])


def try_race(share: Share, room: str, files: int) -> dict[str, Any]:
    """Figures of `race`: threads of this machine claim the same files, each into a directory of its own."""
    place = layout.join(room, "race")
    for name in ("", "ready", *map(str, range(THREADS))):
        share.mkdir(layout.join(place, name) if name else place)
    names = [f"{number}.json" for number in range(files)]
    for name in names:
        share.write(layout.join(place, "ready", name), b"", durable=False)
    won: list[list[str]] = [[] for _ in range(THREADS)]

    def claim(me: int) -> None:
        # Half of them begin at the other end, and all meet in the middle.
        for name in names if me % 2 else reversed(names):
            if mover.move(share, layout.join(place, "ready", name), layout.join(place, str(me), name)):
                won[me].append(name)

    threads = [threading.Thread(target=claim, args=(me,), daemon=True) for me in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"files": files, **count_wins(names, won)}


def count_wins(names: Iterable[str], won: Iterable[Iterable[str]]) -> dict[str, int]:
    """Return how many names were won by more than one, and how many by none."""
    counts = Counter(name for winner in won for name in winner)
    return {
        "doubled": sum(count > 1 for count in counts.values()),
        "lost": sum(counts[name] == 0 for name in names),
    }


# Trials of the time that each operation takes: median, 99th percentile and maximum, in milliseconds.


_DATA = b"x" * 512
WITHIN_S = 5.0


def try_pace(share: Share, room: str, rounds: int) -> dict[str, Any]:
    """Figures of `pace`: of as many rounds as fit into WITHIN_S. Errors: OSError."""
    place = layout.join(room, "pace")
    share.mkdir(place)
    times: dict[str, list[float]] = {}

    def timed(name: str, act: Callable[..., object], *words: str) -> None:
        before = time.perf_counter()
        act(*words)
        times.setdefault(name, []).append(1000 * (time.perf_counter() - before))

    end = time.monotonic() + WITHIN_S
    for number in range(rounds):
        if number and time.monotonic() > end:
            break
        file, moved, folder = (layout.join(place, f"{kind}{number}") for kind in ("f", "m", "d"))
        timed("write", partial(share.write, data=_DATA, durable=False), file)
        timed("write_fsync", partial(share.write, data=_DATA, durable=True), f"{file}s")
        timed("rename", share.rename, file, moved)
        timed("list", share.list, place)
        timed("read", share.read, moved)
        timed("mkdir", share.mkdir, folder)
        timed("rmdir", share.rmdir, folder)
        timed("unlink", share.unlink, moved)
    return {name: spread(measured) for name, measured in times.items()}


def spread(times: list[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum."""
    ordered = sorted(times)
    return {
        "p50_ms": round(ordered[len(ordered) // 2], 2),
        "p99_ms": round(ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], 2),
        "max_ms": round(ordered[-1], 2),
    }
