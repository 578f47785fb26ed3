"""Other types as which tasks run while a limit that their own type uses is closed: another account when one is out.

    worker.toml:  [agents.coder]  instead = ["coder-b", "coder-local"]

The workers that are awake say these lists in their heartbeats. A waiting task whose type is held by `quota` goes into
the lane of the first type of its list all of whose gates are open, as if the task were of that type. That lane's name
says both types, `type=coder-b,for=coder`, so whatever counts by lanes counts the other type, and every node sees from
the name alone where the token belongs.

Law: only the list of a task's own type counts, and only while a limit of its type is closed. A heartbeat may hold
anything, so what is no list of types is passed over, and a list has at most MOST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spoold.protocol.amount import amount
from spoold.protocol.errors import BadName, WrongValue
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import as_word, own_lane, parse_lane
from spoold.rules.gates.facts import TypeFacts
from spoold.rules.gates.gate import Verdict, Wait
from spoold.rules.gates.limit_gates import QUOTA_GATE, closed_limit
from spoold.rules.gates.registry import judge_type
from spoold.rules.gates.resources import Resources
from spoold.rules.gates.standing_requests import Closed

# How many types one list may have, and of how many types lists are kept.
MOST, TYPES = 16, 1000
# By type, the types as which its tasks may run instead, in order.
Lists = Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class Instead:
    """others: the lanes of ready/ to which the tasks of a lane may go instead, in order; taken: by the file of each
    task that goes there, that lane.
    """

    others: Callable[[str], Sequence[str]] = lambda lane: ()
    taken: dict[str, str] = field(default_factory=dict)


def fault_in(kind: str, others: Sequence[str]) -> WrongValue | None:
    """What is wrong with the list of a type in a worker's file, whose names are plain words; None for nothing."""
    doubled = next((one for one in others if others.count(one) > 1), None)
    if kind in others:
        return WrongValue(f"{kind} is in its own list", "take it out: a task runs as its own type first")
    if doubled is not None:
        return WrongValue(f"{doubled} is twice in the list of {kind}", "take one out: each type is tried once")
    if len(others) > MOST:
        return WrongValue(f"the list of {kind} is too long", f"name at most {amount(MOST, 'type')}")
    return None


def lists_of(told: Iterable[Capabilities]) -> Lists:
    """The lists of these workers, in one: where they differ, the types of the first come first."""
    found: dict[str, tuple[str, ...]] = {}
    for can in told:
        for kind, others in can.instead.items():
            if not _is_type(kind) or (kind not in found and len(found) == TYPES):
                continue
            good = [one for one in others[:MOST] if _is_type(one) and one != kind]
            found[kind] = tuple(dict.fromkeys((*found.get(kind, ()), *good)))[:MOST]
    return {kind: others for kind, others in found.items() if others}


def _is_type(word: str) -> bool:
    try:
        return as_word(word) == word
    except WrongValue:
        return False


def lanes_instead(lane_name: str, lists: Lists) -> list[str]:
    """The lanes of ready/ to which the tasks of this lane of waiting/ may go instead, in order; one whose name would
    be too long is left out.
    """
    lane, found = parse_lane(lane_name), list[str]()
    if lane is None or lane.run != "handler" or lane.instead_of:
        return found
    for kind in lists.get(lane.type, ()):
        try:
            found.append(lane.under(kind).encode())
        except BadName:
            continue
    return found


def is_closed(kind: str, facts: TypeFacts) -> bool:
    """Whether what holds such a task is a closed limit, so that it may go as another type: nothing speaks before."""
    verdict: Verdict = judge_type(kind, facts)
    waits = isinstance(verdict, Wait) and verdict.gate == QUOTA_GATE.name
    return waits and closed_limit(facts.uses, facts.closed) is not None


def goes_back(lane_name: str, resources: Resources, closed: Mapping[str, Closed]) -> bool:
    """Whether ready tasks of this lane go back, since no limit of their own type is closed any more."""
    home = own_lane(lane_name)
    return home != lane_name and closed_limit(resources.uses(home), closed) is None


def stands_in(lane_name: str, kind: str) -> bool:
    """Whether tasks of this type are in that lane, as of another one."""
    lane = parse_lane(lane_name)
    return lane is not None and lane.instead_of == kind
