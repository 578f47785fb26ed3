"""Laws of budgets, broken: a record that counts twice, a reservation let go early, a leader that opens early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spoold.master.limits import budget_accounts as master_budgets
from spoold.master.limits.budget_accounts import Budgets
from spoold.master.limits.result_stream import Coverage, Feed
from spoold.master.state.leader_state import Desk
from spoold.rules.gates.budget_gate import Purse
from tests.sim.mutation import Mutations, Swap

budgets = Mutations("budgets")


@budgets.add("each record counts once", "A new leader counts records again that the sums contain.")
def record_counted_twice() -> list[Swap]:
    return [(Coverage, "lacks", lambda *_: True)]


@budgets.add("the sums survive a leader", "A new leader begins with empty sums, and with the coverage of the last.")
def sums_forgotten() -> list[Swap]:
    restore = Budgets.restore
    return [(Budgets, "restore", lambda self, _: restore(self, None))]


@budgets.add("reserved until the record is read", "A reservation is let go when the attempt ends.")
def reservation_let_go_early() -> list[Swap]:
    running = master_budgets._running

    def only_what_runs(desk: Desk) -> Iterator[Any]:
        queue, desk.ends.queue = desk.ends.queue, type(desk.ends.queue)()
        found = list(running(desk))
        desk.ends.queue = queue
        return iter(found)

    return [(master_budgets, "_running", only_what_runs)]


@budgets.add("a new leader reads first", "A new leader opens the budgets before it has read what ended before it.")
def opened_before_the_feed_is_read() -> list[Swap]:
    return [(Feed, "caught_up", lambda *_: True)]


@budgets.add("what goes to ready/ is reserved", "Tasks that are chosen in one step are not reserved.")
def chosen_together() -> list[Swap]:
    count = Budgets.count
    reserve = Purse.reserve
    counting = [False]

    def counted(self: Budgets, desk: Desk, feed: Feed) -> None:
        counting[0] = True
        try:
            count(self, desk, feed)
        finally:
            counting[0] = False

    def only_counted(self: Purse, *args: Any) -> None:
        if counting[0]:
            reserve(self, *args)

    return [(Budgets, "count", counted), (Purse, "reserve", only_counted)]


@budgets.add("claims count", "What is claimed has no reservation.")
def claims_not_reserved() -> list[Swap]:
    running = master_budgets._running

    def without_claims(desk: Desk) -> Iterator[Any]:
        claimed, desk.view.claimed = desk.view.claimed, {}
        found = list(running(desk))
        desk.view.claimed = claimed
        return iter(found)

    return [(master_budgets, "_running", without_claims)]
