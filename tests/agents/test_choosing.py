"""Which model, how many tokens and which temperature count, and what an agent cannot be given."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.attempt.handler_contract import NONE, Choice, chosen, of_type, passed
from spoold.agents.configuration.profiles import VARIABLE, Profile, expand, read_back
from tests.agents.attempts import Desk
from tests.cli.commands import spool


def profile(**said: Any) -> Profile:
    """A profile as an attempt finds it."""
    found = expand({"agents": {"coder": {"cli": "codex", **said}}}, "w.toml", {})["handlers"]["coder"]
    return read_back(found["env"][VARIABLE])[1]


def test_the_task_comes_before_the_profile_and_that_before_the_type() -> None:
    kind = Choice("of-type", 100, 0.0)
    assert chosen({}, profile(), kind) == kind
    assert chosen({}, profile(), NONE) == NONE
    own = profile(model="own", max_tokens=7, temperature=0)
    assert chosen({}, own, Choice("of-type", 100, 0.5)) == Choice("own", 7, 0)
    assert chosen({"model": "asked"}, own, kind).model == "asked"


def test_what_an_agent_cannot_be_given_is_said_and_left_out() -> None:
    given, told = passed(Choice("m", 100, 0.0), profile())
    assert given == Choice("m")
    assert told == [
        "codex cannot be given max_tokens, so 100 does not count; say it in its own settings",
        "codex cannot be given temperature, so 0.0 does not count; say it in its own settings",
    ]
    assert passed(NONE, profile()) == (NONE, [])
    generic = profile(cli="generic", command=["agent", "--t={temperature}"], args=["{model}"])
    given, told = passed(Choice("m", 100, 0.5), generic)
    assert given == Choice("m", None, 0.5)
    assert told == ["generic cannot be given max_tokens, so 100 does not count; name {max_tokens} in its command"]
    gemini = profile(cli="gemini")
    assert passed(Choice("m", 100), gemini) == (Choice("m", 100), [])
    given, told = passed(Choice("", 100), gemini)
    assert (given, told) == (NONE, ["gemini cannot be given max_tokens, so 100 does not count; name a model, too"])


def test_a_worker_says_so_when_it_starts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "spoold"):
        profile(model="m", temperature=0.5)
    [said] = caplog.messages
    assert (
        said
        == "the agent coder (codex) cannot be given temperature, so what [agents.coder] says of it does not count"
    )


def test_the_settings_of_a_type_are_those_that_hold_now(tmp_path: Path) -> None:
    root = tmp_path / "s"
    assert spool("init", str(root)).code == 0
    assert of_type(str(root), "coder") == (NONE, "")
    pairs = ("types.coder.model=big-1", "types.coder.max_tokens=100", "types.coder.temperature=0.5")
    for key, _, value in (pair.partition("=") for pair in pairs):
        assert spool("config", "set", key, value, root=root).code == 0
    assert of_type(str(root), "coder") == (Choice("big-1", 100, 0.5), "")
    assert of_type(str(root), "other") == (NONE, "")
    found, why = of_type(str(tmp_path / "none"), "coder")
    assert (found, "none counts" in why) == (NONE, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [("model", '"--yolo"'), ("model", '"a b"'), ("model", '""'), ("max_tokens", "0"), ("temperature", "-1")],
)
def test_no_setting_becomes_an_option(tmp_path: Path, key: str, value: str) -> None:
    root = tmp_path / "s"
    assert spool("init", str(root)).code == 0
    done = spool("config", "set", f"types.coder.{key}", value, root=root)
    assert (done.code, f"types.coder.{key}" in done.err) == (2, True), done.err


def test_an_attempt_is_given_what_the_type_says(tmp_path: Path) -> None:
    root = tmp_path / "s"
    assert spool("init", str(root)).code == 0
    (root / "spool.toml").write_text('[types.coder]\nmodel = "big-1"\nmax_tokens = 100\ntemperature = 0.5\n')
    script = "import sys; print(sys.argv[1:])"
    desk = Desk(tmp_path, script, {"args": ["{model}", "{temperature}"]}, env={"SPOOL_ROOT": str(root)})
    ended = desk.run(prompt="x")
    assert ended.result["text"] == "['big-1', '0.5']"
    assert "generic cannot be given max_tokens, so 100 does not count" in ended.said
