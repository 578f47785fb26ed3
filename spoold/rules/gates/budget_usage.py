"""What attempts came to, by the budgets on which they draw, and what an attempt of a type usually comes to.

An account is one budget in one period: for ever, one day (UTC), one batch or one type. Each limit of a budget
(cost_usd, tokens, task_s) counts by itself, in millionths, so that sums are exact: ten times 0.10 are 1.00.

Law: values only. The sums come from the records of ended attempts alone, each of which is taken in once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from spoold.protocol.amount import MOST, clamped, plus
from spoold.protocol.lanes import kind_in, parse_lane
from spoold.protocol.names import key
from spoold.protocol.result import EndedAttempt, Status
from spoold.protocol.settings import Amounts, BudgetSettings, Settings
from spoold.protocol.task import Task

UNIT = 1_000_000
# No sum is more: the most of an amount, in millionths. JSON keeps it.
MOST_MICROS = MOST * UNIT
# How many days and batches of a budget are remembered; of batches those that spent last.
DAYS, BATCHES = 40, 10_000
# A moving average weighs an attempt as if so many were averaged.
WEIGHS = 20
# An attempt that ended so long (s) ago may still be taken in, for the day in which it ended.
LATE_S = 3600

Account = tuple[str, str]


def micros(amount: float) -> int:
    """An amount in millionths. Errors: TypeError for what is no number: a text times a million fills the memory."""
    if not isinstance(amount, int | float):
        raise TypeError(f"{type(amount).__name__} is no amount")
    found: int = round(clamped(amount) * UNIT)
    return found


def amounts(sums: Mapping[str, int]) -> dict[str, float]:
    """Sums in millionths as amounts, for people and programs: whole numbers stay whole."""
    return {name: value // UNIT if value % UNIT == 0 else value / UNIT for name, value in sums.items()}


def day_of(moment: float) -> str:
    """The day (UTC) of a moment (s since 1970)."""
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a task says: budgets that it draws on besides its type's, its batch, its own budget (in millionths)."""

    budgets: tuple[str, ...] = ()
    batch: str = ""
    own: tuple[tuple[str, int], ...] = ()


NOTHING = Asked()


def asked_by(task: Task) -> Asked | None:
    """What a task says of budgets; None if nothing."""
    asked = Asked(task.budgets, key(task.batch or ""), _own(task.reserves))
    return None if asked == NOTHING else asked


def _own(reserves: Mapping[str, float]) -> tuple[tuple[str, int], ...]:
    return tuple((name, micros(reserves[name])) for name in Amounts.model_fields if name in reserves)


def drawn(lane: str, asked: Asked | None, draws: Callable[[str], bool]) -> dict[str, Any]:
    """The fields of a leader's record from which its next leader sees whose attempt it was, where that matters.

    lane: '' where it is unknown; asked: None where it is; draws: whether all tasks of a type draw on a budget.
    """
    kind, said = kind_in(lane), asked or NOTHING
    if said == NOTHING and not draws(kind):
        return {}
    found, of = parse_lane(lane), amounts(dict(said.own))
    other = {"instead_of": found.instead_of} if found is not None and found.instead_of else {}
    return {"type": kind or None, **other, "batch": said.batch or None, "budgets": said.budgets, "budget": of}


def needs_reading(task: Task, settings: Settings) -> bool:
    """Whether a task's content must be read before it may be moved: also where a budget of its type is per batch, and
    where a task with a parent draws on one.
    """
    drawn_on = (settings.budgets[name] for name in settings.of(task.kind).budgets if name in settings.budgets)
    return task.conditional or any(
        task.parent is not None or (task.batch is not None and budget.per == "batch") for budget in drawn_on
    )


def drawing(settings: Settings) -> frozenset[str]:
    """The types all of whose tasks draw on a budget."""
    return frozenset(kind for kind, own in settings.types.items() if any(n in settings.budgets for n in own.budgets))


def draws_of(settings: Settings) -> tuple[Mapping[str, BudgetSettings], Mapping[str, tuple[str, ...]]]:
    """What says which tasks draw on which accounts: the budgets, and those of each type."""
    return settings.budgets, {kind: own.budgets for kind, own in settings.types.items() if own.budgets}


