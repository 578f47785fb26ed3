"""The trial of agents in the lab: what it submits and how its workers are set up, and what it makes of a copy."""

from __future__ import annotations

import argparse
import os
import subprocess
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.configuration.profiles import expand
from tests.agents.fakemodel_dialects import Messages, Responses
from tools.demonstration.agents.mind import CHANGES, LARGE, feature, think
from tools.demonstration.agents.repository import ENVIRONMENT, Repository
from tools.laboratory.agents import command
from tools.laboratory.agents.fleet import LINKED, NAMES, Fleet, repository
from tools.laboratory.agents.provider import Provider
from tools.laboratory.agents.trial import edits, repositories
from tools.laboratory.lab import Lab
from tools.laboratory.protocols import PROTOCOLS


def test_each_command_line_has_its_share_of_the_edits() -> None:
    made = edits(24, list(command.CLIS))
    assert Counter(task["agent"] for task in made) == dict.fromkeys(command.CLIS, 6)
    assert len({task["id"] for task in made}) == 24
    conflicting = [str(task["prompt"]) for task in made if CHANGES in str(task["prompt"])]
    assert [prompt.partition(":")[0] for prompt in conflicting] == ["Edit f01", "Edit f24"]


def test_an_agent_that_shows_its_model_the_repository_is_still_asked_for_its_own_edit() -> None:
    first, second, third, *_ = (str(task["prompt"]) for task in edits(24, ["qwen"]))
    shown = f"This is the folder: {CHANGES}, features/. These are the last commits: qwen: {third}"
    for prompt, edit, written in ((first, "f01", True), (second, "f02", False)):
        thought = think(f"{shown}\n{prompt}")
        assert thought is not None
        assert thought.edit == edit
        assert (CHANGES in thought.line) is written


def test_a_worker_offers_each_command_line_and_merges() -> None:
    lab = Lab("unused", PROTOCOLS["nfs4.2"], 1)
    fleet = Fleet(lab, "spool", clis={cli: Path("/clis") for cli in command.CLIS}, url="http://model")
    said = tomllib.loads(fleet.configuration())
    assert set(said["agents"]) == set(command.CLIS)
    assert {profile["then"] for profile in said["agents"].values()} == {"merge"}
    assert "--test" in said["handlers"]["merge"]["command"]
    assert not any("limit" in profile for profile in said["agents"].values())
    assert said["agents"]["claude"]["env"]["ANTHROPIC_BASE_URL"] == "http://model"
    repos = [repository(name) for name in NAMES]
    assert [word for word in said["handlers"]["merge"]["command"] if word in repos] == repos
    expand(said, "worker.toml", {})


def test_the_account_that_closes_has_a_limit_and_another_command_line_in_its_place() -> None:
    lab = Lab("unused", PROTOCOLS["nfs4.2"], 1)
    clis = {cli: Path("/clis") for cli in command.CLIS}
    for account, other in (("codex", "claude"), ("claude", "opencode")):
        fleet = Fleet(lab, "spool", clis=clis, url="http://model", account=account)
        said, settings = tomllib.loads(fleet.configuration()), tomllib.loads(fleet.settings)
        limits = {cli: profile.get("limit") for cli, profile in said["agents"].items() if "limit" in profile}
        assert limits == {account: next(iter(settings["limits"]))}
        assert settings["types"][account]["uses"] == [limits[account]]
        assert said["agents"][account]["instead"] == [fleet.other] == [other]


