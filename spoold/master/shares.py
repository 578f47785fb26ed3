"""The slots of each class at this moment, as the gate `class` is told them.

Law: a class wants slots only if nothing but a slot holds its tasks, so that no other one waits for it in vain.
"""

from __future__ import annotations

from dataclasses import replace

from spoold.master.desk import Desk
from spoold.protocol.lanes import kind_in, parse_lane
from spoold.rules.gates.facts import TypeFacts
from spoold.rules.gates.registry import judge_type
from spoold.rules.gates.verdicts import Pass
from spoold.rules.scheduling.resources import class_used, shares_of


def rivals(desk: Desk) -> list[str]:
    """Return the lanes whose tasks may want the same slots as a new task."""
    return desk.backlog.lanes() if desk.store.settings.classes else []


def with_shares(desk: Desk, facts: dict[str, TypeFacts]) -> dict[str, TypeFacts]:
    """Return the facts with the slots of each class; a class wants slots if nothing but a slot holds its tasks."""
    settings = desk.store.settings
    if not settings.classes or not facts:
        return facts
    free = (lane for lane, own in facts.items() if isinstance(judge_type(kind_in(lane), own), Pass))
    lanes = [parsed for lane in free if desk.backlog.best(lane) and (parsed := parse_lane(lane)) is not None]
    wants = frozenset(class_used(lane, settings) for lane in lanes)
    stock = replace(desk.usage.stock, shares=shares_of(settings, desk.usage.slots, wants))
    return {lane: replace(own, stock=stock) for lane, own in facts.items()}
