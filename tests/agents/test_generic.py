"""The line protocol of agents that nobody knows but their owner."""

from __future__ import annotations

from typing import Any

import pytest

from spoold.agents.adapters import generic, known_agents
from spoold.agents.adapters.adapter import Adapter, Errand, Event, Trouble, Usage


def read(line: str) -> Event | None:
    found = generic.make().read(line, 100.0)
    return found[0] if found else None


def test_it_is_found_by_its_name() -> None:
    assert "generic" in known_agents.names()
    assert not {"adapter", "finding"} & set(known_agents.names())
    made: Adapter = known_agents.make("generic")
    assert made.name == "generic"
    with pytest.raises(KeyError):
        known_agents.make("../x")


def test_the_prompt_comes_on_standard_input_and_the_rest_in_the_command() -> None:
    errand = Errand(
        "-p {model}",
        "/place",
        "/home",
        model="m-{home}",
        session="s",
        command=("agent", "--in={workspace}", "{home}"),
        args=("{model}/{session}", "{other}"),
    )
    start = generic.make().start(errand)
    assert start.argv == ("agent", "--in=/place", "/home", "m-{home}/s", "{other}")
    assert start.stdin == "-p {model}"


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("words", Event(text="words")),
        ("  ", None),
        ("SPOOL:DONE {}", Event(text="SPOOL:DONE {}")),
        ("SPOOL:COMPLETED {broken", Event(text="SPOOL:COMPLETED {broken")),
        ("SPOOL:COMPLETED [1]", Event(text="SPOOL:COMPLETED [1]")),
        ("SPOOL:COMPLETED", Event(verb="COMPLETED", said={}, done=True)),
        ('SPOOL:COMPLETED {"text": "a"}', Event(verb="COMPLETED", said={"text": "a"}, text="a", done=True)),
        ('SPOOL:PROGRESS {"text": "1/2"}', Event(verb="PROGRESS", said={"text": "1/2"}, text="1/2")),
        ('SPOOL:QUESTION {"text": "?"}', Event(verb="QUESTION", said={"text": "?"}, text="?")),
        ('SPOOL:SESSION {"id": "s-1"}', Event(verb="SESSION", said={"id": "s-1"}, session="s-1")),
        ("SPOOL:SESSION", Event(verb="SESSION", said={})),
    ],
)
def test_a_line_is_an_event(line: str, event: Event | None) -> None:
    assert read(line) == event


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ('{"tokens_in": 1, "tokens_out": 2, "tokens_cached": 3, "cost_usd": 0.5}', Usage(1, 2, 3, 0.5, "reported")),
        ('{"tokens_in": 1}', Usage(1)),
        ('{"tokens_in": true, "tokens_out": -1, "tokens_cached": "3", "cost_usd": NaN}', Usage()),
        ('{"cost_usd": 0}', Usage(0, 0, 0, 0.0, "reported")),
    ],
)
def test_usage_is_numbers_or_nothing(said: str, usage: Usage) -> None:
    found = read(f"SPOOL:USAGE {said}")
    assert found is not None
    assert found.usage == usage


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ("SPOOL:FAILED", Trouble("transient", "it says that it failed")),
        ('SPOOL:FAILED {"reason": "x", "fault": "quota", "retry_after_s": 50}', Trouble("quota", "x", 150.0)),
        (
            'SPOOL:FAILED {"fault": ["quota"], "retry_after_s": "soon"}',
            Trouble("transient", "it says that it failed"),
        ),
        ("SPOOL:BLOCKED", Trouble("refusal", "it says that it is blocked")),
        ('SPOOL:BLOCKED {"reason": "no branch"}', Trouble("refusal", "no branch")),
    ],
)
def test_a_failure_has_a_class(line: str, trouble: Trouble) -> None:
    found = read(line)
    assert found is not None
    assert found.trouble == trouble


@pytest.mark.parametrize(("code", "fault"), [(0, None), (75, "rate"), (2, "transient"), (-9, "transient")])
def test_an_exit_code_says_something_too(code: int, fault: str | None) -> None:
    found: Any = generic.make().ended(code, "first\n last \n")
    assert (found and found.fault) == fault
    assert found is None or found.message == f"exit code {code}: last"
    assert generic.make().read_log("x", 0.0) == []
