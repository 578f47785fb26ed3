"""Breakers of types, broken one at a time."""

from __future__ import annotations

from dataclasses import replace

from spoold.master.limits import capacity as counting
from spoold.master.state.leader_state import Desk
from spoold.rules.gates.breaker_gate import Row
from spoold.rules.gates.resources import Capacity
from tests.sim.mutation import Mutations, Swap

breakers = Mutations("breakers")


@breakers.add("so many failures in a row open it", "Failures are counted, and open nothing.")
def opens_never() -> list[Swap]:
    after = Row.after

    def closed(self: Row, *args: object, **named: object) -> Row:
        return replace(after(self, *args, **named), until=None)  # type: ignore[arg-type]

    return [(Row, "after", closed)]


@breakers.add("one task tries, and the others follow only after it", "When the time is over, all go at once.")
def probe_floods() -> list[Swap]:
    look = counting.look_at_breakers

    def flooding(desk: Desk) -> tuple[dict[str, Capacity], dict[str, int]]:
        capacity, used = look(desk)
        return {name: replace(own, units=1000 * own.units) for name, own in capacity.items()}, used

    return [(counting, "look_at_breakers", flooding)]


@breakers.add("what says nothing counts nowhere", "A cancelled attempt, or one that is tried later, is a failure.")
def cancel_counts() -> list[Swap]:
    return [(counting, "went", lambda status, code: status == "success")]


@breakers.add("one that tried and failed opens it again", "After one that tried and failed, another tries at once.")
def tries_at_once() -> list[Swap]:
    after = Row.after

    def eager(self: Row, *args: object, tried: bool, **named: object) -> Row:
        row = after(self, *args, tried=tried, **named)  # type: ignore[arg-type]
        return replace(row, until=self.until) if tried and row.until is not None else row

    return [(Row, "after", eager)]
