"""Jobs that are given to a slot before it is free: they begin in order, one at a time, or never."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from spoold.rules.workers.slots import DEPTH, PATIENCE_S
from spoold.runner.job import Call, Job, NoSlot
from spoold.runner.job_runner import Runner
from tests.runner.processes import Bench, endings, eventually


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A runner with one slot."""
    bench = Bench(Runner(1), tmp_path)
    yield bench
    bench.runner.close(0)


def held(bench: Bench, count: int) -> tuple[Path, list[Job]]:
    """A job that goes on until a file is there, and jobs that wait behind it and say when they run."""
    gate, said = bench.where / "gate", bench.where / "said"
    first = bench.shell(f"until test -e {gate}; do sleep 0.01; done; echo first >>{said}")
    jobs = [first, *(bench.shell(f"echo {number} >>{said}") for number in range(count))]
    for job in jobs:
        bench.runner.start(job)
    return gate, jobs


def said(bench: Bench) -> list[str]:
    path = bench.where / "said"
    return path.read_text().split() if path.exists() else []


def test_they_begin_in_order_each_when_the_one_before_is_over(bench: Bench) -> None:
    gate, jobs = held(bench, 3)
    assert bench.runner.waiting() == {job.key for job in jobs[1:]}
    assert bench.runner.running() == {job.key for job in jobs}
    gate.touch()
    found = endings(bench.runner, 4)
    assert [(ending.key, ending.kind) for ending in found] == [(job.key, "exited") for job in jobs]
    assert said(bench) == ["first", "0", "1", "2"]
    assert all(before.ended_at <= after.started_at + 0.001 for before, after in pairwise(found))
    assert bench.runner.waiting() == bench.runner.running() == set()


def test_each_has_its_own_environment(bench: Bench) -> None:
    jobs = [bench.shell("echo $WHO", env={**os.environ, "WHO": who}) for who in ("a", "b", "c", "c")]
    for job in jobs:
        bench.runner.start(job)
    assert [ending.stdout for ending in endings(bench.runner, 4)] == ["a\n", "b\n", "c\n", "c\n"]


def test_calls_wait_for_the_same_warm_process(bench: Bench) -> None:
    for _ in range(5):
        bench.runner.start(bench.job(Call("os:getpid")))
    assert len({ending.value for ending in endings(bench.runner, 5)}) == 1


def test_one_that_is_stopped_never_begins_and_those_behind_it_do(bench: Bench) -> None:
    gate, jobs = held(bench, 3)
    bench.runner.stop(jobs[1].key, "not wanted", 5.0)
    ending = bench.next()
    assert (ending.key, ending.kind) == (jobs[1].key, "stopped")
    assert ending.message == "stopped before it began: not wanted"
    gate.touch()
    assert [ending.key for ending in endings(bench.runner, 3)] == [jobs[0].key, jobs[2].key, jobs[3].key]
    assert said(bench) == ["first", "1", "2"]


def test_a_long_job_is_relieved_of_what_waits_for_it(bench: Bench) -> None:
    gate, jobs = held(bench, 2)
    bench.runner.relieve(3600.0)
    assert bench.runner.engaged(3600.0) == 0
    assert bench.runner.waiting() == {jobs[1].key, jobs[2].key}
    eventually(lambda: bench.runner.engaged(PATIENCE_S) == 1)
    bench.runner.relieve(0.05)
    bench.runner.relieve(0.05)
    found = endings(bench.runner, 2)
    assert {(ending.key, ending.kind) for ending in found} == {(job.key, "stopped") for job in jobs[1:]}
    assert bench.runner.running() == {jobs[0].key}
    gate.touch()
    assert bench.next().key == jobs[0].key
    assert said(bench) == ["first"]


def test_the_next_one_that_waits_can_be_relieved_too(bench: Bench) -> None:
    gate, _ = held(bench, 1)
    bench.runner.relieve(0.0)
    bench.next()
    late = bench.shell("true")
    bench.runner.start(late)
    bench.runner.relieve(0.0)
    assert bench.next().key == late.key
    gate.touch()
    bench.next()


