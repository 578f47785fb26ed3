"""Hosts and processes: dead is said only of the certainly dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spoold.system import hardware, host
from spoold.system.host import (
    Capacity,
    FakeHost,
    Host,
    HostIdentity,
    Load,
    ProcessIdentity,
    SystemHost,
    alive,
    process_of,
    same_host,
    surely_gone,
    this_host,
    this_process,
    twins,
)


def sleeper() -> tuple[subprocess.Popen[bytes], ProcessIdentity]:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = process_of(child.pid)
    assert identity is not None
    return child, identity


def test_this_process_lives_whichever_thread_asks() -> None:
    assert alive(this_process())
    answers: list[bool] = []
    asked = threading.Thread(target=lambda: answers.append(alive(this_process())))
    asked.start()
    asked.join()
    assert answers == [True]


def test_a_killed_child_is_dead_as_a_zombie_already() -> None:
    child, identity = sleeper()
    assert alive(identity)
    child.send_signal(signal.SIGKILL)
    # Wait for its end without reaping it.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not alive(identity)
    assert process_of(child.pid) is None
    child.communicate()
    assert not alive(identity)


def test_a_number_used_again_is_another_process() -> None:
    me = this_process()
    assert me.start_time is not None
    assert not alive(replace(me, start_time=me.start_time - 1))


def test_a_start_in_another_unit_makes_no_living_process_dead() -> None:
    """Somebody's worker may write seconds since 1970, which no process of this boot can have as ticks."""
    me = this_process()
    assert alive(replace(me, start_time=int(time.time()) * 100))
    assert not alive(ProcessIdentity(2**22 + 1, int(time.time()) * 100))


def test_a_name_that_looks_like_the_rest_of_the_line_deceives_nobody(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([program, "1000"])
    try:
        identity = process_of(child.pid)
        assert identity is not None
        assert alive(identity)
        mine = this_process().start_time
        assert identity.start_time is not None
        assert mine is not None
        assert identity.start_time >= mine
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**80])
def test_no_process_has_such_a_number(pid: int) -> None:
    assert not alive(ProcessIdentity(pid, 1))
    assert process_of(pid) is None


