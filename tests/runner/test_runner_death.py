"""Runner: whoever dies or hangs, worker or supervisor, nothing that a job started goes on."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from spoold.runner import process_tree
from spoold.runner.job import Call, Command
from spoold.runner.job_runner import Runner, sweep
from spoold.runner.running_job import Launcher
from tests.runner.processes import Bench, environment, eventually, lives, marked, new_mark
from tests.runner.test_runner_limits import STUBBORN

SOON_S = 2.0
ROOT = Path(__file__).parents[2]


class Driver:
    """A worker process of our own, which runs STUBBORN in some slots and may be treated badly."""

    def __init__(
        self,
        where: Path,
        *,
        jobs: int = 2,
        lease_s: float | None = None,
        subreaper: bool = True,
        lost_share: str = "stop",
        env: Mapping[str, str] | None = None,
        script: str = STUBBORN,
        group: str | None = None,
    ) -> None:
        self.mark = new_mark()
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("driver.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        scripts = [f"MARK={self.mark}; {script}"] * jobs
        settings = {
            "lease_s": lease_s,
            "subreaper": subreaper,
            "lost_share": lost_share,
            "group": group,
            "env": dict(env or os.environ),
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"where": str(where), "scripts": scripts, **settings}) + "\n")
        self.process.stdin.flush()
        self._started: list[process_tree.Seen] = []
        try:
            # 4 sleeps and the shells around them, per job
            eventually(lambda: self.sleeping() >= (3 if script == STUBBORN else 1) * jobs)
        except BaseException:
            self.end()
            raise
        self._started = process_tree.below(self.process.pid)

    def sleeping(self) -> int:
        return len(marked(self.mark))

    def says(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def gone(self) -> None:
        """Waits until all that the jobs started is dead."""
        eventually(lambda: self.sleeping() == 0, SOON_S)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> None:
        """Kills it and all that it started: what is stopped, or lost its supervisor, would hear of no end."""
        started = [*self._started, *process_tree.below(self.process.pid)]
        self.close()
        left = [seen for seen in started if (now := process_tree.look(seen.pid)) and now.started == seen.started]
        for pid in {*(seen.pid for seen in left), *marked(self.mark)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def ending_all() -> Iterator[list[Driver]]:
    """A list for drivers, of which each must leave nothing, and none does leave anything, however a test ended."""
    started: list[Driver] = []
    try:
        yield started
        for driver in started:
            driver.close()
            driver.gone()
    finally:
        for driver in started:
            driver.end()


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    with ending_all() as started:
        yield started


def test_whatever_becomes_of_a_test_nothing_of_its_drivers_is_left(tmp_path: Path) -> None:
    stopped: list[int] = []

    def fails() -> None:
        with ending_all() as started:
            started.append(driver := Driver(tmp_path, jobs=1))
            # As a supervisor that nobody wakes, and what it has started.
            stopped.extend(seen.pid for seen in process_tree.below(driver.process.pid))
            for _ in range(2):  # one that is stopped goes on when its worker dies
                for pid in stopped:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                driver.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    eventually(lambda: not any(map(lives, stopped)))


def test_a_killed_worker_leaves_nothing(drivers: list[Driver], tmp_path: Path) -> None:
    drivers.append(driver := Driver(tmp_path))
    supervisors = driver.says()["supervisors"]
    driver.process.kill()
    driver.gone()
    eventually(lambda: not any(map(lives, supervisors)), SOON_S)


def test_a_worker_whose_wire_is_held_open_by_a_fork_leaves_nothing(tmp_path: Path) -> None:
    # What a program that embeds a worker may do: multiprocessing forks, and the fork has all descriptors.
    mark = new_mark()
    script = f"""
import os, sys, time
from spoold.runner.job import Command, Job
from spoold.runner.job_runner import Runner
runner = Runner(1)
runner.start(Job("a.1", Command(("sleep", "{mark}")), dict(os.environ), "/", "{tmp_path}/log"))
fork = os.fork()
if fork == 0:
    time.sleep(60)
