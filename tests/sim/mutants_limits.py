"""Limits, rates and quotas, broken one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spoold.master.limits import capacity
from spoold.master.listing import task_metadata
from spoold.master.state.limit_usage import Usage
from spoold.protocol.lifecycle import State
from spoold.rules.gates.resources import RATE, TYPE, Capacity, Resources, Stock, Uses
from spoold.store import control
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.worker_limits import Allowance
from tests.sim.mutation import Mutations, Swap

limits = Mutations("limits")


@limits.add("a new leader is never more generous", "A new leader does not know what started before it came.")
def past_starts_forgotten() -> list[Swap]:
    return [(capacity, "_recorded", lambda *_: iter(()))]


@limits.add("a task in ready/ may start at any moment", "A token in ready/ does not count as a start.")
def ready_is_no_start() -> list[Swap]:
    take = Usage.take

    def forgetful(self: Usage, uses: Uses, count: int = 1) -> None:
        if any(name.startswith(TYPE) for name in uses):
            uses = {name: units for name, units in uses.items() if not name.startswith(RATE)}
        take(self, uses, count)

    return [(Usage, "take", forgetful)]


@limits.add("no start under a closed limit", "A worker starts tasks without listing control/ after the claim.")
def starts_without_listing() -> list[Swap]:
    return [(Allowance, "closed", lambda self, lane, *_: self.shut(lane))]


@limits.add("no start under a closed limit", "A task that uses a limit waits in a slot behind another one.")
def limited_task_waits_in_a_slot() -> list[Swap]:
    room, closed = Allowance.room, Allowance.closed
    return [
        (Allowance, "room", lambda self, running, _: room(self, running, 1 << 20)),
        (Allowance, "closed", lambda self, lane, _, others: closed(self, lane, True, others)),
    ]


@limits.add("one task tries", "When a quota's time has come all tasks go at once.")
def trial_lets_all_go() -> list[Swap]:
    look = capacity.look_at_quotas

    def open_wide(*args: Any) -> tuple[dict[str, Capacity], dict[str, int]]:
        look(*args)
        return {}, {}

    return [(capacity, "look_at_quotas", open_wide)]


@limits.add("one task tries", "A leader that reads of a quota whose time has come lets all go in that step.")
def trial_begins_a_step_late() -> list[Swap]:
    look = capacity.look_at_quotas
    return [
        (capacity, "look_at_quotas", lambda desk, _, opens: look(desk, {n: [] for n in desk.starts.trials}, opens))
    ]


@limits.add("limits hold over a change of leader", "A claim that was there before the leader counts for no limit.")
def claims_of_before_not_counted() -> list[Swap]:
    learned, uses = task_metadata._learned, Resources.uses
    return [
        (task_metadata, "_learned", lambda desk, k, place: place.state is State.CLAIMED or learned(desk, k, place)),
        (Resources, "uses", lambda self, lane: uses(self, lane) if lane else {}),
    ]


@limits.add("first in, first out", "Units for which an older task waits are given to later ones.")
def units_are_not_kept() -> list[Swap]:
    return [(Stock, "lacking", lambda *_: set()), (Resources, "shared", lambda *_: frozenset())]


@limits.add("a report comes before the end of its attempt", "A quota is published after its attempt was committed.")
def quota_published_after_the_commit() -> list[Swap]:
    report, ended = Allowance.report, Allowance.ended
    late: dict[str, Callable[[], object]] = {}

    def later(self: Allowance, attempt: Attempt, *args: Any) -> Any:
        posts: list[tuple[tuple[Any, ...], Mapping[str, Any]]] = []
        post = control.post
        setattr(control, "post", lambda *a, **k: posts.append((a, k)))  # noqa: B010
        try:
            return report(self, attempt, *args)
        finally:
            setattr(control, "post", post)  # noqa: B010
            late[attempt.key] = lambda: [post(*a, **k) for a, k in posts]

    def at_last(self: Allowance, attempt: Attempt) -> None:
        late.pop(attempt.key, lambda: None)()
        ended(self, attempt)

    return [(Allowance, "report", later), (Allowance, "ended", at_last)]


@limits.add("a worker keeps its own limits", "A worker does not look at its own limits.")
def own_limits_ignored() -> list[Swap]:
    # It looks again at the start, so the look at the claim alone may fail.
    return [(Allowance, "has_room", lambda *_: True)]
