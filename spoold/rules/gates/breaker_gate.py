"""The breaker of a type: after so many failures in a row, wherever they ran, nothing of the type starts for a while.
What is counted, its form in the snapshot, and the gate.

Law: when the time is over, one task goes first, and the others follow only after it has ended well. A leader that
has not read yet what ended before it came opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from spoold.protocol.amount import MOST, amount
from spoold.protocol.heartbeat import CLOCK_MAX_S
from spoold.protocol.result import Code, Status
from spoold.protocol.settings import BreakerSettings, Settings
from spoold.rules.gates.facts import Held, Known, TypeFacts
from spoold.rules.gates.gate import PASS, TypeGate, Verdict, Wait, Wake
from spoold.rules.gates.resources import BREAKER

# Failures in a row: how many there were, and for how long they keep tasks of a type from starting.
# Workers count their own attempts in this way, and the leader those of the whole pool.
# Law: an attempt that says nothing about its type, since it was cancelled, lost or asked to be tried later, changes
# nothing. While a breaker is open, only the attempt that tries does: the others began before it opened.


# The codes of attempts that ran and failed. One that its worker could not run says nothing about the type elsewhere.
FAILED = frozenset(
    {Code.EXIT_NONZERO, Code.TIMEOUT, Code.SIGNALED, Code.OOM_KILLED, Code.STALLED, Code.OUTPUT_INVALID}
)


@dataclass(frozen=True, slots=True)
class Row:
    """failures: in a row; until: until when (s, on the clock of the one who counts) the breaker keeps everything
    back, None while it is closed. When that has passed, one task tries. last: how the last one failed, for people.
    """

    failures: int = 0
    until: float | None = None
    last: str = ""

    def after(self, well: bool, last: str, rule: BreakerSettings, now: float, *, tried: bool) -> Row:
        """The row after an attempt that ended well or failed. tried: it was the one that tries an open breaker."""
        if self.until is not None and not tried:
            return self
        if well:
            return CLOSED
        failures = self.failures + 1
        opens = self.until is not None or failures >= rule.failures
        return Row(failures, now + rule.open_s if opens else None, last)

    def under(self, rule: BreakerSettings | None, now: float) -> Row:
        """The row once this is the rule: a breaker that allows more failures than there were is closed, and none is
        open for more than `open_s` from now, though the clock was set back.
        """
        if rule is None or (self.until is not None and self.failures < rule.failures):
            return CLOSED
        over = self.until is not None and self.until > now + rule.open_s
        return replace(self, until=now + rule.open_s) if over else self


CLOSED = Row()


def went(status: str, code: str | None) -> bool | None:
    """Whether an attempt says that its type goes well, or that it fails; None if it says neither."""
    if status == Status.SUCCESS:
        return True
    return False if code in FAILED else None


def breakers_of(settings: Settings) -> dict[str, BreakerSettings]:
    """The types that have a breaker, each with its rule."""
    return {kind: own.breaker for kind, own in settings.types.items() if own.breaker is not None}


@dataclass(slots=True)
class Book:
    """What a leader has counted. rows: by type, those with failures; trying: of open ones, the id of the task that
    tries, '' before one does. reading: attempts that ended before this leader came are not all counted yet.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    trying: dict[str, str] = field(default_factory=dict)
    reading: bool = False

    def put(self, kind: str, row: Row) -> None:
        """Replace the row of a type."""
        self.rows.pop(kind, None)
        if row.failures:
            self.rows[kind] = row

    def tripped(self) -> dict[str, float]:
        """The types whose breaker is open, or whose one task tries, each with the moment at which it may."""
        return {kind: row.until for kind, row in self.rows.items() if row.until is not None}

    def save(self) -> Any:
        """The rows as a JSON value."""
        return {kind: [row.failures, row.until, row.last] for kind, row in self.rows.items()}

    @staticmethod
    def load(state: Any) -> dict[str, Row]:
        """The rows that `save` gave. Errors: ValueError."""
        if not isinstance(state, Mapping):
            raise ValueError("it is no object")
        return {str(kind): _row(said) for kind, said in state.items()}


def _row(said: Any) -> Row:
    if not isinstance(said, list) or len(said) != 3:
        raise ValueError("a row has not three parts")
    failures, until, last = said
    if type(failures) is not int or failures < 1:
        raise ValueError(f"{failures!r} is no number of failures")
    if until is not None and not (type(until) in (int, float) and 0 <= until <= CLOCK_MAX_S):
        raise ValueError(f"{until!r} is no moment")
    return Row(min(failures, MOST), until, str(last))


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
    return _waits_for_trial(kind, row, seen, facts)


def judge_ready(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task that is to try, but that no worker takes, while a task of another lane tries."""
    seen: Seen | None = facts.more.get(NAME)
    row = None if seen is None else seen.book.rows.get(kind)
    if seen is None or row is None or not facts.passed_over.startswith(BREAKER):
        return PASS
    return _waits_for_trial(kind, row, seen, facts)


def _waits_for_trial(kind: str, row: Row, seen: Seen, facts: TypeFacts) -> Wait:
    who = seen.book.trying.get(kind)
    tries = facts.stock.tries(f"{BREAKER}{kind}", who) if who else "one task is trying"
    return Wait(NAME, f"{_failed(kind, row)}; {tries}, and the others wait for it")


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


# Breakers in the leader's snapshot: written by the leader, read by `spool explain`, `spool ls` and `spool status`.
# Law: for people and programs. What a reader makes of it, it only shows.


def picture_of(book: Book) -> dict[str, Any]:
    """The numbers of all types that have failures in a row."""
    return {kind: _numbers(book, kind, row) for kind, row in sorted(book.rows.items())}


def _numbers(book: Book, kind: str, row: Row) -> dict[str, Any]:
    said: dict[str, Any] = {"failures": row.failures, "last": row.last, "until": None}
    if row.until is not None:
        said["until"] = (
            datetime.fromtimestamp(row.until, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
    return {**said, "trying": book.trying[kind]} if kind in book.trying else said


def book_seen(gates: Mapping[str, Any]) -> Book:
    """The book that a snapshot shows; what cannot be read is left out."""
    book = Book()
    rows = gates.get("breaker")
    for kind, said in rows.items() if isinstance(rows, Mapping) else ():
        try:
            until = said["until"]
            moment = None if until is None else datetime.fromisoformat(until).timestamp()
            book.put(kind, Row(int(said["failures"]), moment, str(said.get("last", ""))))
        except (TypeError, ValueError, KeyError, AttributeError):
            continue
        if "trying" in said:
            book.trying[kind] = str(said["trying"])
    return book
