"""tools/simulate: what it prints, what it logs, and what its exit status says."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.sim import mutants, universe
from tests.sim.workload import LIMITS
from tests.sim.worlds import WORLDS
from tools.simulation import __main__ as simulation
from tools.simulation.report import failures
from tools.simulation.swarm import Swarm


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["tools/simulate", *arguments])
    return simulation.main()


def test_a_swarm_counts_and_logs_every_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "seeds.jsonl"
    assert run(monkeypatch, "--seeds", "3", "--from", "5", "--jobs", "1", "--log", str(log)) == 0
    outcomes = [json.loads(line) for line in log.read_text().splitlines()]
    assert [outcome["seed"] for outcome in outcomes] == [5, 6, 7]
    said = capsys.readouterr().out
    commits = sum(outcome["commits"] for outcome in outcomes)
    faults = sum(len(outcome["struck"]) for outcome in outcomes)
    for name, value in (("seeds", 3), ("commits", commits), ("faults", faults), ("violations", 0)):
        row = next(line for line in said.splitlines() if line.startswith(f"│ {name} "))
        assert f" {value:,} " in row


def test_a_seed_of_another_world_is_told_with_its_world(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--seeds", "1", "--jobs", "1", "--world", "two-winners-lock") == 0
    monkeypatch.setitem(WORLDS, "narrower", ((universe, "LIMITS", {"narrow": 0}),))
    assert run(monkeypatch, "--seed", "0", "--world", "narrower") == 1
    assert "again: tools/simulate --seed 0 --world narrower" in capsys.readouterr().out
    assert vars(universe)["LIMITS"] is LIMITS


def test_fresh_seeds_are_told_and_no_time_is_no_proof(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda _: 234)
    assert run(monkeypatch, "--seeds", "9", "--fresh", "--time", "0", "--jobs", "1") == 1
    assert "tools/simulate --seeds 9 --from 1000234" in capsys.readouterr().out


def test_one_good_seed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--seed", "4") == 0
    assert "seed 4: every law holds" in capsys.readouterr().out


def test_one_bad_seed_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(universe, "LIMITS", {"narrow": 0})
    assert run(monkeypatch, "--seed", "4") == 1
    said = capsys.readouterr().out
    assert "seed 4 (" in said
    assert "limits: " in said
    assert "again: tools/simulate --seed 4\n" in said
    assert "none at all\n" in said
    assert "→ claimed/" in said, "the move that broke it"


def test_violations_of_a_swarm_are_told_with_their_seeds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(universe, "LIMITS", {"narrow": 0})
    result = Swarm()
    for seed in (4, 5):
        result.add(universe.simulate(seed))
    failures(Console(width=160), result, "fit")
    said = capsys.readouterr().out
    for seed in (4, 5):
        assert f"VIOLATION seed {seed}: limits: " in said
        assert f"    tools/simulate --seed {seed}\n" in said


@pytest.mark.parametrize("arguments", [(), ("--seeds", "0"), ("--seed", "1", "--seeds", "2")])
def test_arguments_that_make_no_sense(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as error:
        run(monkeypatch, *arguments)
    assert error.value.code == 2


def test_the_other_modes_get_their_own_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []

    def main() -> int:
        given.append(sys.argv[1:])
        return 7

    monkeypatch.setattr(mutants, "main", main)
    assert run(monkeypatch, "--mutants", "some-name", "--budget", "3") == 7
    assert given == [["some-name", "--budget", "3"]]
