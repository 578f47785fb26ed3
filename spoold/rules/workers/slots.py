"""A worker's room: what it keeps for a task that it could run but has too little free for, whose slot is lent, and
how many tasks it may claim before a slot is free for them.

A worker keeps for one task at a time: the first in order of those that it has no room for. Later tasks may still take
what that one leaves over once everything that ran here before has ended. It keeps nothing for a task that would not
fit beside those that wait for others, with memory or devices that they do not lend: one that they wait for may stand
behind it.

Law: so no task waits without end behind less urgent ones, or behind younger ones of its rank, for as much as it needs
of cpus, memory, devices or units. Of one rank, tasks that came within a minute of each other go as they fit, since
they are few: that costs no order that anybody asked for, and leaves no core idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spoold.protocol.heartbeat import Capabilities, Keeps
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName, order_micros
from spoold.rules.workers.matching import free

# Tasks of one rank that came so shortly (s) after another do not wait for it.
TOGETHER_S = 60.0
SLOT = "slot"
# An amount of each thing that a worker counts, by its name: `cpus`, SLOT, or `limit NAME` for units of its own.
Amounts = Mapping[str, float]


def machine_needs(lane: Lane) -> dict[str, float]:
    """What a task of the lane takes of a machine while it runs; nothing of what it does not need."""
    wants = {"cpus": lane.cpus, "mem_mb": float(lane.mem_mb), "gpus": float(lane.gpus)}
    return {name: amount for name, amount in wants.items() if amount}


def machine_has(can: Capabilities) -> dict[str, float]:
    """What a worker's machine has of these, whatever runs."""
    return {"cpus": can.cpus, "mem_mb": float(can.mem_mb), "gpus": float(can.gpus)}


def within(needs: Amounts, spare: Amounts) -> bool:
    """Whether so much may be taken; of what is not in `spare` there may be any amount."""
    # Cores are fractions: the rest may differ in the last bits from the demand.
    return all(amount <= spare[name] + 1e-6 for name, amount in needs.items() if name in spare)


def beside(has: Amounts, held: Iterable[Amounts]) -> dict[str, float]:
    """What is left of so much when all this is held."""
    found = dict(has)
    for needs in held:
        found |= {name: found[name] - amount for name, amount in needs.items() if name in found}
    return found


@dataclass(slots=True)
class Kept:
    """The task for which room is kept. before: the keys of what ran here when that began, which it waits for."""

    name: TaskName
    needs: Amounts
    before: frozenset[str]
    spare: dict[str, float] = field(default_factory=dict)

    def count(self, has: Amounts, running: Iterable[tuple[str, Amounts]]) -> None:
        """Find what it leaves of so much, beside the running tasks, by key, that were claimed since."""
        counted = {name: has[name] for name in self.needs if name in has}
        self.spare = beside(counted, [self.needs, *(needs for key, needs in running if key not in self.before)])

    def lets(self, name: TaskName, needs: Amounts) -> bool:
        """Whether this task may be claimed now: it comes first, came at the same time, or takes only what is left."""
        if name.rank < self.name.rank:
            return True
        latest = order_micros(self.name.order) + TOGETHER_S * 1e6
        return (name.rank == self.name.rank and order_micros(name.order) <= latest) or within(needs, self.spare)

    def take(self, needs: Amounts) -> None:
        """Count a task that was claimed, or may have been."""
        for name in needs:
            if name in self.spare:
                self.spare[name] -= needs[name]

    def told(self) -> Keeps:
        """What the heartbeat says of it."""
        return Keeps(task=self.name.id, spare={name: max(amount, 0.0) for name, amount in self.spare.items()})


# Which of a worker's attempts have lent their slot, and who gets one back: a task that waits for others needs none.
# Law: the attempts that hold a slot are never more than there are slots, however many are lent. A slot is given
# back before anything new is claimed, to who asked first. What a waiting task still holds on its machine (memory,
# devices) stays counted; its slot and its cpus do not.


@dataclass(frozen=True, slots=True)
class Held:
    """One attempt on a worker: its demand, its depth below the first task, whether its slot is lent.

    waits: whether a process of it waits, so that its slot may be lent; asks: whether one asks for the slot back.
    """

    key: str
    lane: Lane
    depth: int = 0
    lent: bool = False
    waits: bool = False
    asks: bool = False


def demands(attempts: Iterable[Held]) -> list[Lane]:
    """What these attempts take of the worker's resources."""
    return [replace(held.lane, cpus=0) if held.lent else held.lane for held in attempts]


def lent_now(attempts: Sequence[Held]) -> list[Held]:
    """The attempts, with the slots lent of those that wait, and of no other that did not ask for it back.

    One that has lent its slot and waits no more, without having asked, lost the process that waited: it runs on.
    """
    return [replace(held, lent=held.waits or (held.lent and held.asks)) for held in attempts]


def given_back(attempts: Sequence[Held], can: Capabilities, slots: int) -> list[str]:
    """The keys of those that get their slot back now, in the order in which they stand. The first that finds no room
    keeps the others from passing it.
    """
    back: list[str] = []
    now = list(attempts)
    for index, held in enumerate(now):
        if not (held.lent and held.asks):
            continue
        others = now[:index] + now[index + 1 :]
        room = free(can, demands(others)).cpus + 1e-6 >= held.lane.cpus
        if sum(not other.lent for other in others) >= slots or not room:
            break
        now[index] = replace(held, lent=False)
        back.append(held.key)
    return back


def full_depths(attempts: Iterable[Held], most: int) -> frozenset[int]:
    """The depths at which no more tasks are started, since `most` of each have lent their slots.

    Counted per depth: the children that those wait for are deeper, and so can always start.
    """
    counts = Counter(held.depth for held in attempts if held.lent)
    return frozenset(depth for depth, count in counts.items() if count >= most)


# How many tasks may be claimed ahead. A task that ends within a millisecond costs less than moving the next one into
# its slot. So while a worker's tasks are that short, many in a row, each of its slots is given the next few before it
# is free. A task waits in a slot for short tasks only: behind one that turns out to be long it is handed back, for
# other workers to run. That costs it an attempt's number: none are claimed ahead after few short tasks, or old ones.


# Look at so many of the latest ended tasks; they count for so long (s) after the last of them.
LATELY = 64
FORGET_S = 1.0
# A task may wait so long (s) for those before it, if each is as long as the longest, and so many may wait at most.
PATIENCE_S = 0.1
DEPTH = 16


def ahead(lately: Collection[float]) -> int:
    """How many tasks may be claimed ahead for a slot. lately: how long (s) the last LATELY tasks ran."""
    if len(lately) < LATELY:
        return 0
    longest = max(lately)
    return DEPTH if longest * DEPTH <= PATIENCE_S else int(PATIENCE_S / longest)


def has_room(held: int) -> bool:
    """Whether a slot with so many tasks takes one more: one runs, and at most DEPTH wait for it."""
    return held <= DEPTH


def preference(held: int, age_s: float, other: bool, lent: bool = False) -> tuple[bool, bool, bool, int, bool]:
    """Order slots for the next task; the lowest takes it, and has room if any slot does.

    held: how many tasks the slot has; age_s: how long (s) the first of them has run; other: whether it is warm for
    tasks of another kind; lent: whether the first waits for other tasks, so that none may wait behind it. A slot
    whose task runs long comes after those with short tasks, and a full one after all.
    """
    return (lent, not has_room(held), age_s >= PATIENCE_S, held, other)