print(fork, flush=True)
time.sleep(60)
"""
    worker = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert worker.stdout is not None
    fork = int(worker.stdout.readline())
    try:
        # The script itself has the mark as well: worker, fork, and the sleep.
        eventually(lambda: len(marked(mark)) == 3)
        worker.kill()
        worker.wait()
        eventually(lambda: marked(mark) == [fork], SOON_S)
    finally:
        os.kill(fork, signal.SIGKILL)
        worker.stdout.close()


def test_a_killed_supervisor_takes_its_job_along_and_no_other(drivers: list[Driver], tmp_path: Path) -> None:
    drivers.append(driver := Driver(tmp_path, jobs=1))
    (supervisor,) = driver.says()["supervisors"]
    other = subprocess.Popen(["sleep", new_mark()], start_new_session=True)
    os.kill(supervisor, signal.SIGKILL)
    driver.gone()
    endings: list[list[str]] = []

    def told() -> bool:
        endings.extend(driver.says()["endings"])
        return bool(endings)

    eventually(told)
    assert endings == [["task0.1", "lost", "its supervisor ended unexpectedly (status -9)"]]
    assert other.poll() is None
    other.kill()
    other.wait()


def test_the_workers_own_helpers_are_no_orphans(bench: Bench) -> None:
    # Run here, without being a subreaper, and with one: what shares our session is never touched.
    script = f"""
import os, subprocess, sys
from spoold.runner.job import Command, Job
from spoold.runner.job_runner import Runner, become_subreaper
from spoold.system.leftovers import Leftovers
assert become_subreaper()
helper = subprocess.Popen(["sleep", "{bench.mark}"])
leftovers = Leftovers()
leftovers.clear("{bench.where}", [])
runner = Runner(2)
env = dict(os.environ)
detached = Command(("sh", "-c", "setsid sleep {bench.mark}9 & echo up; sleep {bench.mark}9"))
runner.start(Job("a.1", detached, env, "/", "{bench.where}/log"))
runner.start(Job("b.1", Command(("sh", "-c", "sleep 0.7; exit 3")), env, "/", "{bench.where}/log2"))
while not os.path.exists("{bench.where}/log"):
    runner.wait(0.01)
runner._live[0].process.kill()
ended = []
while len(ended) < 2:
    runner.wait(5)
    ended += runner.poll()
print([(ending.key, ending.kind, ending.exit_code) for ending in ended], helper.poll(), leftovers._process.poll())
helper.kill()
leftovers.finish(0)
runner.close(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[('a.1', 'lost', None), ('b.1', 'exited', 3)] None None\n"


def test_a_lost_supervisor_of_an_embedded_worker_is_cleaned_up_by_environment(bench: Bench) -> None:
    marks = dict.fromkeys(("SPOOL_ROOT", "SPOOL_WORKER_ID", "SPOOL_TASK_ID", "SPOOL_ATTEMPT"), bench.mark)
    bench.runner.start(job := bench.shell("setsid sleep $MARK & sleep $MARK", env=environment(**marks)))
    eventually(lambda: len(bench.marked()) == 3)
    (slot,) = bench.runner._live
    slot.process.kill()
    ending = bench.next()
    assert (ending.key, ending.kind, ending.exit_code) == (job.key, "lost", None)
    assert bench.marked() == []
    assert bench.ended(bench.shell("exit 3")).exit_code == 3


def test_a_task_that_stops_its_supervisor_is_killed_and_its_slot_is_free_again(tmp_path: Path) -> None:
    runner = Runner(1, silence_s=5.0)  # a supervisor speaks every two seconds, four at the latest
    bench = Bench(runner, tmp_path)
    try:
        marks = dict.fromkeys(("SPOOL_ROOT", "SPOOL_WORKER_ID", "SPOOL_TASK_ID", "SPOOL_ATTEMPT"), bench.mark)
        # Its parent is the launcher, and that one's parent is the supervisor.
        script = "setsid sleep $MARK & read -r _ _ _ up _ </proc/$PPID/stat; kill -STOP $up; kill -STOP $$"
        runner.start(job := bench.shell(script, env=environment(**marks), timeout_s=0.5))
        ending = bench.next()
        assert (ending.key, ending.kind) == (job.key, "lost")
        assert re.fullmatch(r"its supervisor fell silent for [5-7] s .* and was killed", ending.message)
        assert bench.marked() == []
        assert bench.ended(bench.shell("exit 3")).exit_code == 3
    finally:
        runner.close(0)


def test_a_helper_that_was_stopped_goes_on(bench: Bench) -> None:
    # Its launcher is stopped by the program that it started; else its end would be seen at its timeout only.
    ending = bench.ended(bench.shell("kill -STOP $PPID; exit 3", timeout_s=30))
    assert (ending.kind, ending.exit_code) == ("exited", 3)
    call = Call("os:getpid")
    host = bench.ended(bench.job(call)).value
    assert isinstance(host, int)
    os.kill(host, signal.SIGSTOP)
    assert bench.ended(bench.job(call, timeout_s=30)).value == host


def test_a_supervisor_that_speaks_is_not_taken_for_stopped(tmp_path: Path) -> None:
    runner = Runner(1, silence_s=5.0)
    bench = Bench(runner, tmp_path)
    try:
        assert bench.ended(bench.shell("sleep 7")).kind == "exited"
        time.sleep(0.1)
        runner.start(bench.shell("sleep $MARK"))
        (slot,) = runner._live
        slot._looked_at -= 1000  # this process itself was stopped, or waited for its share
        assert runner.poll() == []
        assert slot.silent_s < 3
    finally:
        runner.close(0)


def test_a_supervisor_that_says_what_none_would_say_is_killed(bench: Bench) -> None:
    bench.runner.start(job := bench.shell("sleep $MARK"))
    (slot,) = bench.runner._live
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "wb") as wire:
        wire.write((5).to_bytes(4, "little") + b"\0\0\0\0\0")
    os.dup2(ours, slot.wire.source)
    os.close(ours)
    bench.runner._attend(slot)  # the selector still waits for the socket that was there before
    ending = bench.next()
    assert (ending.key, ending.kind) == (job.key, "lost")


