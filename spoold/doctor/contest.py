"""Several machines want the same thing at once: a task, a token, a lock, a name.

Law: moves are made as spoold makes them, with a look after every error, so that the counts are those that the spool
would see. A holder writes a file into a directory and then lists it: of two holders at the same time, at least one
sees the other, without any clock.

Touches: the clock.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from spoold.doctor.meeting import Group, folded
from spoold.doctor.renames import count_wins
from spoold.doctor.share import name_of
from spoold.store import mover

BLOCK = 10
TOKENS = 4
HANDING_S = 3.0
LOCKING_S = 6.0
LOCKS = 15
AT_ONCE_S = 0.001
RESTING_S = 0.002
HOLD_S = 0.003
ROUNDS = 20


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
    return [str(number) for number in range(ROUNDS)]


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
    return {"rounds": ROUNDS, "doubled": counted["doubled"], "nobody": counted["lost"], "errors": some}
