"""What attempts came to, what is reserved, and what the gate makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.result import Code, EndedAttempt
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.gates import budget_gate as gate
from spoold.rules.gates import budget_usage
from spoold.rules.gates.budget_gate import NO_NEWS, SHOWN, Book, First, Purse, book_seen, picture_of
from spoold.rules.gates.budget_usage import NOTHING, Asked, Sums, Tally, asked_by, draws_of, micros, needs_reading
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Facts, Held, Known, Parent, TypeFacts
from spoold.rules.gates.gate import PASS, Refuse, Verdict, Wait
from spoold.rules.gates.registry import book, groups, judge, registered, typed

NOON = 20_500 * 86_400 + 43_200.0
TODAY = "2026-02-16"
ONE: dict[str, Any] = {"budgets": {"nightly": {"cost_usd": 1}}, "types": {"review": {"budgets": ["nightly"]}}}


def settings(**said: Any) -> Settings:
    """One budget of a dollar on which reviews draw, with these fields."""
    return Settings.model_validate({**ONE, "budgets": {"nightly": {"cost_usd": 1, **said}}})


def ended(cost_usd: float | None = 0.1, **more: Any) -> EndedAttempt:
    said = {"id": "a", "attempt": 1, "decider": "w1", "status": "success", "type": "review", "duration_s": 1.0}
    said |= {"started_at": "2026-02-16T11:59:00Z", "completed_at": "2026-02-16T11:59:01Z", "cost_usd": cost_usd}
    return EndedAttempt(**{**said, **more})


def spent(sums: Sums, name: str = "nightly", period: str = "total") -> dict[str, int]:
    return sums.tallies[name, period].spent


def ask(purse: Purse | None, asked: Asked = NOTHING, kind: str = "review") -> Verdict:
    conditions = Conditions(more=((gate.NAME, asked),)) if asked != NOTHING else NO_CONDITIONS
    return judge(conditions, Facts(NOON, lambda _: Parent.UNKNOWN, kind=kind, more={gate.NAME: purse}))


def tenth(number: int = 1) -> Asked:
    return Asked(own=(("cost_usd", number * 100_000),))


def test_a_text_is_no_amount() -> None:
    with pytest.raises(TypeError, match="str is no amount"):
        micros("7")  # type: ignore[arg-type]


def test_ten_times_a_tenth_is_one() -> None:
    sums = Sums()
    for number in range(10):
        sums.take(ended(id=f"t{number}"), settings(), NOON)
    assert spent(sums)["cost_usd"] == micros(1)
    assert sums.tallies["nightly", "total"].attempts == 10


@given(st.lists(st.floats(0, 1e15) | st.none(), max_size=20))
def test_no_sum_is_more_than_json_keeps_and_each_survives_it(costs: list[float | None]) -> None:
    sums = Sums(day=TODAY)
    for cost in costs:
        sums.take(ended(cost, tokens_used=cost), settings(), NOON)
    assert Sums.load(json.loads(json.dumps(sums.save()))) == sums
    assert all(value <= budget_usage.MOST_MICROS for tally in sums.tallies.values() for value in tally.spent.values())


@pytest.mark.parametrize("state", [None, [], {}, {"tallies": [{}], "usual": {}, "day": ""}, {"tallies": 1}, "x"])
def test_what_is_no_state_is_an_error(state: Any) -> None:
    with pytest.raises(ValueError, match="no sums of budgets"):
        Sums.load(state)


@pytest.mark.parametrize(
    ("per", "period"), [("total", "total"), ("day", f"day:{TODAY}"), ("batch", "batch:b1"), ("type", "type:review")]
)
def test_each_period_has_an_account_of_its_own(per: str, period: str) -> None:
    sums = Sums()
    sums.take(ended(batch="B1"), settings(per=per), NOON)
    assert list(sums.tallies) == [("nightly", period)]


@pytest.mark.parametrize(
    ("completed_at", "day"),
    [
        ("2026-02-15T23:59:59Z", "2026-02-15"),
        ("2026-02-14T23:59:59Z", "2026-02-15"),  # a leader was there the day after
        ("2027-01-01T00:00:00Z", TODAY),  # by a clock that is ahead
        ("", TODAY),
    ],
)
def test_an_attempt_counts_for_the_day_in_which_it_ended_as_far_as_that_can_be(completed_at: str, day: str) -> None:
    sums = Sums()
    sums.live(NOON - 86_400)
    sums.take(ended(completed_at=completed_at), settings(per="day"), NOON)
    assert list(sums.tallies) == [("nightly", f"day:{day}")]


def test_a_leader_that_lives_lets_an_hour_pass_after_midnight() -> None:
    sums = Sums()
    midnight = NOON - 43_200
    sums.live(midnight + 3599)
    assert sums.day == "2026-02-15"
    sums.live(midnight + 3600)
    assert sums.day == TODAY
    sums.live(midnight)
    assert sums.day == TODAY


def test_days_and_batches_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_usage, "BATCHES", 2)
    both = Settings.model_validate({"budgets": {"a": {"per": "batch"}, "b": {"per": "batch"}}})
    sums = Sums()
    for batch in ("x", "y", "x", "z"):
        sums.take(ended(batch=batch, budgets=("a",)), both, NOON)
    sums.take(ended(batch="x", budgets=("b",)), both, NOON)
    assert list(sums.tallies) == [("a", "batch:x"), ("a", "batch:z"), ("b", "batch:x")]


def test_an_attempt_without_figures_counts_as_nothing_or_as_reserved() -> None:
    for unknown, amount in (("count_as_zero", {}), ("refuse", {"cost_usd": 300_000})):
        sums = Sums()
        sums.take(ended(None, budget={"cost_usd": 0.3}), settings(unknown=unknown), NOON)
        assert {k: v for k, v in spent(sums).items() if k == "cost_usd"} == amount
        assert sums.tallies["nightly", "total"].unknown == {"cost_usd": 1, "tokens": 1}


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ({"started_at": None, "status": "cancelled", "duration_s": 0.0}, False),
        ({"status": "handed_back", "duration_s": 0.0}, False),
        ({"status": "handed_back", "duration_s": 3.0}, True),
        ({"started_at": None, "status": "worker_died", "duration_s": 0.0}, True),
    ],
)
def test_what_never_began_cost_nothing(said: dict[str, Any], *, counts: bool) -> None:
    sums = Sums()
    sums.take(ended(None, budget={"cost_usd": 0.3}, **said), settings(unknown="refuse"), NOON)
    assert ("cost_usd" in spent(sums)) == counts
    assert bool(sums.usual) == counts


def test_the_usual_amount_moves_with_the_last_attempts() -> None:
    sums = Sums()
    for cost in [1.0] * 30 + [2.0]:
        sums.take(ended(cost), settings(), NOON)
    assert sums.reserve("review", NOTHING, "cost_usd") == micros(1 + 1 / budget_usage.WEIGHS)
    assert sums.reserve("review", tenth(), "cost_usd") == 100_000
    assert sums.reserve("other", NOTHING, "cost_usd") is None
    assert sums.reserve("review", NOTHING, "tokens") is None
    sums.take(ended(type=None), settings(), NOON)
    assert "" not in sums.usual


def test_what_a_task_says_of_budgets() -> None:
    plain = Task.model_validate({"type": "review", "budget": {"usd": 3}})
    assert asked_by(plain) is None
    assert not plain.conditional, "the key is for other tools"
    said = Task.model_validate(
        {"type": "review", "budgets": "a+b", "batch": "N1", "budget": {"tokens": 5, "cost_usd": 0.1, "usd": 3}}
    )
    assert said.conditional
    assert asked_by(said) == Asked(("a", "b"), "n1", (("cost_usd", 100_000), ("tokens", 5_000_000)))


def test_a_batch_must_be_read_where_a_budget_of_the_type_is_per_batch() -> None:
    task = Task.model_validate({"type": "review", "batch": "b"})
    assert not needs_reading(task, settings())
    assert needs_reading(task, settings(per="batch"))
    assert not needs_reading(Task.model_validate({"type": "review"}), settings(per="batch"))
    assert needs_reading(Task.model_validate({"type": "x", "budgets": "nightly"}), settings())
    gone = Settings.model_construct(types={"review": settings().types["review"]})
    assert not needs_reading(task, gone)
    assert budget_usage.drawing(gone) == frozenset()


def purse(spent_usd: float = 0.0, reserved: int = 0, **said: Any) -> Purse:
    sums = Sums()
    found = Purse(settings(**said), Book(sums), NOON)
    [account] = found.accounts("review", NOTHING)
    sums.tallies[account] = Tally({"cost_usd": micros(spent_usd)})
    for _ in range(reserved):
        found.reserve("review", tenth())
    return found


def test_only_an_earlier_task_that_lacks_something_keeps_a_later_one_back() -> None:
    held = purse(0.5)
    held.book.first = (First("2", "later", "review", tenth(9)), First("0", "small", "review", tenth(2)))
    facts = Facts(NOON, lambda _: Parent.UNKNOWN, kind="review", more={gate.NAME: held}, file="1")
    assert judge(Conditions(more=((gate.NAME, tenth()),)), facts) == PASS


def test_the_eleventh_of_a_tenth_waits_and_the_tenth_does_not() -> None:
    assert ask(purse(0.4, 5), tenth()) == PASS
    found = ask(purse(0.4, 6), tenth())
    assert found == Wait(
        "budget",
        "budget nightly: 1.00 of 1.00 USD are spent or reserved, and it reserves 0.10; "
        "`spool budget raise nightly --cost-usd …` adds to it",
    )
    assert isinstance(ask(purse(0.95), tenth()), Wait)
    assert ask(purse(0.95)) == PASS, "nothing is known of it, so it reserves nothing"
    assert isinstance(ask(purse(1)), Wait), "of nothing not even nothing can be taken"


def test_who_draws_on_nothing_passes() -> None:
    assert ask(None) == PASS
    assert gate.GATE.judge(NO_CONDITIONS, Facts(NOON, lambda _: Parent.UNKNOWN, kind="review")) == PASS
    assert ask(purse(1), kind="other") == PASS
    assert ask(purse(1), Asked(("gone",)), kind="other") == PASS
    assert isinstance(ask(purse(1), Asked(("nightly",)), kind="other"), Wait)


def test_over_fail_refuses_what_will_never_fit_and_holds_what_may() -> None:
    assert isinstance(ask(purse(0.5, 5, over="fail"), tenth()), Wait)
    found = ask(purse(0.95, over="fail"), tenth())
    assert isinstance(found, Refuse)
    assert found.code is Code.BUDGET_EXCEEDED


def test_a_refusal_comes_before_a_wait() -> None:
    both = Settings.model_validate({"budgets": {"a": {"cost_usd": 0}, "b": {"tokens": 0, "over": "fail"}}})
    found = ask(Purse(both, Book(), NOON), Asked(("a", "b")))
    assert isinstance(found, Refuse)
    assert found.reason.startswith("budget b: 0 of 0 tokens are spent or reserved; ")


def test_unknown_refuse_asks_for_a_budget() -> None:
    known = purse(unknown="refuse")
    assert ask(known, tenth()) == PASS
    found = ask(known)
    assert isinstance(found, Wait)
    assert found.reason == "budget nightly: nobody knows how many USD it may come to; give it a budget with cost_usd"
    assert isinstance(ask(purse(unknown="refuse", over="fail")), Refuse)
    assert known.group("review", tenth()) != known.group("review", NOTHING)
    known.book.sums.usual["review"] = {"cost_usd": (1, 100_000.0)}
    assert ask(known) == PASS


def test_a_day_opens_with_the_next_one() -> None:
    found = ask(purse(1, per="day"), tenth())
    assert isinstance(found, Wait)
    assert found.until == NOON + 43_200
    assert found.reason.startswith(f"budget nightly (day {TODAY}): 1.00 of 1.00 USD")
    assert ask(replace(purse(1, per="day"), now=NOON + 43_200), tenth()) == PASS
    held = Held("a", "review", TypeFacts())
    assert gate.GATE.change is not None
    assert gate.GATE.change(held, found, ()) == "time; or `spool budget raise`"
    assert "a smaller `budget`" in gate.GATE.change(held, replace(found, until=None), ())


def test_what_says_which_tasks_draw_is_compared_when_settings_change() -> None:
    assert draws_of(settings()) == draws_of(settings().model_copy(update={"timeout": 5}))
    assert draws_of(settings()) != draws_of(settings(per="day"))
    assert draws_of(settings()) != draws_of(Settings())


def test_another_gate_may_look_at_all_tasks_of_some_types_too() -> None:
    known = purse()
    other = replace(gate.GATE, name="other", kinds=lambda gathered: frozenset({"x"}), book=None)
    with registered(other, replace(other, name="third", kinds=None)):
        assert typed({gate.NAME: known, "other": 1}) == {"review", "x"}


def test_a_leaders_record_says_whose_attempt_it_was_only_where_that_matters() -> None:
    assert budget_usage.drawn("type=x", NOTHING, {"review"}.__contains__) == {}
    assert budget_usage.drawn("", None, {"review"}.__contains__) == {}
    plain: dict[str, Any] = {"type": "review", "batch": None, "budgets": (), "budget": {}}
    assert budget_usage.drawn("type=review", None, {"review"}.__contains__) == plain
    assert budget_usage.drawn("", Asked(("a",), "b", (("cost_usd", 500_000),)), {"review"}.__contains__) == {
        "type": None,
        "batch": "b",
        "budgets": ("a",),
        "budget": {"cost_usd": 0.5},
    }


def test_a_closed_book_holds_all_that_draw() -> None:
    closed = purse()
    closed.book.closed = "it is being read"
    assert ask(closed) == Wait("budget", "it is being read")
    assert ask(closed, kind="other") == PASS


def test_tasks_that_draw_on_the_same_accounts_are_one_group_and_others_in_none() -> None:
    known = purse()

    def group(kind: str, asked: Asked = NOTHING) -> object:
        conditions = Conditions(more=((gate.NAME, asked),)) if asked != NOTHING else NO_CONDITIONS
        return groups(conditions, Facts(NOON, lambda _: Parent.UNKNOWN, kind=kind, more={gate.NAME: known}))

    assert group("review") == group("other", Asked(("nightly",))) != ()
    assert group("other") == ()
    assert typed({gate.NAME: known}) == {"review"}
    assert typed({}) == typed({gate.NAME: None}) == frozenset()


def test_what_goes_to_ready_is_booked() -> None:
    known = purse()
    facts = Facts(NOON, lambda _: Parent.UNKNOWN, kind="review", more={gate.NAME: known})
    conditions = Conditions(more=((gate.NAME, tenth()),))
    book(groups(conditions, facts), conditions, facts)
    assert known.book.reserved["nightly", "total"]["cost_usd"] == 100_000
    book((), conditions, facts)
    gate.GATE.book(conditions, replace(facts, more={}))  # type: ignore[misc]
    assert known.book.reserved["nightly", "total"]["cost_usd"] == 100_000
    known.reserve_all([("review", tenth(3))])
    assert known.book.reserved["nightly", "total"]["cost_usd"] == 300_000
    assert known.open(("nightly", "total"))
    known.reserve_all([("review", tenth(10))])
    assert not known.open(("nightly", "total"))


def test_the_gate_gathers_a_purse_only_where_there_are_budgets() -> None:
    assert gate.GATE.gather is not None
    assert gate.GATE.gather(Known(NOON, Settings(), ())) is None
    own = Book()
    assert gate.GATE.gather(Known(NOON, settings(), (), more={gate.NAME: own})) == Purse(settings(), own, NOON)
    assert gate.GATE.gather(Known(NOON, settings(), ())) == Purse(settings(), Book(), NOON)
    with pytest.raises(ValueError, match="there is a gate budget"), registered(gate.GATE):
        pass


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [
        (0, "cost_usd", "0.00"),
        (123_456, "cost_usd", "0.123456"),
        (1_500_000, "task_s", "1.5"),
        (10**12, "tokens", "1,000,000"),
    ],
)
def test_figures_are_as_short_as_they_can_be(value: int, name: str, words: str) -> None:
    assert gate.figure(value, name) == words


FILE = "5000.hbv8u65a0w-1.t7.a1f0c0d.json"


def test_the_snapshot_says_what_explain_needs() -> None:
    known = purse(0.5, 2)
    known.book.held["nightly", "total"] = (FILE,)
    known.book.sums.usual["review"] = {"cost_usd": (3, 100_000.0)}
    said = json.loads(json.dumps(picture_of(known)))
    assert said["nightly"]["periods"] == [
        {
            "period": "total",
            "spent": {"cost_usd": 0.5, "tokens": 0, "task_s": 0},
            "reserved": {"cost_usd": 0.2, "tokens": 0, "task_s": 0},
            "left": {"cost_usd": 0.3},
            "attempts": 0,
            "unknown": {},
            "waits": "t7",
            "first": [FILE],
        }
    ]
    seen = replace(known, book=book_seen({"budget": said}))
    assert list(seen.short("review", tenth(4))) == list(known.short("review", tenth(4)))
    assert seen.book.sums.reserve("review", NOTHING, "cost_usd") == 100_000


def test_a_day_that_nobody_has_drawn_on_is_shown_and_of_many_batches_the_last() -> None:
    fresh = Purse(settings(per="day"), Book(), NOON)
    assert [one["period"] for one in picture_of(fresh)["nightly"]["periods"]] == [f"day:{TODAY}"]
    many = Purse(settings(per="batch"), Book(), NOON)
    for number in range(SHOWN + 2):
        many.book.sums.tallies["nightly", f"batch:{number}"] = Tally()
    many.book.reserved["nightly", "batch:new"] = {"cost_usd": 1}
    said = picture_of(many)["nightly"]
    assert (said["periods"][0]["period"], len(said["periods"]), said["more"]) == ("batch:new", SHOWN, 3)


@pytest.mark.parametrize("gates", [{}, {"budget": []}, {"budget": {"nightly": {}}}, {"budget": {"nightly": 1}}])
def test_a_snapshot_that_says_nothing_lets_nobody_believe_that_all_is_left(gates: dict[str, Any]) -> None:
    assert book_seen(gates) == Book(closed=NO_NEWS)
    unsure = replace(purse(0.5, 2), book=book_seen(gates))
    held = Held("a", "review", TypeFacts(more={"budget": unsure}))
    change = gate.GATE.change
    assert change is not None
    assert change(held, Wait("budget", NO_NEWS), ()).startswith("it goes on when a leader has counted that")
