"""Jobs that wait for others, and whose slot another job has meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.runner.job import NoSlot
from spoold.runner.job_runner import Runner
from tests.runner.processes import Bench, endings, eventually


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A runner with one slot."""
    bench = Bench(Runner(1), tmp_path)
    yield bench
    bench.runner.close(0)


def test_as_many_others_run_as_slots_are_lent_and_no_more_supervisors_stay(bench: Bench) -> None:
    runner, gate = bench.runner, bench.where / "gate"
    jobs = [bench.shell(f"until test -e {gate}; do sleep 0.01; done") for _ in range(3)]
    runner.start(jobs[0])
    runner.lend({jobs[0].key})
    runner.start(jobs[1])
    assert runner.waiting() == set()
    eventually(lambda: runner.engaged(0.01) == 1)
    runner.lend({jobs[0].key, jobs[1].key})
    runner.start(jobs[2])
    assert len(runner._live) == 3
    gate.touch()
    assert {ending.exit_code for ending in endings(runner, 3)} == {0}
    eventually(lambda: (runner.poll(), len(runner._live))[1] == 1)


def test_what_waits_behind_a_job_goes_back_when_its_slot_is_lent(bench: Bench) -> None:
    first, second = bench.shell("sleep 20"), bench.shell("true")
    bench.runner.start(first)
    bench.runner.start(second)
    assert bench.runner.waiting() == {second.key}
    bench.runner.lend({first.key})
    (ending,) = endings(bench.runner, 1)
    assert (ending.key, ending.kind) == (second.key, "stopped")
    bench.runner.start(bench.shell("true"))
    (ending,) = endings(bench.runner, 1)
    assert ending.exit_code == 0


def test_no_job_is_put_behind_one_whose_slot_is_lent(bench: Bench) -> None:
    first = bench.shell("sleep 20")
    bench.runner.start(first)
    bench.runner.lend({first.key})
    bench.runner._slots = 0
    with pytest.raises(NoSlot):
        bench.runner.start(bench.shell("true"))


def test_a_job_that_waits_does_not_stall_and_stalls_when_it_goes_on(bench: Bench) -> None:
    job = bench.shell("sleep 20", stall_s=0.3)
    bench.runner.start(job)
    bench.runner.lend({job.key})
    bench.runner.start(bench.shell("sleep 1"))
    (other,) = endings(bench.runner, 1)
    assert other.exit_code == 0
    assert bench.runner.running() == {job.key}, "three times its stall timeout later"
    bench.runner.lend(set())
    (ending,) = endings(bench.runner, 1)
    assert ending.kind == "stalled"


def test_the_timeout_goes_on_while_a_job_waits(bench: Bench) -> None:
    job = bench.shell("sleep 20", timeout_s=0.5, grace_s=0.1)
    bench.runner.start(job)
    bench.runner.lend({job.key})
    (ending,) = endings(bench.runner, 1)
    assert ending.kind == "timeout"
