"""What counts of the requests about one task, and what the two gates make of it."""

from dataclasses import replace

import pytest

from spoold.protocol.approval import Approval, default_answer, may_answer
from spoold.protocol.request import Request, Verb
from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules.gates import approval_gate, stop_gates
from spoold.rules.gates.facts import NO_CONDITIONS, Facts, Parent
from spoold.rules.gates.gate import PASS, Refuse, Verdict, Wait
from spoold.rules.gates.registry import conditions_of, judge, wakes_of
from spoold.rules.gates.standing_requests import (
    Requested,
    approvals,
    decision,
    hold_of,
    is_released,
    open_questions,
    question,
    record,
    reply,
    unanswered,
)

NOW = 1_770_000_000.0
ASKS = Approval(ask="Deploy?", choices=("yes", "no"), expires_s=60)


def one(verb: Verb, unique: str = "1", **fields: object) -> Requested:
    return replace(Requested(Request(verb, "t", unique)), **fields)  # type: ignore[arg-type]


def ask(task: Task, *requests: Requested, now: float = NOW, order: str = "o-1") -> Verdict:
    known = Facts(now, lambda _: Parent.UNKNOWN, key="t", order=order, requested=requests)
    return judge(conditions_of(task), known)


def task(**more: object) -> Task:
    return Task.model_validate({"id": "t", "command": ["work"], **more})


def test_a_task_is_held_by_its_drop_or_by_a_person() -> None:
    assert ask(task(hold="why")) == Wait("hold", "it was submitted on hold: why")
    assert ask(task(hold="why"), one(Verb.UNHOLD)) == PASS
    assert ask(task(), one(Verb.HOLD, by="ada", reason="x")) == Wait("hold", "it is held by ada: x")
    assert ask(task(), one(Verb.HOLD)) == Wait("hold", "it is held by an unknown user")
    assert ask(task(hold="why"), one(Verb.UNHOLD), one(Verb.HOLD)) == Wait("hold", "it is held by an unknown user")
    assert ask(task()) == PASS
    assert stop_gates.judge_hold(NO_CONDITIONS, Facts(NOW, lambda _: Parent.OPEN)) == PASS


def test_the_first_hold_speaks_and_a_release_is_no_hold() -> None:
    requests = (one(Verb.HOLD, "2"), one(Verb.HOLD, "1"), one(Verb.UNHOLD, "3"))
    assert hold_of(requests) == requests[1]
    assert hold_of(requests[2:]) is None
    assert is_released(requests)
    assert not is_released(requests[:2])


def test_a_task_waits_for_its_answer_and_says_for_which() -> None:
    mine = task(approval=ASKS.model_dump())
    waits = ask(mine)
    assert isinstance(waits, Wait)
    assert waits.reason == (
        "it waits for an answer to 'Deploy?' (yes, no), not asked yet; after 1 m of silence it is rejected"
    )
    put = one(Verb.ASK, order="o-1", at="2026-02-02T09:00:00Z", until=NOW + 60)
    waits = ask(mine, put)
    assert isinstance(waits, Wait)
    assert (waits.until, "asked at 2026-02-02T09:00:00Z" in waits.reason) == (NOW + 60, True)
    assert ask(mine, put, one(Verb.APPROVE)) == PASS
    assert ask(mine, put, one(Verb.APPROVE, order="o-2")) != PASS
    assert ask(mine, put, one(Verb.APPROVE, answer="perhaps")) != PASS
    assert ask(mine, put, one(Verb.APPROVE, about="q")) != PASS
    refused = ask(mine, one(Verb.APPROVE), one(Verb.REJECT, "9", by="ada", reason="no"))
    assert refused == Refuse("approval", Code.REJECTED, "'Deploy?' was rejected by ada: no")
    assert approval_gate.judge(NO_CONDITIONS, Facts(NOW, lambda _: Parent.OPEN)) == PASS