def test_a_process_that_is_hidden_counts_as_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    # As with hidepid=2: /proc shows nothing, but the kernel knows whom it protects from our signal.
    def protected(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(host, "_state_and_start", lambda pid: None)
    assert alive(this_process())
    monkeypatch.setattr("spoold.system.host.os.kill", protected)
    assert alive(ProcessIdentity(1, 1))


def test_this_host_is_itself_and_says_who() -> None:
    me = this_host()
    assert same_host(me, this_host())
    assert me.hostname
    assert me.boot_id
    assert me.pid_namespace.isdecimal()
    machine_id = Path("/etc/machine-id")
    if machine_id.exists() and machine_id.read_text().strip():
        assert me.machine_id
        assert me.machine_id not in machine_id.read_text()


HOST = HostIdentity("laptop", "m1", "b1", "4026531836")


@pytest.mark.parametrize(
    "other",
    [
        replace(HOST, boot_id="b2"),
        replace(HOST, pid_namespace="4026532000"),
        replace(HOST, machine_id="m2"),
    ],
)
def test_another_boot_or_process_table_is_another_host(other: HostIdentity) -> None:
    assert not same_host(HOST, other)


def test_what_cannot_be_told_is_never_the_same() -> None:
    for unknown in (replace(HOST, boot_id=""), replace(HOST, pid_namespace="")):
        assert not same_host(unknown, unknown)
    assert same_host(replace(HOST, machine_id=""), replace(HOST, machine_id="", hostname="renamed"))


def test_another_boot_of_one_machine_proves_nothing() -> None:
    """N1: two laptops from one disk image have the machine id and the host name of one, and each its own boot."""
    here = FakeHost("laptop")
    then = here.identity()
    here.reboot()
    assert not surely_gone(then, ProcessIdentity(4242, 1), here)


@pytest.mark.parametrize("space", ["", "4026532999"])
def test_start_times_of_two_time_namespaces_are_never_compared(space: str) -> None:
    """N12: seen from another time namespace, or from a beat that names none, a living process is not gone."""
    here = FakeHost("laptop")
    then, process = replace(here.identity(), time_namespace=space), here.process()
    shifted = ProcessIdentity(process.pid, 987_654)
    assert not surely_gone(then, shifted, here.another())
    assert surely_gone(here.identity(), shifted, here)
    here.die()
    assert surely_gone(then, shifted, here)  # no process has its number


def test_the_kernel_says_in_which_time_namespace_this_is() -> None:
    assert this_host().time_namespace.isdecimal()


def test_a_machine_that_has_a_twin_equals_no_other_any_more() -> None:
    one, other = FakeHost("laptop"), FakeHost("laptop")
    assert same_host(one.identity(), other.identity())
    other.doubt()
    assert not same_host(one.identity(), other.identity())
    assert twins(other.identity(), one.identity())
    one.doubt()
    assert not same_host(one.identity(), other.identity())
    assert twins(other.identity(), one.identity())
    assert not twins(one.identity(), one.identity())


def test_a_marked_machine_that_is_resumed_from_an_image_gets_a_mark_of_its_own() -> None:
    """The image holds the mark, so both begin with the same: each doubt must draw another."""
    one = FakeHost("laptop")
    one.doubt()
    other = FakeHost(machine=replace(one.machine))
    assert same_host(one.identity(), other.identity())
    other.doubt()
    assert not same_host(one.identity(), other.identity())
    assert twins(other.identity(), one.identity())


def test_the_real_host_has_something_to_work_with(tmp_path: Path) -> None:
    real: Host = SystemHost()
    assert real.identity() == this_host()
    assert real.alive(real.process())
    capacity = real.capacity()
    assert 0 < capacity.cpus <= (os.cpu_count() or 1)
    assert capacity.mem_mb > 0
    load = real.load(str(tmp_path))
    assert load.load1 is not None
    assert load.load1 >= 0
    assert load.mem_available_mb is not None
    assert 0 < load.mem_available_mb <= capacity.mem_mb
    assert load.disk_free_mb
    assert real.load(str(tmp_path / "missing")).disk_free_mb is None


class TestProbe:
    @pytest.fixture
    def cgroup(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
        """Writes a file of this process's cgroup, or of one above it."""
        real = Path("/proc/self/cgroup").read_text()
        own = next((line[4:].strip("/ \n") for line in real.splitlines() if line.startswith("0::/")), "")
        monkeypatch.setattr(hardware, "_CGROUPS", str(tmp_path))
        (tmp_path / own).mkdir(parents=True, exist_ok=True)

        def write(name: str, value: str) -> None:
            (tmp_path / own / name).write_text(value)

        return write

    def test_a_cpu_quota_counts(self, cgroup: Callable[[str, str], None]) -> None:
        cgroup("cpu.max", "50000 100000\n")
        assert hardware.cpus() == 0.5

    @pytest.mark.parametrize("nothing", ["max 100000\n", "", "nonsense", "1 0"])
    def test_no_quota_leaves_the_affinity(self, cgroup: Callable[[str, str], None], nothing: str) -> None:
        cgroup("cpu.max", nothing)
        assert hardware.cpus() == len(os.sched_getaffinity(0))

    def test_a_memory_limit_counts(self, cgroup: Callable[[str, str], None]) -> None:
        cgroup("memory.max", f"{300 << 20}\n")
        cgroup("memory.current", f"{100 << 20}\n")
        assert hardware.memory_mb() == 300
        assert hardware.memory_available_mb() == 200

    def test_no_memory_limit_leaves_the_machines(self, cgroup: Callable[[str, str], None]) -> None:
        everything = hardware.memory_mb()
        cgroup("memory.max", "max\n")
        cgroup("memory.current", f"{100 << 20}\n")
        assert hardware.memory_mb() == everything
        assert (hardware.memory_available_mb() or 0) > 200

    @pytest.mark.parametrize(
        ("script", "expected"),
        [
            ("echo 'GPU 0: A (UUID: x)'; echo '  MIG 1g.5gb Device 0:'; echo 'GPU 1: B'", 2),
            ("echo 'GPU 0: A'; exit 9", 0),
            ("echo 'No devices found.'", 0),
            ("exec sleep 1000", 0),
        ],
    )
    def test_gpus_are_those_that_answer(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: int
    ) -> None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        if "sleep" in script:
            monkeypatch.setattr(hardware, "_GPU_TIMEOUT", 0.2)
        assert hardware.gpus() == expected

    def test_no_tool_no_gpu(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert hardware.gpus() == 0


class TestFakeHost:
    def test_processes_live_until_they_die_or_their_machine_reboots(self) -> None:
        one: FakeHost = FakeHost("box")
        two = one.another()
        as_port: Host = two
        assert same_host(one.identity(), two.identity())
        assert one.process() != two.process()
        one.die()
        assert not as_port.alive(one.process())
        assert as_port.alive(two.process())

        before = two.identity()
        one.reboot()
        assert not one.alive(two.process())
        assert not same_host(before, one.identity())
        assert not surely_gone(before, two.process(), one)

    def test_machines_are_told_apart(self) -> None:
        assert not same_host(FakeHost("a").identity(), FakeHost("b").identity())

    def test_capacity_and_load_are_what_was_set(self) -> None:
        fake = FakeHost()
        fake.machine.capacity = Capacity(cpus=1, mem_mb=2, gpus=3)
        fake.machine.load = Load(load1=9.5, mem_available_mb=1, disk_free_mb=0)
        assert fake.another().capacity().gpus == 3
        assert fake.load("anywhere").load1 == 9.5