@dataclass(slots=True)
class Tally:
    """What the attempts of one account came to. unknown: attempts of which an amount is not known, by its name."""

    spent: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    unknown: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Sums:
    """What all attempts came to that were taken in: by account, and by type the usual amounts of one attempt.

    usual: by type and name of the amount, how many attempts were averaged and the average (millionths). day: an
    attempt counts for no earlier one, whatever its worker's clock says: a leader was there to take it in.
    """

    tallies: dict[Account, Tally] = field(default_factory=dict)
    usual: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)
    day: str = ""

    def take(self, attempt: EndedAttempt, settings: Settings, now: float) -> None:
        """Take in an ended attempt, once. now: s since 1970, by the pool's clock."""
        asked = Asked(attempt.budgets, key(attempt.batch or ""), _own(attempt.budget))
        kind, came, today = attempt.type or "", _came_to(attempt), day_of(now)
        day = max(self.day, min(today, attempt.completed_at[:10] or today))
        for account in accounts_of(settings, kind, asked, day):
            self._count(account, attempt, settings.budgets[account[0]], asked, came)
        for name, value in came.items() if kind and _began(attempt) else ():
            count, average = self.usual.setdefault(kind, {}).get(name, (0, 0.0))
            count = min(count + 1, WEIGHS)
            self.usual[kind][name] = (count, average + (value - average) / count)
        self._tidy()

    def live(self, now: float) -> None:
        """Note that a leader takes in attempts as they end. now: s since 1970, by the pool's clock."""
        self.day = max(self.day, day_of(now - LATE_S))

    def _count(
        self, account: Account, attempt: EndedAttempt, budget: BudgetSettings, asked: Asked, came: Mapping[str, int]
    ) -> None:
        tally = self.tallies.pop(account, None) or Tally()
        self.tallies[account] = tally  # behind all others: the one that spent last
        tally.attempts += 1
        for name in Amounts.model_fields:
            value = came.get(name)
            if value is None and _began(attempt):
                tally.unknown[name] = tally.unknown.get(name, 0) + 1
                if budget.unknown == "refuse":
                    value = self.reserve(attempt.type or "", asked, name)
            if value:
                tally.spent[name] = plus(tally.spent.get(name, 0), value, MOST_MICROS)

    def reserve(self, kind: str, asked: Asked, name: str) -> int | None:
        """How much an attempt may come to: by its own budget, else as is usual for its type; None if not known."""
        own = dict(asked.own).get(name)
        if own is not None:
            return own
        usual = self.usual.get(kind, {}).get(name)
        return None if usual is None else round(usual[1])

    def _tidy(self) -> None:
        """Forget days and batches of long ago."""
        for prefix, most in (("day:", DAYS), ("batch:", BATCHES)):
            mine = [account for account in self.tallies if account[1].startswith(prefix)]
            if len(mine) > most:
                for name in {name for name, _ in mine}:
                    for account in [account for account in mine if account[0] == name][:-most]:
                        del self.tallies[account]

    def save(self) -> dict[str, Any]:
        """The whole as a JSON value."""
        tallies = [
            {"budget": name, "period": period, "spent": t.spent, "attempts": t.attempts, "unknown": t.unknown}
            for (name, period), t in self.tallies.items()
        ]
        return {"tallies": tallies, "usual": self.usual, "day": self.day}

    @classmethod
    def load(cls, state: Any) -> Sums:
        """What `save` returned. Errors: ValueError for anything else."""
        try:
            return cls(
                {
                    (str(one["budget"]), str(one["period"])): Tally(
                        _numbers(one["spent"]), int(_amount(one["attempts"])), _numbers(one["unknown"])
                    )
                    for one in state["tallies"]
                },
                {
                    str(kind): {str(name): _average(pair) for name, pair in usual.items()}
                    for kind, usual in state["usual"].items()
                },
                str(state["day"]),
            )
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise ValueError(f"no sums of budgets: {error!r}") from error


def _numbers(found: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(_amount(value)) for name, value in found.items()}


def _average(pair: Any) -> tuple[int, float]:
    return int(_amount(pair[0])), float(_amount(pair[1]))


def _amount(value: Any) -> float:
    """A number of 0 or more, cut where a checkpoint of an old release says too much. Errors: ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"{value!r} is no amount")
    return min(value, MOST_MICROS)


def _began(attempt: EndedAttempt) -> bool:
    """Whether anything of the attempt may have run: a task may end where it waits, and be handed back unstarted."""
    if attempt.status == Status.WORKER_DIED:
        return True
    return attempt.started_at is not None and not (attempt.status == Status.HANDED_BACK and not attempt.duration_s)


def _came_to(attempt: EndedAttempt) -> dict[str, int]:
    """What the record of an attempt says that it came to, in millionths."""
    said = {"cost_usd": attempt.cost_usd, "tokens": attempt.tokens_used, "task_s": attempt.duration_s}
    return {name: micros(value) for name, value in said.items() if value is not None}


def accounts_of(settings: Settings, kind: str, asked: Asked, day: str) -> list[Account]:
    """The accounts that an attempt draws on, in a settled order. A budget without a section limits nothing."""
    names = {*settings.of(kind).budgets, *asked.budgets}
    period = {"total": "total", "day": f"day:{day}", "batch": f"batch:{asked.batch}", "type": f"type:{kind}"}
    return [(name, period[settings.budgets[name].per]) for name in sorted(names) if name in settings.budgets]
