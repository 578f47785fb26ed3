"""The trial of agents in the lab: what it submits and how its workers are set up, and what it makes of a copy."""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tools.demonstration.agents.mind import CHANGES, feature, think
from tools.demonstration.agents.repository import Repository
from tools.laboratory.agents import command
from tools.laboratory.agents.fleet import Fleet
from tools.laboratory.agents.trial import edits
from tools.laboratory.lab import Lab
from tools.laboratory.protocols import PROTOCOLS


def test_each_command_line_has_its_share_of_the_edits() -> None:
    made = edits(24, list(command.CLIS))
    assert Counter(task["agent"] for task in made) == dict.fromkeys(command.CLIS, 8)
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
