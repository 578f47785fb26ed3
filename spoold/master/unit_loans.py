"""Takes the units that waiting tasks offer, and gives them back before any ready task gets one.

A loan is a request in control/: the worker posts `lend`, a leader renames it to `lent`, the worker renames that to
`regain` when its task wants to go on, and the leader removes it when the units are there.

Law: units count as lent only while a listing shows the loan as `lent` or `regain`, and as used again before the loan
is removed. So with one leader no unit is used twice, wherever a node dies. Without loans this costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spoold.master.desk import Desk
from spoold.master.rejecting import take_away
from spoold.master.units_lent import loan_of
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key
from spoold.protocol.request import OF_A_LOAN, Request, Verb, loan_mark
from spoold.rules.scheduling.regaining import regained
from spoold.rules.scheduling.resources import Uses, shares_of
from spoold.store import control
from spoold.store.mover import move


def step(desk: Desk) -> None:
    """Take offers, give units back, and remove loans whose claim is gone. Errors: OSError."""
    loans = [request for request in desk.view.requests if request.verb in OF_A_LOAN]
    if desk.units.given:
        listed = set(map(loan_of, loans))
        desk.units.forget(lambda loan: loan in listed or _runs(desk, loan[0]))
    if not loans:
        desk.units.doubt(set())
        return
    _give_back(desk)
    stray = [request for request in loans if not _claimed(desk, request)]
    for request in desk.some(loans, "loans"):
        if loan_of(request) in desk.units.given:
            take_away(desk, control.path(request))  # again, where the listing still shows it
        elif request.verb is Verb.LEND and request not in stray:
            _take(desk, request)
    if desk.step.listed.everything:
        over = desk.units.doubt(set(map(loan_of, stray)))
        for request in desk.some([request for request in stray if loan_of(request) in over]):
            take_away(desk, control.path(request))


def asking(desk: Desk) -> Iterator[tuple[TaskName, Request, Uses]]:
    """Yield the claimed tasks that want their units back, in the order in which they get them."""
    found = []
    for node, names in desk.view.claimed.items():
        loans = desk.units.of(node, (task.id for task in names.values()))
        for task in names.values():
            loan = loans.get(key(task.id))
            if loan is not None and loan.verb is Verb.REGAIN:
                found.append((task, loan, desk.resources.running(desk.learned.lanes.get(key(task.id), ""))))
    yield from sorted(found, key=lambda one: (one[0].rank, one[0].order, one[0].id))


def _give_back(desk: Desk) -> None:
    wanting = list(asking(desk))
    if not wanting:
        return
    stock = replace(desk.usage.stock, shares=shares_of(desk.store.settings, desk.usage.slots))
    verdict = regained(((loan.encode(), uses) for _, loan, uses in wanting), stock)
    for task, loan, uses in wanting:
        if loan.encode() in verdict.back:
            desk.usage.take(uses)  # before the loan goes: from then on the task may go on
            desk.units.give(loan_of(loan))
            take_away(desk, control.path(loan))
            desk.journal.note("UNITS_BACK", task.id, task.attempt)
            desk.step.change()
    kept = [uses for _, loan, uses in wanting if loan.encode() not in verdict.back]
    desk.usage.keep(verdict.wanted, kept)


def _take(desk: Desk, request: Request) -> None:
    """Take an offer. It counts when the next listing shows it; if the worker has withdrawn it, there is nothing."""
    if move(desk.store.fs, control.path(request), control.path(replace(request, verb=Verb.LENT))):
        desk.journal.note("UNITS_LENT", request.target)
        desk.polling.hasten("requests")
        desk.step.change()


def _runs(desk: Desk, task_key: str) -> bool:
    place = desk.view.where.get(task_key)
    return place is not None and place.state is State.CLAIMED


def _claimed(desk: Desk, request: Request) -> bool:
    """Whether the task of a loan is claimed by the worker whose loan it is."""
    place = desk.view.where.get(key(request.target))
    if place is None or place.state is not State.CLAIMED:
        return False
    return loan_mark(place.directory.partition("/")[2]) == request.unique.partition("-")[0]