def test_silence_refuses_or_goes_on_waiting_for_the_leaders_answer() -> None:
    put = one(Verb.ASK, order="o-1", until=NOW)
    assert ask(task(approval=ASKS.model_dump()), put) == Refuse(
        "approval", Code.REJECTED, "nobody answered 'Deploy?' within 1 m"
    )
    mild = ASKS.model_copy(update={"on_expire": "no"})
    waits = ask(task(approval=mild.model_dump()), put)
    assert isinstance(waits, Wait)
    assert "after 1 m of silence the answer is 'no'" in waits.reason
    assert isinstance(ask(task(approval={"ask": "Deploy?"}), one(Verb.ASK, order="o-1")), Wait)


def test_of_several_answers_the_first_by_name_counts_and_a_rejection_before_all() -> None:
    first, second = one(Verb.APPROVE, "1", answer="no"), one(Verb.APPROVE, "2")
    assert decision((second, first), ASKS, "o") == first
    assert decision((second, one(Verb.APPROVE, "0", answer="x")), ASKS, "o") == second
    assert decision((first, second, one(Verb.REJECT, "9")), ASKS, "o") == one(Verb.REJECT, "9")
    assert decision((one(Verb.REJECT, order="other"),), ASKS, "o") is None
    assert list(approvals((second, first), ASKS, "o")) == [first, second]


def test_of_several_questions_the_one_that_expires_first_counts() -> None:
    late, early = one(Verb.ASK, "1", order="o", until=9.0), one(Verb.ASK, "2", order="o", until=5.0)
    assert question((late, early, one(Verb.ASK, "3", attempt=1, order="o")), "o") == early
    assert question((late,), "other") is None


def test_questions_of_a_running_task_and_their_answers() -> None:
    asked = (one(Verb.ASK, "q2", attempt=1), one(Verb.ASK, "q1", attempt=1), one(Verb.ASK, "q0", order="o"))
    given = one(Verb.APPROVE, "1", about="q2")
    assert [q.unique for q in unanswered(asked)] == ["q1", "q2"]
    assert [q.unique for q in unanswered((*asked, given))] == ["q1"]
    assert reply((given, one(Verb.REJECT, "2", about="q2")), "q2") == one(Verb.REJECT, "2", about="q2")
    assert reply((given,), "q2") == given
    assert reply((given,), "q1") is None


def test_a_question_that_is_answered_is_open_no_more() -> None:
    running = (one(Verb.ASK, "q1", attempt=1), one(Verb.ASK, "q2", attempt=1), one(Verb.APPROVE, "1", about="q1"))
    assert [q.unique for q in open_questions(running)] == ["q2"]
    waits = (one(Verb.ASK, "q3", order="o", ask="Deploy?"), one(Verb.ASK, "q4", order="o", ask="Deploy?", until=3.0))
    assert [q.unique for q in open_questions(waits)] == ["q3"]
    assert open_questions((*waits, one(Verb.APPROVE, "2"))) == []
    assert open_questions(()) == []


def test_a_record_says_who_answered_when_and_what() -> None:
    given = one(Verb.APPROVE, by="ada", at="now", reason="why")
    said = {"ask": "Deploy?", "answer": "yes", "by": "ada", "at": "now", "reason": "why", "rejected": False}
    assert record(given, "Deploy?", ("yes", "no")) == said
    assert record(replace(given, answer="no"), "Deploy?", ("yes", "no"))["answer"] == "no"
    assert record(given, "Deploy?", ())["answer"] is True
    told = record(replace(given, request=Request(Verb.REJECT, "t", "1")), "Deploy?", ("yes",))
    assert (told["answer"], told["rejected"]) == (None, True)


@pytest.mark.parametrize(
    ("choices", "answer", "may"),
    [((), {"a": 1}, True), (("a",), "a", True), (("a",), "b", False), (("a",), None, True), (("a",), ["a"], False)],
)
def test_an_answer_is_one_of_the_choices(choices: tuple[str, ...], answer: object, may: bool) -> None:
    assert may_answer(choices, answer) is may


def test_the_answer_of_silence() -> None:
    assert default_answer(("a", "b")) == "a"
    assert default_answer(()) is True
    assert Approval(ask="?", choices=("a", "b"), expires_s=1, on_expire="b").at_the_end == "b"
    assert Approval(ask="?", choices=("a", "b"), expires_s=1, on_expire="approve").at_the_end == "a"


def test_a_gate_that_is_not_known_wakes_by_nothing() -> None:
    assert wakes_of(Wait("moon", "")) == frozenset()
