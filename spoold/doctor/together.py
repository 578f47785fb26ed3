"""All trials of several machines, in order; and before them, who the members are.

It stands apart from `trial_process`, its only user, which makes trials alone as well.

Law: a member that speaks after its process was looked for in vain, on a machine of its own identity, runs on a twin
of that machine. Every member makes the same trials at the same time and in the order of this table. If a member is
lost, the trial ends with NobodyCame and no later one begins.

Touches: the clock.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any

from spoold.doctor.alone import Trial
from spoold.doctor.meeting import NUDGE_EVERY_S, Group, NobodyCame, folded, until
from spoold.doctor.shared_trials import count_wins, spread
from spoold.doctor.trial_share import name_of
from spoold.store import mover
from spoold.system.host import Host, HostIdentity, ProcessIdentity, surely_gone

EXAMINED_WITHIN_S = 60.0


def trials(group: Group, files: int) -> dict[str, Trial]:
    """The trials by name; each raises NobodyCame when a member is lost."""
    return {
        "freshness": partial(in_turns, group, see_listed),
        "absent": partial(in_turns, group, see_absent),
        "moved": partial(in_turns, group, see_moved),
        "read_rename": partial(in_turns, group, see_read_rename),
        "replaced": partial(in_turns, group, see_replaced),
        "beats": partial(see_beats, group),
        "claims": partial(try_claims, group, files),
        "handover": partial(try_handover, group),
        "locks": partial(try_locks, group),
        "same_destination": partial(try_same_destination, group),
        "noreplace": partial(try_noreplace, group),
        "exclusive": partial(try_exclusive, group),
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


# Several machines want the same thing at once: a task, a token, a lock, a name.


BLOCK = 10
TOKENS = 4
HANDING_S = 3.0
LOCKING_S = 6.0
LOCKS = 15
AT_ONCE_S = 0.001
RESTING_S = 0.002
HOLD_S = 0.003
CONTESTS = 20


def try_claims(group: Group, files: int) -> dict[str, Any]:
    """Figures of `claims`: every machine renames the same files into its own directory, holding them open."""
    group.prepare("claims", *(f"claims-of.{member}" for member in group.members))
    names = [f"{number:05}.json" for number in range(files)]
    group.step("claims.folders")
    for name in names[group.members.index(group.node) :: len(group.members)]:
        group.share.write(group.at("claims", name), b"{}", durable=False)
    group.step("claims.ready")
    order = _in_blocks(group.share.list(group.at("claims")))
    won, errors = [], Counter[str]()
    group.step("claims.go", every_s=AT_ONCE_S)
    for name in order:
        src, dst = group.at("claims", name), group.at(f"claims-of.{group.node}", name)
        began = time.perf_counter()
        try:
            with group.share.holding(src):
                moved = mover.move(group.share, src, dst)
        except FileNotFoundError:
            # Already gone: the slower machine hurries on, else the faster one would win all without a race.
            errors["ENOENT"] += 1
            continue
        except OSError as error:
            errors[name_of(error)] += 1
            moved = mover.move(group.share, src, dst)
        if moved:
            won.append(name)
            time.sleep(random.uniform(0, RESTING_S + 2 * (time.perf_counter() - began)))
        elif moved.error is not None:
            errors[name_of(moved.error)] += 1
    words = group.step("claims.over", {"won": won, "errors": errors})
    mine = group.share.list(group.at(f"claims-of.{group.node}"))
    held = group.step("claims.held", mine)
    left = group.share.list(group.at("claims"))
    # The machine that believes it won a file must be the one whose directory holds it.
    claimed = count_wins(names, (word["won"] for word in words.values()))
    found = count_wins(names, [*held.values(), left])
    return {
        "files": files,
        "doubled": max(claimed["doubled"], found["doubled"]),
        "lost": found["lost"],
        "left": len(left),
        "won": {member: len(word["won"]) for member, word in words.items()},
        "errors": dict(sum((Counter(word["errors"]) for word in words.values()), Counter())),
    }


def _in_blocks(names: Iterable[str]) -> list[str]:
    """Return the names in blocks: every machine is in the same block at the same time, each in its own order."""
    ordered = sorted(names)
    blocks = [ordered[start : start + BLOCK] for start in range(0, len(ordered), BLOCK)]
    return [name for block in blocks for name in random.sample(block, len(block))]


def try_handover(group: Group) -> dict[str, Any]:
    """Figures of `handover`: tokens are claimed, held and given back, with a count in their names."""
    group.prepare("free", "held", *(f"hand-of.{member}" for member in group.members))
    if group.first:
        for number in range(TOKENS):
            group.make("free", f"{number}.0")
    group.step("free")
    moves = overlaps = 0
    end = time.monotonic() + HANDING_S
    while time.monotonic() < end:
        free = group.share.list(group.at("free"))
        if not free:
            time.sleep(0.002)
            continue
        name = random.choice(free)
        mine = group.at(f"hand-of.{group.node}", name)
        if not mover.move(group.share, group.at("free", name), mine):
            continue
        token, _, count = name.partition(".")
        overlaps += _alone(group, "held", token)
        moves += bool(mover.move(group.share, mine, group.at("free", f"{token}.{int(count) + 1}")))
    figures = folded(group.step("free.over", {"moves": moves, "overlaps": overlaps}))
    counts = [int(name.partition(".")[2]) for name in group.share.list(group.at("free"))]
    figures["miscounted"] = abs(sum(counts) - figures["moves"]) + abs(len(counts) - TOKENS)
    return figures


def _alone(group: Group, folder: str, what: str) -> int:
    """Hold a thing for a moment; return 1 if another machine is seen to hold it too."""
    mine = f"{what}.{group.node}"
    group.share.write(group.at(folder, mine), b"", durable=False)
    time.sleep(HOLD_S)
    others = [name for name in group.share.list(group.at(folder)) if name.partition(".")[0] == what and name != mine]
    group.share.unlink(group.at(folder, mine))
    return int(bool(others))


def try_locks(group: Group) -> dict[str, Any]:
    """Figures of `locks`: every machine takes one flock repeatedly; rounds: how often it was granted."""
    group.prepare("locking")
    if group.first:
        group.make("locking", "lock")
    group.prepare("locking-held")
    group.step("locking")
    rounds = overlaps = 0
    errors: list[str] = []
    end = time.monotonic() + LOCKING_S
    while rounds < LOCKS and time.monotonic() < end and not errors:
        try:
            with group.share.locked(group.at("locking", "lock")) as granted:
                if granted:
                    rounds += 1
                    overlaps += _alone(group, "locking-held", "lock")
        except OSError as error:
            errors = [name_of(error)]
        time.sleep(random.uniform(0.001, 0.01))
    word = {"rounds": rounds, "overlaps": overlaps, "starved": int(not rounds), "errors": errors}
    return folded(group.step("locking.over", word))


def try_same_destination(group: Group) -> dict[str, Any]:
    """Figures of `same_destination`: all rename the same file to the same name; spoold never does."""
    group.prepare("same", "same-to")
    if group.first:
        for name in _round_names():
            group.share.write(group.at("same", name), b"", durable=False)
    return _wins(group, "same", lambda name: group.share.rename(group.at("same", name), group.at("same-to", name)))


def try_noreplace(group: Group) -> dict[str, Any]:
    """Figures of `noreplace`: each renames a file of its own to one name, with RENAME_NOREPLACE."""
    group.prepare("noreplace", "noreplace-to")

    def attempt(name: str) -> None:
        own = group.at("noreplace", f"{group.node}.{name}")
        group.share.write(own, b"", durable=False)
        group.share.rename_noreplace(own, group.at("noreplace-to", name))

    return _wins(group, "noreplace", attempt)


def try_exclusive(group: Group) -> dict[str, Any]:
    """Figures of `exclusive`: all create the same name with O_EXCL."""
    group.prepare("exclusive")
    return _wins(group, "exclusive", lambda name: group.share.create_exclusive(group.at("exclusive", f"x{name}")))


def _round_names() -> list[str]:
    return [str(number) for number in range(CONTESTS)]


def _wins(group: Group, folder: str, attempt: Callable[[str], object]) -> dict[str, Any]:
    """Return how many rounds were won by several machines and by none, and the errors."""
    names = _round_names()
    group.step(f"{folder}.ready", every_s=AT_ONCE_S)
    won, errors = [], set()
    for name in names:
        try:
            attempt(name)
            won.append(name)
        except OSError as error:
            errors.add(name_of(error))
    words = group.step(f"{folder}.over", {"won": won, "errors": sorted(errors)})
    counted = count_wins(names, (word["won"] for word in words.values()))
    some = sorted({error for word in words.values() for error in word["errors"]})
    return {"rounds": CONTESTS, "doubled": counted["doubled"], "nobody": counted["lost"], "errors": some}


# Trials of when a machine sees the changes of another. Each machine acts in turn, the others look.


LATE_S = 5.0
STAT_S = 3.0
LOOKS = 8
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
    for number in map(str, range(LOOKS)):
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
