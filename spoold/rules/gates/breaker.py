"""The breaker of a type: after so many failures in a row, wherever they ran, nothing of the type starts for a while.

Law: when the time is over, one task goes first, and the others follow only after it has ended well. A leader that
has not read yet what ended before it came opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spoold.protocol.amount import amount
from spoold.protocol.settings import BreakerSettings
from spoold.rules.gates.facts import Held, Known, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait
from spoold.rules.scheduling.breakers import CLOSED, Book, Row, breakers_of
from spoold.rules.scheduling.resources import BREAKER

NAME = "breaker"


@dataclass(frozen=True, slots=True)
class Seen:
    """The breakers at one moment (s since 1970): the rules by type, and what was counted."""

    rules: Mapping[str, BreakerSettings]
    now: float
    book: Book = field(default_factory=Book)


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while its type's breaker is open, or while another task tries it."""
    seen: Seen | None = facts.more.get(NAME)
    if seen is None or kind not in seen.rules:
        return PASS
    if seen.book.reading:
        return Wait(NAME, f"the leader still reads how earlier attempts of type {kind} ended")
    row = seen.book.rows.get(kind)
    if row is None or row.until is None:
        return PASS
    if row.until > seen.now:
        return Wait(NAME, f"{_failed(kind, row)}, so nothing of it starts", row.until)
    if facts.stock.short_of(facts.uses, (BREAKER,)) is None:
        return judge_ready(kind, facts)
    return _waits_for_trial(kind, row, seen)


def judge_ready(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task that is to try, but that no worker takes, while a task of another lane tries."""
    seen: Seen | None = facts.more.get(NAME)
    row = None if seen is None else seen.book.rows.get(kind)
    if seen is None or row is None or not facts.passed_over.startswith(BREAKER):
        return PASS
    return _waits_for_trial(kind, row, seen)


def _waits_for_trial(kind: str, row: Row, seen: Seen) -> Wait:
    tries = f"task {who}" if (who := seen.book.trying.get(kind)) else "one task"
    return Wait(NAME, f"{_failed(kind, row)}; {tries} is trying, and the others wait for it")


def _failed(kind: str, row: Row) -> str:
    said = f"{amount(row.failures, 'failure')} in a row of type {kind}"
    return f"{said} (last: {row.last})" if row.last else said


def _gather(known: Known) -> Seen | None:
    """The breakers of this moment; None where the settings have none."""
    rules = breakers_of(known.settings)
    return Seen(rules, known.now, known.more.get(NAME) or Book()) if rules else None


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    begins = "the end of the task that tries" if wait.until is None else "time: then one task tries"
    seen: Seen | None = held.type.more.get(NAME)
    if seen is None or seen.book.reading:
        return "it goes on within moments"
    more = seen.book.rows.get(held.kind, CLOSED).failures + 1
    return f"{begins}; or, once it is fixed, `spool config set types.{held.kind}.breaker.failures {more}`"


GATE = TypeGate(
    NAME,
    "fewer attempts of the type than its `breaker` allows have failed in a row, or the task is the one that tries",
    frozenset({Wake.STEP, Wake.TIME}),
    _change,
    judge,
    gather=_gather,
    holds_ready=True,
    judge_ready=judge_ready,
)
