"""Trials of when a machine sees the changes of another. Each machine acts in turn, the others look.

Law: clocks of two machines are not compared. Cause decides what must be seen: a machine that sees the second change
of another must find the first one too.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from spoold.doctor.meeting import NUDGE_EVERY_S, Group, folded, until
from spoold.doctor.pace import spread
from spoold.doctor.share import name_of

LATE_S = 5.0
STAT_S = 3.0
ROUNDS = 8
BURST = 6
BEATS = 15
BEAT_EVERY_S = 0.1
BEATS_WITHIN_S = 20.0  # on SMB each call may take 0.1 s, and each beat needs several

Turn = Callable[[Group, str], Mapping[str, Mapping[str, Any]]]


def in_turns(group: Group, turn: Turn) -> dict[str, Any]:
    """Fold the figures of all turns; every member acts once, the others look. Errors: NobodyCame, OSError."""
    words: dict[str, Mapping[str, Any]] = {}
    for actor in group.members:
        words |= {f"{actor} {member}": word for member, word in turn(group, actor).items()}
    return folded(words)


def _prepare(group: Group, actor: str, *folders: str) -> None:
    if group.node == actor:
        for folder in folders:
            group.share.mkdir(group.at(folder))
    group.step(f"{folders[0]}.made")


def _deep(group: Group, actor: str, kind: str) -> str:
    """Make a directory that no step lists, with a parent that no step lists: either would refresh an NFS client."""
    outer = f"{kind}.{actor}"
    _prepare(group, actor, outer, f"{outer}/inner")
    return f"{outer}/inner"


def see_listed(group: Group, actor: str) -> Mapping[str, Mapping[str, Any]]:
    """Figures of `freshness`: whether another's new files are in the next listing, also of a busy directory."""
    fresh, told = f"fresh.{actor}", f"fresh-told.{actor}"
    _prepare(group, actor, fresh, told)
    word: dict[str, Any] = {"rounds": 0, "late": 0, "touched": 0, "worst_s": 0.0}
    echoes = []
    for number in map(str, range(ROUNDS)):
        burst = [f"{number}.{one}" for one in range(BURST)]
        if group.node == actor:
            group.wait_for(told, [f"ready.{number}.{other}" for other in group.others])
            began = time.perf_counter()
            for name in burst:
                group.make(fresh, name)
            group.make(told, f"made.{number}")
            group.wait_for(told, [f"seen.{number}.{other}" for other in group.others])
            echoes.append(1000 * (time.perf_counter() - began))
            continue
        group.make(told, f"ready.{number}.{group.node}")
        # It is listed while it changes, so that the client has an old listing to believe.
        group.wait_for(told, [f"made.{number}"], meanwhile=fresh)
        late_s, touched = _lateness_s(group, fresh, burst)
        word["rounds"] += 1
        word["late"] += int(late_s > 0 or touched)
        word["touched"] += int(touched)
        word["worst_s"] = max(word["worst_s"], late_s)
        group.make(told, f"seen.{number}.{group.node}")
    if echoes:
        times = spread(echoes)
        word |= {"ping_p50_ms": times["p50_ms"], "ping_max_ms": times["max_ms"]}
    return group.step(f"{fresh}.done", word)


def _lateness_s(group: Group, folder: str, names: Iterable[str]) -> tuple[float, bool]:
    """Return how late (s) these names are listed, and whether they came only after a touch of the directory (spoold
    touches the directories that it polls). Late by 0: the first listing has them, or they came only after the touch.
    """
    began, wanted = time.perf_counter(), set(names)

    def listed() -> bool:
        return wanted <= set(group.share.list(group.at(folder)))

    if listed():
        return 0.0, False
    if not until(listed, LATE_S):
        group.nudge(group.at(folder))
        if listed():
            return 0.0, True
    return round(time.perf_counter() - began, 3), False


def see_absent(group: Group, actor: str) -> Mapping[str, Mapping[str, Any]]:
    """Figures of `absent`: how long stat still misses a name that it once missed, and whether a listing ends that."""
    folder = _deep(group, actor, "absent")
    path = group.at(folder, "late")
    word: dict[str, Any] = {"seen_by_stat_s": 0.0, "limit_s": STAT_S, "seen_after_listing": True}
    if group.node != actor:
        group.share.sees(path)
    group.step(f"absent.{actor}.asked")
    if group.node == actor:
        group.make(folder, "late")
    group.step(f"absent.{actor}.came")
    if group.node != actor:
        began = time.perf_counter()
        until(lambda: group.share.sees(path), STAT_S)
        word["seen_by_stat_s"] = round(time.perf_counter() - began, 3)
        listed = "late" in group.share.list(group.at(folder))
        word["seen_after_listing"] = listed and group.share.sees(path)
    return group.step(f"absent.{actor}.done", word)