def test_none_begins_once_the_lease_is_over(bench: Bench) -> None:
    bench.runner.extend(time.clock_gettime(time.CLOCK_BOOTTIME) + 0.3)
    _, jobs = held(bench, 2)
    found = endings(bench.runner, 3)
    assert {(ending.key, ending.kind) for ending in found} == {(job.key, "fenced") for job in jobs}
    assert said(bench) == []


def test_a_supervisor_that_vanishes_loses_all_of_them(bench: Bench) -> None:
    _, jobs = held(bench, 2)
    (slot,) = bench.runner._live
    os.kill(slot.process.pid, signal.SIGKILL)
    found = endings(bench.runner, 3)
    assert {(ending.key, ending.kind) for ending in found} == {(job.key, "lost") for job in jobs}
    assert said(bench) == []


def test_a_slot_takes_only_so_many(bench: Bench) -> None:
    held(bench, DEPTH)
    with pytest.raises(NoSlot, match="no slot is free"):
        bench.runner.start(bench.shell("true"))


def test_a_full_slot_leaves_the_next_one_to_a_slot_with_room_however_long_that_one_has_worked(tmp_path: Path) -> None:
    bench = Bench(Runner(2), tmp_path)
    gate, _ = held(bench, 0)
    eventually(lambda: bench.runner.engaged(PATIENCE_S) == 1)
    for _ in range(1 + DEPTH):  # the other slot, which is younger, takes these
        bench.runner.start(bench.shell(f"until test -e {gate}; do sleep 0.01; done"))
    late = bench.shell("true")
    bench.runner.start(late)
    assert late.key in bench.runner.waiting()
    gate.touch()
    endings(bench.runner, 3 + DEPTH)
    bench.runner.close(0)


def test_leaving_ends_what_waits_as_well(tmp_path: Path) -> None:
    bench = Bench(Runner(1), tmp_path)
    _, jobs = held(bench, 2)
    found = bench.runner.close(0)
    assert {(ending.key, ending.kind) for ending in found} == {(job.key, "stopped") for job in jobs}
    assert said(bench) == []


def test_a_slot_whose_job_is_long_gets_the_next_one_last(tmp_path: Path) -> None:
    bench = Bench(Runner(2), tmp_path)
    gate, _ = held(bench, 0)
    eventually(lambda: bench.runner.engaged(PATIENCE_S) == 1)
    quick = [bench.shell("true") for _ in range(4)]
    for job in quick:
        bench.runner.start(job)
    assert [ending.key for ending in endings(bench.runner, 4)] == [job.key for job in quick]
    gate.touch()
    bench.next()
    bench.runner.close(0)


BESET = """#!{python}
import os, select, sys, time
sys.path.append({root!r})
from spoold.runner.wire import Wire
os.read(0, 8192)
wire, orders = Wire(0, 0), []
while not wire.closed:
    select.select([0], [], [])
    orders += wire.receive()
    if len(orders) == 3:
        ending = {{"key": orders[0]["job"]["key"], "kind": "exited", "exit_code": 0, "signal": None, "message": ""}}
        times = {{"started_at": time.time(), "ended_at": time.time(), "duration_s": 0.0}}
        wire.send({{"ending": {{**ending, **times, "survivors": [4711]}}}})
"""


def test_where_processes_cannot_be_killed_nothing_more_begins_and_what_waits_is_given_back(tmp_path: Path) -> None:
    supervisor = tmp_path / "supervisor"
    supervisor.write_text(BESET.format(python=sys.executable, root=str(Path(__file__).parents[2])))
    supervisor.chmod(0o755)
    bench = Bench(Runner(1, python=str(supervisor)), tmp_path)
    jobs = [bench.shell("true") for _ in range(3)]
    for job in jobs:
        bench.runner.start(job)
    found = endings(bench.runner, 3)
    assert [(ending.key, ending.kind) for ending in found] == [
        (jobs[0].key, "exited"),
        (jobs[1].key, "stopped"),
        (jobs[2].key, "stopped"),
    ]
    assert found[0].survivors == (4711,)
    assert "stopped before it began" in found[1].message
    assert bench.runner.running() == set()
    assert bench.runner.close(0) == []