def test_one_edit_is_beside_a_submodule_and_one_has_a_large_file(tmp_path: Path) -> None:
    made = edits(6, list(command.CLIS))
    where = [task["workspace"] for task in made if "workspace" in task]
    assert where == [{"repo": repository(LINKED)}, {"repo": repository(LARGE)}]
    found = repositories(tmp_path)
    for number, name, path in ((2, LINKED, "features/f02.txt"), (3, LARGE, "large/f03.bin")):
        clone = tmp_path / f"clone-{name}"
        git = ["git", "-c", "protocol.file.allow=always", "-c", "filter.lfs.process=", "-c", "filter.lfs.smudge="]
        words = ["clone", "-q", "--recurse-submodules", str(found[name].path), str(clone)]
        subprocess.run([*git, *words], check=True, env={**os.environ, **ENVIRONMENT})
        thought = think(str(made[number - 1]["prompt"]))
        assert thought is not None
        subprocess.run(["sh", "-c", thought.line], cwd=clone, check=True)
        assert (clone / path).exists()
        for line in made[number - 1]["accept"]:  # type: ignore[attr-defined]
            subprocess.run(["sh", "-c", line], cwd=clone, check=True, capture_output=True)


def asked(said: str, *, done: bool = False) -> dict[str, Any]:
    """A request as codex makes it."""
    tools = [{"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {}}}}]
    after = [{"type": "function_call_output", "output": "ok"}] if done else []
    return {"tools": tools, "input": [{"role": "user", "content": said}, *after]}


def test_the_model_counts_what_is_paid_by_edit() -> None:
    (first, second, *_) = (str(task["prompt"]) for task in edits(4, ["codex"]))
    with Provider() as model:
        for prompt in (first, second):
            assert model.answer(Responses(), asked(prompt)).call is not None
            assert model.answer(Responses(), asked(prompt, done=True)).text
        model.answer(Responses(), asked(first, done=True))
        assert (model.answers["f01"], model.begun["f01"], model.finished["f01"]) == (3, 1, 2)
        assert (model.answers["f02"], model.begun["f02"], model.finished["f02"]) == (2, 1, 1)
        assert model.cost["f01"] == 0


def test_an_account_is_closed_from_its_second_edit_on_and_no_other_is() -> None:
    (first, second, *_) = (str(task["prompt"]) for task in edits(4, ["codex"]))
    with Provider("codex", 3600, 2) as model:
        assert model.answer(Responses(), asked(first)).status == 200
        refused = model.answer(Responses(), asked(second))
        assert (refused.status, refused.resets is not None) == (429, True)
        assert model.answer(Responses(), asked(first, done=True)).status == 429, "what had begun is refused, too"
        assert model.refusals == {"f01": 1, "f02": 1}
        assert model.answers == {"f01": 1}, "a refusal is not paid"
        body = {"messages": [{"role": "user", "content": second}], "tools": [{"name": "Bash", "input_schema": {}}]}
        assert model.answer(Messages(), body).status == 200
        assert model.cost["f02"] == pytest.approx(0.00357)


def test_last_words_wait_while_they_are_held() -> None:
    prompt = str(edits(4, ["codex"])[1]["prompt"])
    with Provider() as model:
        model.hold()
        with ThreadPoolExecutor(1) as pool:
            said = pool.submit(model.answer, Responses(), asked(prompt, done=True))
            while not model.held:
                assert not said.done()
            assert model.held == ["f02"]
            model.release()
            assert said.result(10).text


def test_a_laptop_has_a_disk_and_memory_as_asked_for() -> None:
    lab = Lab("unused", PROTOCOLS["nfs4.2"], 2, memory_mb=3072, disk_mb=4096)
    assert {(lab.guests[name].memory_mb, lab.guests[name].disk is None) for name in lab.laptops} == {(3072, False)}
    plain = Lab("unused", PROTOCOLS["nfs4.2"], 1)
    assert (plain.guests["laptop1"].memory_mb, plain.guests["laptop1"].disk) == (256, None)


def test_a_copy_of_the_repository_is_taken_over_whole(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    ours, theirs = Repository(first), Repository(second)
    tip = theirs.first_parents()[-1]
    ours.take(theirs.path)
    assert ours.first_parents()[-1] == tip
    assert ours.has(tip)
    assert not ours.features("main")
    assert not ours.made_by(feature(1))


def test_what_is_missing_is_said_before_a_lab_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="no command line of an agent"):
        command.carry_out(argparse.Namespace(clis=tmp_path))
    assert capsys.readouterr().out.count("not played") == len(command.CLIS)