def test_a_stopped_supervisor_hears_of_the_end_of_its_worker(drivers: list[Driver], tmp_path: Path) -> None:
    drivers.append(driver := Driver(tmp_path))
    supervisors = driver.says()["supervisors"]
    for supervisor in supervisors:
        os.kill(supervisor, signal.SIGSTOP)
    driver.process.kill()
    driver.gone()
    eventually(lambda: not any(map(lives, supervisors)), SOON_S)


def test_a_worker_that_hangs_loses_its_lease_and_its_jobs(drivers: list[Driver], tmp_path: Path) -> None:
    drivers.append(driver := Driver(tmp_path, lease_s=0.5))
    # It outlives its first lease, because it extends it.
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        assert driver.says()["endings"] == []
    driver.process.send_signal(signal.SIGSTOP)
    driver.gone()
    driver.process.send_signal(signal.SIGCONT)
    endings: dict[str, str] = {}

    def told() -> bool:
        endings.update({key: kind for key, kind, _ in driver.says()["endings"]})
        return len(endings) == 2

    eventually(told)
    assert endings == {"task0.1": "fenced", "task1.1": "fenced"}


def test_without_a_lease_a_worker_that_hangs_keeps_its_jobs(drivers: list[Driver], tmp_path: Path) -> None:
    drivers.append(driver := Driver(tmp_path, jobs=1))
    driver.process.send_signal(signal.SIGSTOP)
    time.sleep(0.8)
    assert driver.sleeping() >= 3


def test_a_job_started_after_the_lease_ran_out_is_fenced(bench: Bench) -> None:
    bench.runner.extend(time.clock_gettime(time.CLOCK_BOOTTIME) - 1)
    ending = bench.ended(bench.shell("sleep $MARK"))
    assert ending.kind == "fenced"


def test_a_lapsed_lease_also_ends_a_grace(bench: Bench) -> None:
    bench.runner.start(job := bench.shell(STUBBORN))
    eventually(lambda: len(bench.marked()) >= 4)
    bench.runner.extend(time.clock_gettime(time.CLOCK_BOOTTIME) + 0.4)
    bench.runner.stop(job.key, "drain", 60)
    ending = bench.next()
    assert ending.kind == "fenced"
    assert ending.duration_s < 10


def test_signals_to_a_supervisor_are_the_workers_business(bench: Bench) -> None:
    bench.runner.start(job := bench.shell("echo up; sleep 0.3; exit 8"))
    eventually(lambda: bench.output(job.key).exists())
    (slot,) = bench.runner._live
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        slot.process.send_signal(number)
    assert bench.next().exit_code == 8


