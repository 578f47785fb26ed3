"""Which attempts were given a message: what their results say, and what the one that runs reports."""

from __future__ import annotations

from typing import Any

from spoold.protocol.request import Request, Verb
from spoold.protocol.result import Result
from spoold.rules.answers.task_history import messages, when
from spoold.rules.gates.standing_requests import Requested


def asked(name: str, text: str) -> Requested:
    return Requested(Request(Verb.TELL, "t", name), by="ada", at="x", tell=text)


def result(attempt: int, told: Any, session: str = "") -> Result:
    output = {"told": told, **({"session": session} if session else {})}
    said = {"task_id": "t", "attempt": attempt, "worker_id": "w", "status": "failure", "output": output}
    return Result.model_validate({**said, "completed_at": "2026-01-01T00:00:00Z", "duration_s": 1})


def test_messages_are_joined_by_their_names_and_the_oldest_comes_first() -> None:
    had = [{"name": "1", "text": "a"}, {"name": "0", "text": "of a task that was retried"}]
    standing = (asked("2", "b"), asked("1", "a"), asked("3", "c"))
    found = messages(standing, [result(1, had), result(2, [])], 3, {"told": ["2", "1", "foreign"]})
    assert [(one.name, one.text, one.attempts) for one in found] == [
        ("0", "of a task that was retried", (1,)),
        ("1", "a", (1, 3)),
        ("2", "b", (3,)),
        ("3", "c", ()),
    ]


def test_what_was_given_in_vain_or_never_is_listed_as_the_journal_has_it() -> None:
    vain = [{"name": "1", "text": "a", "given": True}, {"name": "2", "text": "late", "given": False}]
    first = Result.model_validate({**result(1, []).model_dump(), "output": {"untold": vain}})
    found = messages((), [first, result(2, [{"name": "1", "text": "a"}])], None, None)
    assert [(one.name, one.text, one.attempts) for one in found] == [("1", "a", (1, 2)), ("2", "late", ())]


def test_an_attempt_that_goes_on_in_a_session_is_not_given_what_that_has() -> None:
    """`spool show` said "given to attempt 1, 2" of one message in one session."""
    had = [{"name": "1", "text": "a"}]
    results = [result(1, had, "s"), result(2, had, "s"), result(3, had, "new")]
    [one] = messages((), results, 4, {"told": ["1"], "session": "new"})
    assert one.attempts == (1, 3)
    [one] = messages((), results, 4, {"told": ["1"]})
    assert one.attempts == (1, 3, 4), "of which session that is, is not known"


def test_when_a_message_is_given_is_said_as_it_is() -> None:
    assert when(None, runs=True) == when({"text": "x"}, runs=True) == "when its next turn begins"
    assert when({"judged": True}, runs=True).endswith("if its work, which is judged now, is not accepted")
    assert when({"judged": True}, runs=False) == "with the prompt of its next attempt"


def test_what_no_attempt_may_say_is_left_out() -> None:
    for told in ("text", 5, [5, None, {"name": 1}], {"name": "1"}):
        assert messages((), [result(1, told)], 2, {"told": told}) == []
    assert messages((asked("1", "a"),), [], None, {"told": ["1"]})[0].attempts == ()
