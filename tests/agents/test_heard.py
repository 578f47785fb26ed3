"""What an agent said becomes its words, its usage and its trouble; and these become the end of an attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spoold.agents.adapters.adapter import Cost, Counting, Event, Trouble, Usage
from spoold.agents.process import ending
from spoold.agents.process.ending import Turn
from spoold.agents.process.transcript import TEXT_MAX, Transcript, since, total

QUOTA = Trouble("quota", "spent", 1000.0)
NET = Trouble("transient", "no answer", final=False)


def heard(*events: Event, counting: Counting = "sum") -> Transcript:
    found = Transcript(counting)
    for event in events:
        found.take(event)
    return found


def used(tokens_in: int, cost: Cost = "reported", cost_usd: float = 1.0) -> Usage:
    return Usage(tokens_in, 1, 0, cost_usd, cost)


def test_usage_is_counted_as_the_adapter_says() -> None:
    events = [Event(usage=used(10)), Event(usage=used(30)), Event(usage=used(5))]
    summed = heard(*events).usage
    assert summed == Usage(45, 3, 0, 3.0, "reported")
    assert heard(*events, counting="last").usage == used(5)
    assert heard().usage is None


@pytest.mark.parametrize(
    ("costs", "of_all"),
    [
        (["reported", "reported"], "reported"),
        (["reported", "estimated"], "estimated"),
        (["reported", "unknown"], "unknown"),
        (["unknown"], "unknown"),
    ],
)
def test_a_sum_is_as_sure_as_its_least_sure_part(costs: list[Cost], of_all: Cost) -> None:
    assert total([used(1, cost) for cost in costs]).cost == of_all
    assert total([used(1, "reported"), Usage()]).cost == "reported", "nothing used costs nothing"


def test_a_session_that_is_resumed_counts_only_what_is_new() -> None:
    assert since(used(30, cost_usd=3.0), used(10)) == Usage(20, 0, 0, 2.0, "reported")
    assert since(used(5), used(10)) == used(5), "it has begun anew"
    assert since(used(30, cost_usd=0.5), used(10)) == used(30, cost_usd=0.5)
    assert since(used(5), None) == used(5)
    assert ending.read_usage(ending.plain(used(7))) == used(7)
    assert ending.read_usage("7") is None
    assert ending.read_usage({"tokens_in": "x"}) == Usage(cost="estimated")


def test_the_answer_comes_before_all_other_words() -> None:
    assert heard(Event(text="a"), Event(text="b")).text == "a\nb"
    assert heard(Event(text="a"), Event(text="b", done=True)).text == "b"
    assert heard(Event(text="a\nlast "), Event(verb="PROGRESS", text="1 of 2")).last == "last"
    assert heard().last == ""
    many = heard(*(Event(text="x" * 1000) for _ in range(3000)))
    assert len(many.text) == TEXT_MAX
    assert (many.cut, heard(Event(text="a")).cut) == (True, False)
    assert heard(Event(text="x" * (TEXT_MAX + 1), done=True)).cut
    assert len(many.words) < 2200, "the beginning is forgotten"


def test_a_trouble_that_it_got_over_is_forgotten_and_a_final_one_is_not() -> None:
    assert heard(Event(trouble=NET), Event(text="going on")).trouble is None
    assert heard(Event(trouble=NET), Event(usage=used(1))).trouble == NET
    assert heard(Event(trouble=QUOTA), Event(text="bye"), Event(done=True)).trouble == QUOTA
    assert heard(Event(trouble=QUOTA), Event(trouble=NET)).trouble == QUOTA
    assert heard(Event(trouble=NET), Event(trouble=QUOTA)).trouble == QUOTA
    blocked = Trouble("refusal", "no", final=False)
    assert heard(Event(trouble=blocked), Event(text="bye")).trouble == blocked
    denied = heard(Event(trouble=Trouble("permission", "no")), Event(tool="edit"))
    assert (denied.trouble, denied.tools) == (None, 1)
    assert denied.permission is not None


def test_a_question_stands_until_it_is_done_or_asked_again() -> None:
    asks = Event(verb="QUESTION", said={"text": "?"}, text="?")
    assert heard(asks).asked == {"text": "?"}
    assert heard(asks, Event(text="never mind", done=True)).asked is None
    found = heard(asks, Event(session="s"), Event(trouble=NET))
    found.again()
    assert (found.asked, found.session, found.trouble, found.seen) == (None, "s", None, True)


@pytest.mark.parametrize(
    ("said", "turn", "ended", "fault"),
    [
        ([Event(text="ok")], Turn(0), None, None),
        ([Event(text="ok")], Turn(3, errors="boom"), None, "transient"),
        ([Event(text="ok")], Turn(3), Trouble("auth", "x"), "auth"),
        ([Event(text="ok")], Turn(None, "it said nothing"), None, "transient"),
        ([Event(trouble=QUOTA)], Turn(None, "it said nothing"), None, "quota"),
        ([Event(trouble=QUOTA)], Turn(1), Trouble("transient", "1"), "quota"),
        ([Event(text=" [API Error: no]", done=True)], Turn(0), None, "transient"),
    ],
)
def test_what_stands_in_the_way(said: list[Event], turn: Turn, ended: Trouble | None, fault: str | None) -> None:
    found = ending.trouble_of(heard(*said), turn, ended)
    assert (found and found.fault) == fault


@pytest.mark.parametrize(
    ("trouble", "limit", "code", "more"),
    [
        (replace(QUOTA, until=None), "a", 75, {"quota": {"limit": "a"}}),
        (replace(QUOTA, until=160.0), "a", 75, {"quota": {"limit": "a", "until": "1970-01-01T00:02:40.000+00:00"}}),
        (replace(QUOTA, until=160.0), "", 75, {"retry_after_s": 60.0}),
        (replace(QUOTA, until=None), "", 75, {"retry_after_s": 300.0}),
        (replace(QUOTA, until=3.0), "", 75, {"retry_after_s": 5.0}),
        (Trouble("rate", "x"), "", 75, {"retry_after_s": 30.0}),
        (Trouble("rate", "x"), "a", 75, {"quota": {"limit": "a", "until": "1970-01-01T00:02:10.000+00:00"}}),
        (Trouble("rate", "x", 101.0), "a", 75, {"quota": {"limit": "a", "until": "1970-01-01T00:01:45.000+00:00"}}),
        (Trouble("rate", "x", 101.0, final=False), "", 75, {"retry_after_s": 30.0}),
        (Trouble("rate", "x", 190.0, final=False), "", 75, {"retry_after_s": 90.0}),
        (Trouble("auth", "x"), "a", 77, {}),
        (Trouble("input", "x"), "a", 64, {}),
        (Trouble("context", "x"), "a", 65, {}),
        (Trouble("refusal", "x"), "a", 65, {}),
        (Trouble("permission", "x"), "a", 65, {}),
        (Trouble("budget", "x"), "a", 1, {}),
        (NET, "a", 1, {}),
    ],
)
def test_a_trouble_becomes_an_exit_code(trouble: Trouble, limit: str, code: int, more: dict[str, Any]) -> None:
    end = ending.end_of_trouble(trouble, limit, 100.0)
    assert (end.code, end.more) == (code, more)
    assert end.reasons == (f"{trouble.fault}: {trouble.message}",)


@pytest.mark.parametrize(
    ("until", "rest_s", "told"),
    [
        (1e6 + 587 * 3600.0, 8 * 86400.0, "it says that its limit opens in 24.5 days: asked again after 8 days"),
        (float("inf"), 8 * 86400.0, "it says that its limit opens in inf days: asked again after 8 days"),
        (1e6 + 8 * 86400.0, 8 * 86400.0, None),
        (1e6 - 600.0, 5.0, None),
        (
            1e6 - 86400.0,
            300.0,
            "the time at which it says that its limit opens is past, by 1.0 days: asked again after",
        ),
    ],
)
def test_an_implausible_time_is_told_and_bounded(until: float, rest_s: float, told: str | None) -> None:
    """G25: a reset that was long past was asked for every 5 s, and nothing told of one that was cut."""
    end = ending.end_of_trouble(replace(QUOTA, until=until), "", 1e6)
    assert end.more == {"retry_after_s": rest_s}
    assert end.reasons[0] == f"quota: {QUOTA.message}"
    assert [one.partition(told or "")[1] for one in end.reasons[1:]] == ([told] if told else [])


def test_done_needs_every_condition() -> None:
    said, silent = heard(Event(text="ok")), heard()
    denied = heard(Event(text="ok", done=True), Event(trouble=Trouble("permission", "edit is denied")))

    def outcome(found: Transcript, changed: list[str], reasons: list[str], *, must: bool = False) -> str:
        return ending.end_of_work(found, changed, reasons, must_change=must).outcome

    assert outcome(said, ["a"], [], must=True) == "done"
    assert outcome(silent, ["a"], []) == "done"
    assert outcome(said, [], []) == "no_change"
    assert outcome(silent, [], []) == "failed"
    assert outcome(said, ["a"], ["x"]) == "not_accepted"
    assert outcome(said, [], [], must=True) == "not_accepted"
    assert outcome(denied, [], []) == "blocked"
    assert outcome(denied, [], [], must=True) == "blocked"
    assert outcome(denied, ["a"], []) == "done"


def test_a_cost_that_nobody_knows_is_no_figure() -> None:
    assert "cost_usd" not in ending.figures(used(1, "unknown"))
    assert ending.figures(used(1))["cost_usd"] == 1.0
    assert ending.figures(None) == {}