def test_close_ends_jobs_supervisors_and_warm_processes(tmp_path: Path) -> None:
    runner = Runner(3)
    bench = Bench(runner, tmp_path)
    pid = bench.ended(bench.job(Call("os:getpid"))).value
    runner.start(first := bench.shell(STUBBORN))
    runner.start(second := bench.shell("echo up; trap 'exit 2' TERM; while :; do sleep 0.02; done"))
    eventually(lambda: len(bench.marked()) >= 5 and bench.output(second.key).exists())
    supervisors = [slot.process.pid for slot in runner._live]
    endings = {ending.key: ending for ending in runner.close(0.5)}
    assert {key: ending.kind for key, ending in endings.items()} == {first.key: "stopped", second.key: "stopped"}
    assert endings[second.key].exit_code == 2
    assert bench.marked() == []
    assert isinstance(pid, int)
    assert not any(map(lives, [pid, *supervisors]))


def test_a_sweep_finds_what_a_predecessor_left(tmp_path: Path) -> None:
    mark = new_mark()
    marker = {"SPOOL_ROOT": str(tmp_path), "SPOOL_WORKER_ID": "laptop-1"}
    left = subprocess.Popen(["sh", "-c", f"setsid env -i sleep {mark} & sleep {mark}"], env=environment(**marker))
    other = subprocess.Popen(["sleep", mark], env=environment(**{**marker, "SPOOL_WORKER_ID": "laptop-2"}))
    try:
        eventually(lambda: len(marked(mark)) == 4)
        assert sweep(marker) == 3
        assert marked(mark) == [other.pid]
        left.wait()
        assert sweep(marker) == 0
    finally:
        other.kill()
        other.wait()
    with pytest.raises(ValueError, match="recognise"):
        sweep({})


def test_an_idle_supervisor_uses_no_cpu(bench: Bench) -> None:
    bench.ended(bench.job(Call("os:getpid")))
    bench.ended(bench.job(Command(("true",))))
    (slot,) = bench.runner._live

    def switches() -> int:
        lines = Path(f"/proc/{slot.process.pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)

    def quiet() -> bool:
        before = switches()
        time.sleep(0.7)
        return switches() == before

    eventually(quiet, 5)


def test_a_killed_launcher_takes_its_job_along_and_is_replaced(bench: Bench) -> None:
    bench.runner.start(bench.shell("setsid sleep $MARK & sleep $MARK"))
    eventually(lambda: len(bench.marked()) >= 3)
    (slot,) = bench.runner._live
    (launcher,) = [seen.pid for seen in process_tree.children(slot.process.pid) if named(seen.pid, "task-launcher")]
    os.kill(launcher, signal.SIGKILL)
    ending = bench.next()
    assert (ending.kind, ending.exit_code) == ("lost", None)
    assert bench.marked() == []
    assert bench.ended(bench.shell("exit 3")).exit_code == 3


def test_a_launcher_whose_supervisor_is_gone_kills_what_it_started_and_ends(bench: Bench) -> None:
    """The last net: worker and supervisor die at once, as when somebody kills all that is called spool."""
    left, right = os.pipe()
    parent = os.fork()
    if parent == 0:
        launcher = Launcher()
        launcher.launch(["sleep", bench.mark], dict(os.environ), "/", b"")
        os.write(right, b"%d" % launcher.pid)
        time.sleep(60)
        os._exit(1)
    pid = int(os.read(left, 100))
    eventually(lambda: len(bench.marked()) == 1)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    eventually(lambda: bench.marked() == [] and not lives(pid), SOON_S)
    os.close(left)
    os.close(right)


def named(pid: int, name: str) -> bool:
    return Path(f"/proc/{pid}/comm").read_text().strip() == name


def test_nothing_that_ends_tasks_is_called_spool(bench: Bench) -> None:
    """Somebody may kill the worker by that name, and what would be killed with it could not end the task."""
    bench.runner.start(bench.shell("sleep $MARK & sleep $MARK"))
    eventually(lambda: len(bench.marked()) >= 3)
    (slot,) = bench.runner._live
    (launcher,) = [seen.pid for seen in process_tree.children(slot.process.pid) if named(seen.pid, "task-launcher")]
    for pid in (slot.process.pid, launcher):
        called = [Path(f"/proc/{pid}/{file}").read_bytes() for file in ("comm", "cmdline")]
        # Where the interpreter lies is not ours to name: here it may be below a checkout called spoold.
        called[1] = called[1].removeprefix(os.fsencode(os.path.realpath(sys.executable)))
        assert not any(b"spool" in words for words in called), called
