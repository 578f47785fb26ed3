"""Tasks that wait for a request cost nothing until one about them comes, however many there are."""

from collections.abc import Callable

import pytest

from spoold.protocol.lanes import Lane
from spoold.protocol.names import order_in
from spoold.protocol.request import Request, Verb
from spoold.protocol.task import Task
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates import registry
from spoold.rules.gates.facts import NO_CONDITIONS, NO_TYPE, Conditions, Parent
from spoold.rules.gates.registry import conditions_of
from spoold.rules.gates.standing_requests import Requested
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.waiting_task import Entry
from tests.rules.strategies import name

LANE = Lane("t").encode()
NOW = Now(1000.0, 1_770_000_000.0)
HELD = conditions_of(Task.model_validate({"type": "t", "hold": "why"}))
ASKING = conditions_of(Task.model_validate({"type": "t", "approval": {"ask": "?"}}))
START = 1_770_000_000_000_000


def backlog() -> Backlog:
    return Backlog(lambda _: Parent.UNKNOWN)


def request(verb: Verb, task: str) -> tuple[Requested, ...]:
    return (Requested(Request(verb, task, "1")),)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often the gates were asked about a task since the last call."""
    calls: list[object] = []
    before = registry._verdict

    def counted(*words: object) -> object:
        calls.append(words)
        return before(*words)  # type: ignore[arg-type]

    def since() -> int:
        count = len(calls)
        calls.clear()
        return count

    monkeypatch.setattr(registry, "_verdict", counted)
    return since


@pytest.mark.parametrize("conditions", [HELD, ASKING])
@pytest.mark.parametrize("count", [10, 3000])
def test_parked_tasks_are_asked_about_once_and_never_again(
    asked: Callable[[], int], conditions: Conditions, count: int
) -> None:
    made = backlog()
    for number in range(count):
        made.add(Entry(name(f"t{number}", micros=START + number).encode(), LANE, conditions), NOW)
    assert asked() == count
    for second in range(1, 2000, 300):
        made.tick(Now(NOW.monotonic + second, NOW.wall + second))
        assert made.lanes() == []
    assert made.next_due() is None
    assert asked() == 0
    gate = "hold" if conditions is HELD else "approval"
    assert made.parked.count(gate) == count
    verb = Verb.UNHOLD if gate == "hold" else Verb.APPROVE
    made.request("t7", request(verb, "t7"), NOW)
    assert asked() == 1
    best = made.best(LANE)
    assert best is not None
    assert best.name.id == "t7"
    assert made.parked.count(gate) == count - 1


def test_a_plain_task_is_held_by_a_request_and_let_go_when_it_is_gone() -> None:
    made = backlog()
    made.request("a", request(Verb.HOLD, "a"), NOW)
    assert not made.would_let(Entry(name("a").encode(), LANE, NO_CONDITIONS), NO_TYPE, NOW)
    made.add(Entry(name("a").encode(), LANE, NO_CONDITIONS), NOW)
    made.add(Entry(name("b", micros=START + 1).encode(), LANE, NO_CONDITIONS), NOW)
    assert made.would_let(Entry(name("c").encode(), LANE, NO_CONDITIONS), NO_TYPE, NOW)
    best = made.best(LANE)
    assert best is not None
    assert best.name.id == "b"
    made.request("a", (), NOW)
    best = made.best(LANE)
    assert best is not None
    assert best.name.id == "a"


def test_the_oldest_that_waits_at_a_gate_is_known() -> None:
    made = backlog()
    assert made.parked.oldest("hold") is None
    files = {letter: name(letter, micros=START + 10 - number).encode() for number, letter in enumerate("abc")}
    for file in files.values():
        made.add(Entry(file, LANE, HELD), NOW)
    assert made.parked.oldest("hold") == files["c"]
    made.remove("c")
    again = name("b", micros=START + 99).encode()
    made.add(Entry(again, LANE, HELD), NOW)
    assert made.parked.oldest("hold") == files["a"]
    made.remove("a")
    assert made.parked.oldest("hold") == again
    assert order_in(again) == name("b", micros=START + 99).order


def test_what_comes_to_a_gate_is_news_once() -> None:
    made = backlog()
    for letter in "abc":
        made.add(Entry(name(letter).encode(), LANE, HELD), NOW)
    made.remove("b")
    assert list(made.parked.take("hold", 1)) == ["a"]
    assert list(made.parked.take("hold", 9)) == ["c"]
    assert list(made.parked.take("hold", 9)) == []
    assert made.parked.at("hold", "a")
    assert not made.parked.at("approval", "a")
    made.request("a", request(Verb.ASK, "a"), NOW)
    assert list(made.parked.take("hold", 9)) == [], "it was there before"


def test_a_rejection_says_in_which_rounds_work_was_sent_back_before() -> None:
    made = backlog()
    token = name("t")
    entry = Entry(token.encode(), LANE, ASKING)
    assert made.parked.rejection(token, Entry(token.encode(), LANE, NO_CONDITIONS)) is None
    assert made.parked.rejection(token, None) is None
    assert made.parked.rejection(token, entry) is None
    before = Requested(Request(Verb.REJECT, "t", "0"), order="o", redo=(("up", 1),), reason="again")
    now = Requested(Request(Verb.REJECT, "t", "1"), order=token.order, reason="enough")
    made.parked.see("t", (now,))
    said = made.parked.rejection(token, entry)
    assert said is not None
    assert (said["reason"], said["rejected"], "rounds" in said) == ("enough", True, False)
    made.parked.see("t", (now, before))
    said = made.parked.rejection(token, entry)
    assert said is not None
    assert [(one["round"], one["reason"]) for one in said["rounds"]] == [(1, "again")]
