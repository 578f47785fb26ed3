"""The class of an error: the words decide before the status."""

import pytest

from spoold.agents.adapters import error_classes, parsing
from spoold.agents.adapters.adapter import Trouble


@pytest.mark.parametrize(
    ("text", "status", "fault"),
    [
        ("You've hit your usage limit.", 429, "quota"),
        ("insufficient_quota", 429, "quota"),
        ("Your credit balance is too low", 400, "quota"),
        ("5-hour limit reached ∙ resets 3pm", None, "quota"),
        ("Rate limit reached for API key", 429, "rate"),
        ("exceeded retry limit, last status: 429 Too Many Requests", None, "rate"),
        ("something", 429, "rate"),
        ("something: status 429", None, "rate"),
        ("Incorrect API key provided", 401, "auth"),
        ("Invalid auth method selected.", None, "auth"),
        ("no", 403, "auth"),
        ("prompt is too long: 210000 tokens", 400, "context"),
        ("The response was blocked by the content filter", None, "refusal"),
        ("Reached max turns (3)", None, "budget"),
        ("The user rejected permission to use this tool", None, "permission"),
        ("Path not in workspace", None, "permission"),
        ("The model `x` does not exist", 404, "input"),
        ("something", 400, "input"),
        ("Overloaded", 529, "transient"),
        ("fetch failed", None, "transient"),
        ("never heard of it", None, "transient"),
    ],
)
def test_classes(text: str, status: int | None, fault: str) -> None:
    assert error_classes.classify(text, status) == fault


def test_a_rate_that_opens_much_later_is_a_quota() -> None:
    assert error_classes.trouble("rate limit", 0.0, until=60.0).fault == "rate"
    assert error_classes.trouble("rate limit, try again in 2 hours", 0.0).fault == "quota"
    assert error_classes.retrying("rate limit", 0.0, again=3600.0) == Trouble("quota", "rate limit", 3600.0)
    assert error_classes.retrying("rate limit", 0.0, again=5.0) == Trouble("rate", "rate limit", 5.0, final=False)


def test_a_short_pause_is_no_reset_time_of_a_quota() -> None:
    assert error_classes.retrying("usage limit", 0.0, again=5.0) == Trouble("quota", "usage limit")
    assert error_classes.retrying("usage limit, try again in 1 hour", 0.0, again=5.0).until == 3600.0


def test_what_stays_wrong_is_final_and_what_may_pass_is_not() -> None:
    assert error_classes.retrying("Incorrect API key", 0.0).final
    assert not error_classes.retrying("overloaded", 0.0, again=5.0).final
    assert error_classes.trouble("overloaded", 0.0, until=5.0).until is None


def test_a_message_is_one_line_and_short() -> None:
    assert len(error_classes.trouble("a\n b " * 1000, 0.0).message) == error_classes.MESSAGE_LIMIT
    assert error_classes.trouble("a\n  b", 0.0).message == "a b"


def test_objects_in_a_line() -> None:
    assert list(parsing.objects('x {"a": {"b": 1}} y {"c": [2]} {broken')) == [{"a": {"b": 1}}, {"c": [2]}]
    assert not list(parsing.objects("{" * 1_000_000))
    assert not list(parsing.objects('{"a":' * 100_000))


def test_values_of_the_wrong_kind_are_nothing() -> None:
    assert parsing.inner({"a": {"b": 1}}, "a") == {"b": 1}
    assert parsing.inner({"a": [1]}, "a", "b") == {}
    assert parsing.items([{"a": 1}, 2, "x"]) == [{"a": 1}]
    assert parsing.items("x") == []
    assert parsing.text(3) == ""
    assert [parsing.count(value) for value in (3, 2.9, -1, True, "4", None)] == [3, 2, 0, 0, 0, 0]
