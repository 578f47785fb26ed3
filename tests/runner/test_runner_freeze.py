"""Runner: what becomes of a job when its lease is over: frozen, killed, or left alone; and how it goes on."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spoold.runner import freezer, process_tree
from spoold.runner.job import Call, Job
from spoold.runner.job_runner import Runner
from tests.runner.processes import Bench, eventually, lives, marked
from tests.runner.test_runner_death import Driver, drivers

__all__ = ["drivers"]
HOME = freezer.home()
WAYS = ["signals", "cgroup"]
# Counts as fast as it can, below a child that left the session and the tree, as daemons do.
DAEMON = "(setsid sh -c 'while :; do echo x >>$1; sleep 0.02; done' $MARK $0 &) ; "
COUNT = "while :; do echo y >>$0.own; sleep 0.02; done"


def group(way: str) -> str:
    """The control group to be frozen in; none where signals are to do it."""
    if way == "signals":
        return ""
    if not freezes(HOME):
        pytest.skip("no control group (cgroup v2) can be made here")
    return HOME


def freezes(where: str) -> bool:
    """Whether a control group can be made there."""
    room = freezer.Room(where, os.getpid(), 0)
    room.open()
    able = room.freeze(5)
    room.clear()
    return able


@pytest.fixture(params=WAYS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with bench_in(group(request.param), tmp_path) as bench:
        yield bench


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(group("cgroup"), tmp_path) as bench:
        yield bench


@contextmanager
def bench_in(where: str, tmp_path: Path) -> Iterator[Bench]:
    """A bench whose jobs are in control groups below this one; '' for none. Nothing is left of them."""
    runner = Runner(4, where=where)
    bench = Bench(runner, tmp_path)
    yield bench
    runner.close(0)
    assert bench.marked() == []
    assert rooms(os.getpid()) == []


def rooms(worker: int) -> list[Path]:
    """The control groups of this worker."""
    return list(Path(HOME).glob(f"spoold-*-{worker}-*")) if HOME else []


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def lapse(bench: Bench, job: Job) -> None:
    """The lease of a job runs out, and it is frozen."""
    bench.runner.extend(boottime() + 0.05)
    eventually(lambda: (bench.runner.poll(), job.key in bench.runner.frozen())[1])


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def counter(bench: Bench, **more: object) -> tuple[Job, Path]:
    """A job whose processes, one of them detached, write to two files, which tells whether they move."""
    file = bench.where / "count"
    script = f"{DAEMON} {COUNT}".replace("$0.own", f"{file}.own").replace("$0", str(file))
    job = bench.shell(script, lost_share="freeze", **more)
    bench.runner.start(job)
    eventually(lambda: size(file) and size(Path(f"{file}.own")))
    return job, file


def moves(file: Path) -> bool:
    before = [size(file), size(Path(f"{file}.own"))]
    time.sleep(0.3)
    return [size(file), size(Path(f"{file}.own"))] != before


def test_a_whole_tree_stands_still_once_its_lease_is_over_and_goes_on_when_it_may(bench: Bench) -> None:
    job, file = counter(bench)
    lapse(bench, job)
    assert not moves(file)
    bench.runner.extend(boottime() + 60)
    assert not moves(file), "an extension that comes late says nothing about the claim"
    bench.runner.thaw(job.key, boottime() + 60)
    assert bench.runner.frozen() == {}
    eventually(lambda: moves(file))
    lapse(bench, job)
    assert not moves(file)
    bench.runner.stop(job.key, "cancelled", 60)
    ending = bench.next()
    assert ending.kind == "stopped", "and at once: what is frozen hears no SIGTERM"
    assert ending.frozen_s >= 0.6
    assert ending.duration_s + ending.frozen_s <= ending.ended_at - ending.started_at + 0.1
    assert bench.marked() == []


def test_what_the_end_of_a_lease_freezes_is_known_to_those_who_hear_nothing_of_it(bench: Bench) -> None:
    """The thread that hears supervisors may hang in the share."""
    frozen, runs = bench.shell("sleep 60", lost_share="freeze", freeze_s=7), bench.shell("sleep 60")
    bench.runner.start(frozen)
    bench.runner.start(runs)
    assert (bench.runner.overdue_s(), bench.runner.still()) == (None, {})
    bench.runner.extend(boottime() + 60)
    assert bench.runner.still() == {}
    bench.runner.extend(boottime() - 0.01)
    assert bench.runner.still() == {frozen.key: 7}
    assert (bench.runner.overdue_s() or 0) > 0
    eventually(lambda: (bench.runner.poll(), frozen.key in bench.runner.frozen())[1])
    bench.runner.extend(boottime() + 60)
    assert bench.runner.still() == {frozen.key: 7}, "until it is let go"
    bench.runner.thaw(frozen.key, boottime() + 60)
    assert bench.runner.still() == {}


def test_its_own_timeout_does_not_run_while_it_is_frozen(bench: Bench) -> None:
    began = bench.where / "began"
    bench.runner.start(job := bench.shell(f": >{began}; sleep 1.2", lost_share="freeze", timeout_s=3.0, stall_s=2.5))
    eventually(began.exists)
    lapse(bench, job)
    time.sleep(3.2)
    bench.runner.thaw(job.key, boottime() + 60)
    ending = bench.next()
    assert (ending.kind, ending.exit_code) == ("exited", 0)
    assert ending.frozen_s >= 3.2
    bench.runner.extend(boottime() + 60)
    bench.runner.start(job := bench.shell("sleep 60", lost_share="freeze", timeout_s=0.8))
    lapse(bench, job)
    bench.runner.thaw(job.key, boottime() + 60)
    assert bench.next().kind == "timeout", "and runs on afterwards"


def test_a_program_that_has_not_begun_does_not_begin_while_it_is_frozen(bench: Bench) -> None:
    began = bench.where / "began"
    for _ in range(5):
        bench.runner.extend(boottime() + 0.01)
        bench.runner.start(job := bench.shell(f"echo >>{began}; sleep 0.1; echo >>{began}", lost_share="freeze"))
        ended: list[str] = []

        def frozen(job: Job = job, ended: list[str] = ended) -> bool:
            ended += [ending.kind for ending in bench.runner.poll()]
            return job.key in bench.runner.frozen() or bool(ended)

        eventually(frozen)
        before = size(began)
        time.sleep(0.5)
        assert size(began) == before
        if ended:
            assert ended == ["fenced"], "its supervisor heard of it too late to begin it"
            continue
        bench.runner.thaw(job.key, boottime() + 60)
        assert bench.next().kind == "exited"


def test_it_is_killed_after_its_time_in_the_ice(bench: Bench) -> None:
    job, file = counter(bench, freeze_s=0.4)
    lapse(bench, job)
    assert not moves(file)
    ending = bench.next()
    assert (ending.kind, ending.message) == ("fenced", "the worker's lease was over for 0.4 s")
    assert bench.marked() == []


def test_a_thaw_that_comes_too_late_thaws_nothing(bench: Bench) -> None:
    job, file = counter(bench)
    lapse(bench, job)
    bench.runner.thaw(job.key, boottime() - 1)
    eventually(lambda: (bench.runner.poll(), job.key in bench.runner.frozen())[1])
    assert not moves(file)


def test_what_a_job_had_stopped_itself_is_not_continued(bench: Bench) -> None:
    pid_file = bench.where / "pid"
    script = f"sleep $MARK & echo $! >{pid_file}; kill -STOP $!; sleep 30"
    bench.runner.start(job := bench.shell(script, lost_share="freeze"))

    def state() -> bytes:
        text = pid_file.read_text() if pid_file.exists() else ""
        seen = process_tree.look(int(text)) if text.strip() else None
        return seen.state if seen is not None else b""

    eventually(lambda: state() == b"T")
    lapse(bench, job)
    bench.runner.thaw(job.key, boottime() + 60)
    time.sleep(0.3)
    assert state() == b"T"


def test_a_call_is_frozen_with_the_process_that_it_runs_in(bench: Bench) -> None:
    job = bench.job(Call("time:sleep", (0.5,)), lost_share="freeze")
    bench.runner.start(job)
    lapse(bench, job)
    time.sleep(0.8)
    assert bench.runner.poll() == []
    bench.runner.thaw(job.key, boottime() + 60)
    assert bench.next().returned
    bench.runner.extend(boottime() + 60)
    assert bench.ended(bench.job(Call("os:getpid"))).returned


def test_a_storm_of_forks_stands_still_too(bench: Bench) -> None:
    file = bench.where / "storm"
    script = f"while :; do for i in 1 2 3 4 5 6 7 8; do (echo x >>{file}; : $MARK) & done; wait; done"
    bench.runner.start(job := bench.shell(script, lost_share="freeze"))
    eventually(lambda: size(file) > 100)
    lapse(bench, job)
    before = size(file)
    time.sleep(0.5)
    assert size(file) == before


def test_one_that_may_continue_does_and_one_that_may_not_is_killed(bench: Bench) -> None:
    first, second = bench.shell("sleep 1; exit 3", lost_share="continue"), bench.shell("sleep 60", lost_share="stop")
    bench.runner.start(first)
    bench.runner.start(second)
    bench.runner.extend(boottime() + 0.05)
    assert bench.next().kind == "fenced"
    ending = bench.next()
    assert (ending.key, ending.kind, ending.exit_code) == (first.key, "exited", 3)


def stands(worker: int, pids: list[int]) -> bool:
    """Whether all of these are stopped by a signal, or by their control group."""
    frozen = any("frozen 1" in (room / "cgroup.events").read_text() for room in rooms(worker))
    return frozen or all((seen := process_tree.look(pid)) is not None and seen.state == b"T" for pid in pids)


def test_what_is_in_a_frozen_group_is_not_stopped_and_nobody_can_wake_it(grouped: Bench) -> None:
    """A shell would take a child that is stopped for one that somebody put to rest, and SIGCONT would wake it."""
    job, file = counter(grouped)
    lapse(grouped, job)
    (room,) = rooms(os.getpid())
    pids = list(map(int, (room / "cgroup.procs").read_text().split()))
    assert len(pids) >= 3, "a launcher, a shell, and one that left session and tree"
    assert b"T" not in {seen.state for pid in pids if (seen := process_tree.look(pid)) is not None}
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert not moves(file)
    grouped.runner.thaw(job.key, boottime() + 60)
    eventually(lambda: moves(file))


def test_what_a_job_takes_out_of_its_group_is_stopped_all_the_same(grouped: Bench) -> None:
    file = grouped.where / "count"
    moved = f"echo 0 >{HOME}/cgroup.procs; while :; do echo x >>{file}; : $MARK; sleep 0.02; done"
    job = grouped.shell(f"(setsid sh -c '{moved}' &) ; sleep 60", lost_share="freeze")
    grouped.runner.start(job)
    eventually(lambda: size(file))
    lapse(grouped, job)
    assert not moves(file)
    grouped.runner.thaw(job.key, boottime() + 60)
    eventually(lambda: moves(file))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", ["worker", "supervisors"])
def test_whoever_dies_leaves_nothing_frozen_behind(who: str, way: str, drivers: list[Driver], tmp_path: Path) -> None:
    drivers.append(driver := Driver(tmp_path, lease_s=0.5, lost_share="freeze", group=group(way)))
    supervisors = driver.says()["supervisors"]
    driver.process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    assert driver.sleeping() > 0, "frozen, not killed"
    if who == "worker":
        driver.process.kill()
    else:
        for supervisor in supervisors:
            os.kill(supervisor, signal.SIGKILL)
        driver.process.send_signal(signal.SIGCONT)
    driver.gone()
    eventually(lambda: not any(map(lives, supervisors)))
    eventually(lambda: rooms(driver.process.pid) == [])


@pytest.mark.parametrize("way", WAYS)
def test_what_is_frozen_does_not_outlive_both_its_supervisor_and_its_worker(
    way: str, drivers: list[Driver], tmp_path: Path
) -> None:
    script = "(setsid sleep $MARK &) ; sleep $MARK & wait"
    driver = Driver(tmp_path, jobs=1, lease_s=1.0, lost_share="freeze", script=script, group=group(way))
    drivers.append(driver)
    (supervisor,) = driver.says()["supervisors"]
    eventually(lambda: driver.sleeping() == 3)
    driver.process.send_signal(signal.SIGSTOP)
    frozen = marked(driver.mark)
    eventually(lambda: stands(driver.process.pid, frozen))
    time.sleep(0.2)  # the guard is posted after that
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: not lives(supervisor))
    driver.process.kill()
    driver.gone()
    eventually(lambda: rooms(driver.process.pid) == [])
