"""Which of a worker's attempts have lent their slot, and who gets one back: a task that waits for others needs none.

Law: the attempts that hold a slot are never more than there are slots, however many are lent. A slot is given back
before anything new is claimed, to who asked first. What a waiting task still holds on its machine (memory, devices)
stays counted; its slot and its cpus do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.rules.scheduling.matching import free


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