def see_moved(group: Group, actor: str) -> Mapping[str, Mapping[str, Any]]:
    """Figures of `moved`: what stat, open and listings still find under a name that another machine moved away."""
    folder, away = _deep(group, actor, "moved"), f"moved-away.{actor}"
    _prepare(group, actor, away)
    path, mine = group.at(folder, "file"), group.node == actor
    if mine:
        group.make(folder, "file", b"content")
    group.step(f"moved.{actor}.ready")
    inode = 0
    if not mine:
        inode = group.share.stat(path).inode
        group.share.read(path)
    group.step(f"moved.{actor}.read")
    if mine:
        _rename_until_done(group, path, group.at(away, "file"))
    group.step(f"moved.{actor}.away")
    word: dict[str, Any] = {}
    if not mine:
        word["stat_still_sees"] = int(group.share.sees(path))
        word["open_still_works"] = int(_opens(group, path))
        if "file" in group.share.list(group.at(folder)):
            group.nudge(group.at(folder))
        word["still_listed"] = int("file" in group.share.list(group.at(folder)))
        word["inode_kept"] = group.share.stat(group.at(away, "file")).inode == inode
    return group.step(f"moved.{actor}.done", word)


def _opens(group: Group, path: str) -> bool:
    try:
        return bool(group.share.read(path))
    except OSError:
        return False


def see_read_rename(group: Group, actor: str) -> Mapping[str, Mapping[str, Any]]:
    """Figures of `read_rename`: whether a file that another machine has just read can be renamed at once."""
    folder = f"read.{actor}"
    _prepare(group, actor, folder)
    word: dict[str, Any] = {"rounds": 0, "refused": 0, "errors": [], "longest_s": 0.0, "stuck": 0}
    for number in map(str, range(3)):
        if group.node == actor:
            group.make(folder, number, b"content")
        group.step(f"{folder}.{number}.ready")
        if group.node != actor:
            group.share.read(group.at(folder, number))
        group.step(f"{folder}.{number}.read")
        if group.node == actor:
            began, errors = (
                time.perf_counter(),
                _rename_until_done(group, group.at(folder, number), group.at(folder, f"{number}.moved")),
            )
            word["rounds"] += 1
            word["refused"] += int(bool(errors))
            word["stuck"] += int(number in group.share.list(group.at(folder)))
            word["errors"] = sorted({*word["errors"], *errors})
            word["longest_s"] = max(word["longest_s"], round(time.perf_counter() - began, 3))
    return group.step(f"{folder}.done", word)


def _rename_until_done(group: Group, src: str, dst: str) -> list[str]:
    """Try a rename for up to LATE_S; return the errors: a file that a peer just read may be refused for a while."""
    errors: list[str] = []
    folder, _, name = dst.rpartition("/")

    def done() -> bool:
        try:
            group.share.rename(src, dst)
        except OSError as error:
            errors.append(name_of(error))
            return name in group.share.list(folder)
        return True

    until(done, LATE_S)
    return errors


def see_replaced(group: Group, actor: str) -> Mapping[str, Mapping[str, Any]]:
    """Figures of `replaced`: errors of a rename over a file that another machine holds open; spoold never does it."""
    folder = f"replaced.{actor}"
    _prepare(group, actor, folder)
    if group.node == actor:
        group.make(folder, "target", b"old")
        group.make(folder, "source", b"new")
    group.step(f"{folder}.ready")
    word: dict[str, Any] = {"errors": []}
    if group.node == actor:
        group.step(f"{folder}.held")
        try:
            group.share.rename(group.at(folder, "source"), group.at(folder, "target"))
        except OSError as error:
            word["errors"] = [name_of(error)]
        group.step(f"{folder}.tried")
    else:
        with group.share.holding(group.at(folder, "target")):
            group.step(f"{folder}.held")
            group.step(f"{folder}.tried")
    word["target_there"] = "target" in group.share.list(group.at(folder))
    return group.step(f"{folder}.done", word)


def see_beats(group: Group) -> dict[str, Any]:
    """Figures of `beats`: every machine raises a heartbeat; the beats that it sees of the others, and their gaps."""
    group.prepare("beats")
    group.step("beats")
    seen: dict[str, list[tuple[int, float]]] = {other: [] for other in group.others}
    begun, mine = time.monotonic(), 0
    nudged = begun

    def all_seen() -> bool:
        return all(beats and beats[-1][0] == BEATS - 1 for beats in seen.values())

    while not (mine == BEATS and all_seen()) and time.monotonic() - begun < BEATS_WITHIN_S:
        if mine < BEATS and time.monotonic() - begun >= mine * BEAT_EVERY_S:
            group.make("beats", f"{group.node}.{mine}")
            if mine:
                group.share.unlink(group.at("beats", f"{group.node}.{mine - 1}"))
            mine += 1
        if time.monotonic() - nudged >= NUDGE_EVERY_S:  # as spoold does, only more often
            group.nudge(group.at("beats"))
            nudged = time.monotonic()
        for name in group.share.list(group.at("beats")):
            other, _, beat = name.rpartition(".")
            if other in seen and int(beat) > (seen[other][-1][0] if seen[other] else -1):
                seen[other].append((int(beat), time.monotonic()))
        time.sleep(0.01)
    gaps = [after[1] - before[1] for beats in seen.values() for before, after in pairwise(beats)]
    word = {"beats": BEATS * len(seen), "seen": sum(map(len, seen.values())), "last_seen": all_seen()}
    return folded(group.step("beats.done", {**word, "longest_gap_s": round(max(gaps, default=0.0), 3)}))
