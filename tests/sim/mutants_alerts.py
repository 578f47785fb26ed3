"""Alerts, broken one at a time."""

from __future__ import annotations

from typing import Any

from spoold.protocol.snapshot import Alert
from spoold.rules.alerts import Board, Changes
from tests.sim.mutation import Mutations, Swap

alerts = Mutations("alerts")


@alerts.add("one per rise", "What stands rises again whenever it is looked at.")
def risen_in_every_look() -> list[Swap]:
    look = Board.look

    def forgetful(self: Board, *args: Any, **options: Any) -> Changes:
        self.begin(())
        return look(self, *args, **options)

    return [(Board, "look", forgetful)]


@alerts.add("a new leader goes on with what stands", "A new leader begins with nothing.")
def predecessor_ignored() -> list[Swap]:
    return [(Board, "begin", lambda self, alerts: None)]


@alerts.add("each rise is told", "A leader takes what its predecessor raised for told.")
def taken_for_told() -> list[Swap]:
    begin = Board.begin

    def begin_told(self: Board, alerts: tuple[Alert, ...]) -> None:
        begin(self, [alert.model_copy(update={"task": "told"}) for alert in alerts])

    return [(Board, "begin", begin_told)]
