"""Seeds that must hold, those that once did not, and proof that the simulator itself is honest."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from spoold.store import mover
from spoold.store.mover import Fate, Moved
from spoold.system.filesystem import FileSystem
from tests.house.sources import CHECKOUT
from tests.sim import universe
from tests.sim.conduct import Broken
from tests.sim.minimise import AllBut, minimise
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.trace import tell
from tests.sim.universe import Universe, simulate
from tests.sim.weather import BLOWS, FLAVOURS

FIXED = range(24)
# What once broke a law, and seeds that show it when the mend is taken out again.
REGRESSIONS = {
    "a beat whose publishing seemed to fail was published again under its name (smb)": 10,
    "a beat whose publishing seemed to fail was published again under its name (nfs)": 75,
    "a claim that was committed in the same step was adopted again (completed)": 430,
    "a claim that was committed in the same step was adopted again (lease over)": 1215,
    "a line of a batch was published before it would survive a power cut of the server (smb)": 5042,
    "a line of a batch was published before it would survive a power cut of the server (nfs)": 5348,
    "a token taken back to waiting/ hid from the next leader, who admitted its id again (smb)": 1546,
    "a token taken back to waiting/ hid from the next leader, who admitted its id again (nfs)": 3730,
    "a command was begun after the lease of its worker was over": 3748,
    "a commit that was carried out between two looks was taken for lost": 452391154,
}


@pytest.mark.parametrize("seed", FIXED)
def test_every_law_holds(seed: int) -> None:
    outcome = simulate(seed)
    assert outcome.broken is None, f"tools/simulate --seed {seed}"
    assert outcome.commits > 10


@pytest.mark.parametrize("seed", REGRESSIONS.values(), ids=REGRESSIONS.keys())
def test_what_once_broke_a_law_holds(seed: int) -> None:
    assert simulate(seed).broken is None, f"tools/simulate --seed {seed}"


def test_a_seed_is_one_story() -> None:
    """To the last name: names decide the order in which things come."""
    first, second = Universe(3), Universe(3)
    assert first.run() == second.run()
    assert first.server.fs.files() == second.server.fs.files()
    assert simulate(3) != simulate(4)


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_a_seed_is_the_same_story_in_another_process(hash_seed: str) -> None:
    """Neither the order of sets nor the day decides anything."""
    code = "from tests.sim.universe import simulate; print([simulate(seed) for seed in range(2)])"
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(CHECKOUT)}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, env=env, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == repr([simulate(seed) for seed in range(2)])


@pytest.mark.parametrize("seed", range(3))
def test_without_faults_nothing_goes_wrong_and_nothing_is_retried_for_a_crash(seed: int) -> None:
    world = Universe(seed, AllBut(frozenset()))
    outcome = world.run()
    assert outcome.broken is None
    assert outcome.struck == ()
    assert [machine.shut_out for machine in world.machines] == [0, 0, 0, 0]
    starts = [machine.name for machine in world.machines]
    assert starts == ["m1-1", "m2-1", "w1-1", "w2-1"]


def test_the_weather_brings_what_it_says() -> None:
    """Every blow, and every kind of share; what single calls may meet is in test_mount, one by one."""
    outcomes = [simulate(seed) for seed in range(14)]
    assert {outcome.flavour for outcome in outcomes} == set(FLAVOURS)
    blows = {name.split(" ")[0] for outcome in outcomes for name in outcome.struck if " blow " in name}
    assert blows == set(BLOWS)
    assert sum(outcome.fenced for outcome in outcomes) > 10


def test_listening_changes_nothing() -> None:
    outcome, lines = tell(2)
    assert outcome == simulate(2)
    assert any("EVENT CLAIMED" in line for line in lines)
    assert any("→ completed/" in line for line in lines)


def test_a_broken_law_is_seen_and_needs_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(universe, "LIMITS", {"narrow": 0})
    outcome = simulate(0)
    assert outcome.law == "limits"
    small = minimise(outcome)
    assert (small.faults, small.runs) == ((), 1)


def test_the_faults_that_matter_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mover that takes the first error for the truth breaks only where a reply is lost, or comes late."""

    def hasty(fs: FileSystem, src: str, dst: str, error: OSError) -> Moved:
        return Moved(Fate.LOST, error)

    monkeypatch.setattr(mover, "_judge", hasty)
    outcome = next(outcome for outcome in map(simulate, range(200)) if outcome.broken is not None)
    small = minimise(outcome, runs=25)
    assert small.outcome.law == outcome.law
    assert small.runs <= 25
    assert len(small.faults) < len(outcome.struck) / 2
    again, lines = tell(outcome.seed, AllBut(frozenset(small.faults)))
    assert again == small.outcome
    assert [line for line in lines if "FAULT" in line]


@pytest.mark.parametrize(
    ("verb", "args", "law"),
    [
        ("rename", ("tmp/x", "completed/there.1.w1-1.json"), "written once"),
        ("unlink", ("completed/there.1.w1-1.json",), "lost"),
        ("rename", ("completed/there.1.w1-1.json", "ready/there.json"), "the table of moves"),
    ],
)
def test_the_witness_sees_what_no_node_may_do(verb: str, args: tuple[str, ...], law: str) -> None:
    """Among it a replace: that it is not atomic on SMB cannot matter where nothing is ever replaced."""
    world = Universe(0)
    server: Server = world.server
    server.fs.write("tmp/x", b"{}", durable=True)
    server.fs.write("completed/there.1.w1-1.json", b"{}", durable=True)
    with pytest.raises(Broken, match=law):
        server.call(verb, *args)


def test_what_a_dead_process_still_does_has_no_effect() -> None:
    scheduler = Scheduler()
    done: list[str] = []

    def body() -> None:
        done.append("begun")
        scheduler.sleep(1.0)
        done.append("went on")

    process = scheduler.spawn("p", body)
    scheduler.run(0.5, lambda: False)
    scheduler.kill(process)
    scheduler.run(5.0, lambda: False)
    assert done == ["begun"]
    assert process.dead
