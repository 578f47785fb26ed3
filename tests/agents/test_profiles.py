"""[agents.NAME] becomes a handler; every mistake names file, key and fix."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.configuration.profiles import VARIABLE, expand, read_back
from spoold.protocol.codec import check
from spoold.protocol.errors import BadFile
from spoold.worker.handlers.worker_config import WorkerConfig, load_config

GENERIC = {"cli": "generic", "command": ["agent"]}


def handler(said: dict[str, Any], environ: dict[str, str] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = expand({"agents": {"coder": said}}, "w.toml", environ or {})["handlers"]["coder"]
    return found


def test_a_profile_is_a_handler_that_finds_it_again() -> None:
    said = {
        **GENERIC,
        "model": "m-1",
        "timeout": 60,
        "secrets": ["KEY"],
        "allow_cwd": ["/srv"],
        "concurrent": 3,
        "env": {"A": "b"},
        "accept": ["make test", ["true"]],
        "success_if": {"file": "out.md"},
        "max_turns": 5,
    }
    found = handler(said)
    assert found["command"] == [sys.executable, "-P", "-m", "spoold.agents"]
    assert (found["timeout"], found["secrets"], found["allow_cwd"]) == (60, ["KEY"], ["/srv"])
    assert (found["max_concurrent"], found["needs"]) == (3, ["agent"])
    about = {"agent": "generic", "model": "m-1", "recorded": "its own line protocol", "takes": "", "sets": "model"}
    assert found["about"] == about
    assert handler({**said, "limit": "big"})["about"] == {**about, "limit": "big"}
    assert found["env"]["A"] == "b"
    name, profile = read_back(found["env"][VARIABLE])
    assert (name, profile.model, profile.max_turns, profile.env) == ("coder", "m-1", 5, {"A": "b"})
    assert profile.accept == ("make test", ("true",))
    assert profile.success_if == {"file": "out.md"}


def test_a_worker_reads_it_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text(
        'slots = 2\n[handlers.x]\ncommand = ["x"]\n[agents.Coder]\ncli = "generic"\ncommand = ["./agent"]\n'
    )
    config = load_config(str(file), {"slots": 3}, expand=expand)
    assert (config.slots, sorted(config.handlers), config.crowds) == (3, ["coder", "x"], {})
    assert config.handlers["coder"].needs == (), "where a relative path leads, each attempt says"
    with pytest.raises(BadFile, match="agents: unknown field"):
        load_config(str(file))


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (["coder"], "w.toml: agents.coder.instead: coder is in its own list. Fix: take it out"),
        (["b", "B"], "w.toml: agents.coder.instead: b is twice in the list of coder. Fix: take one out"),
        (
            [f"b{number}" for number in range(17)],
            "w.toml: agents.coder.instead: the list of coder is too long. Fix: name",
        ),
        (["no type"], "w.toml: agents.coder.instead.0:"),
    ],
)
def test_a_wrong_list_of_other_types_is_told_with_file_key_and_fix(others: list[str], said: str) -> None:
    with pytest.raises(BadFile) as found:
        handler({**GENERIC, "instead": others})
    assert str(found.value).startswith(said)
    handlers = {"coder": {"command": ["x"], "instead": others}}
    with pytest.raises(BadFile, match=r"handlers\.coder\.instead"):
        check(WorkerConfig, {"handlers": handlers}, "w.toml")


def test_what_is_odd_about_a_list_of_other_types_is_said_when_the_worker_starts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    repo = {"workspace": {"repo": "/srv/a"}}
    agents = {
        "coder": {**GENERIC, **repo, "allow_accept": True, "instead": ["gone", "strict", "other", "hand"]},
        "strict": {**GENERIC, **repo},
        "other": {**GENERIC, "allow_accept": True, "workspace": {"repo": "/srv/b"}},
    }
    table = {"agents": agents, "handlers": {"hand": {"command": ["x"]}}}
    found = expand(table, "w.toml", {})["handlers"]
    assert found["coder"]["instead"] == ["gone", "strict", "other", "hand"]
    gone, strict, other = [record.getMessage() for record in caplog.records if " instead: " in record.getMessage()]
    assert (
        gone
        == "w.toml: [agents.coder] instead: nothing here runs gone, so its tasks wait for another worker that does"
    )
    assert "strict lacks allow_accept" in strict
    assert "other has another workspace.repo" in other


def test_values_come_from_the_environment_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("from-a-file\n")
    said = {
        **GENERIC,
        "model": {"file": str(tmp_path / "model")},
        "args": ["--at=${HOST}:${PORT}", "$${HOST} $X {model}"],
    }
    _, profile = read_back(handler(said, {"HOST": "a", "PORT": "1"})["env"][VARIABLE])
    assert profile.model == "from-a-file"
    assert profile.args == ("--at=a:1", "${HOST} $X {model}")


@pytest.mark.parametrize(
    ("table", "key", "said"),
    [
        ({"agents": 7}, "agents", "is no table"),
        ({"agents": {"coder": 7}}, "agents.coder", "is no table"),
        ({"agents": {"co der": GENERIC}}, "agents.co der", "not a plain word"),
        ({"agents": {"coder": GENERIC}, "handlers": {"Coder": {}}}, "agents.coder", "there is a handler coder, too"),
        ({"agents": {"coder": {}}}, "agents.coder.cli", "missing"),
        ({"agents": {"coder": {"cli": "x"}}}, "agents.coder.cli", "no agent that is known here"),
        ({"agents": {"coder": {"cli": "generic"}}}, "agents.coder", "has no command"),
        ({"agents": {"coder": {**GENERIC, "modle": "x"}}}, "agents.coder.modle", "did you mean 'model'"),
        ({"agents": {"coder": {**GENERIC, "model": "--x"}}}, "agents.coder", "model is not a name"),
        ({"agents": {"coder": {**GENERIC, "idle_timeout": 0}}}, "agents.coder.idle_timeout", "too small"),
        ({"agents": {"coder": {**GENERIC, "accept": [""]}}}, "agents.coder", "accept holds what is no command"),
        ({"agents": {"coder": {**GENERIC, "success_if": {"x": 1}}}}, "agents.coder", "x is no condition"),
        ({"agents": {"coder": {**GENERIC, "args": ["${NO}"]}}}, "agents.coder.args", "environment has no NO"),
        ({"agents": {"coder": {**GENERIC, "model": {"file": "/no/where"}}}}, "agents.coder.model", "cannot be read"),
    ],
)
def test_a_mistake_names_file_key_and_fix(table: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(BadFile) as error:
        expand(table, "w.toml", {})
    assert (error.value.file, error.value.field) == ("w.toml", key)
    assert said in str(error.value)
    assert error.value.mend


def test_a_profile_may_ask_for_an_empty_folder() -> None:
    """B27: it was refused, since it "has no repository"."""
    assert handler({**GENERIC, "workspace": {"kind": "none"}})
    with pytest.raises(BadFile, match='kind = "none" has no repository'):
        handler({**GENERIC, "workspace": {"kind": "none", "repo": "/srv/x"}})


def test_a_file_for_a_value_has_bounds(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * ((64 << 10) + 1))
    (tmp_path / "odd").write_bytes(b"\xff")
    for name, said in (("long", "more than 64 KiB"), ("odd", "is not UTF-8")):
        with pytest.raises(BadFile, match=said):
            handler({**GENERIC, "model": {"file": str(tmp_path / name)}})


def test_a_table_without_profiles_is_left_as_it_is() -> None:
    table = {"slots": 1}
    assert expand(table, "w.toml") is table


def test_a_table_of_agents_that_is_misspelt_is_named(tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    for text, known in (
        ('[agent.edit]\ncli = "claude"\n', "did you mean 'agents'?"),
        ('[merges]\nrepos = "/r"\n', "did you mean 'merge'?"),
        ("[quux]\n", "known here: agents, allow_command"),
    ):
        file.write_text(text)
        with pytest.raises(BadFile, match=re.escape(known)):
            load_config(str(file), expand=expand)
