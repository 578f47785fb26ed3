"""Keeping the machine awake: a child that ends with us however we end, and that may be refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from spoold.system import hardware
from spoold.system.hardware import Battery, SystemInhibitor, battery
from spoold.system.host import FakeHost, FakeMachine, SystemHost

ROOT = Path(__file__).parents[2]
# As systemd-inhibit does: it runs the command that stands last, and has the lock for as long as that lives.
GRANTS = """#!/bin/sh
echo "$@" >> {here}/asked
trap 'echo gone >> {here}/gone' EXIT
for command; do :; done
"$command"
"""
REFUSES = "#!/bin/sh\necho 'Something to know' >&2\necho 'Failed to inhibit: Access denied' >&2\nexit 1\n"


def eventually(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.005)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "inhibit"
    path.write_text(GRANTS.format(here=tmp_path))
    path.chmod(0o755)
    yield path
    if (tmp_path / "asked").exists():
        eventually((tmp_path / "gone").exists)


def test_the_lock_is_held_once_and_given_back(program: Path, tmp_path: Path) -> None:
    inhibitor = SystemInhibitor(str(program))
    inhibitor.release()
    for _ in range(3):
        inhibitor.hold()
    eventually((tmp_path / "asked").exists)
    inhibitor.hold()
    [asked] = (tmp_path / "asked").read_text().splitlines()
    assert asked == "--what=sleep:idle:handle-lid-switch --who=spoold --why=spoold runs tasks --mode=block cat"
    assert not (tmp_path / "gone").exists()
    inhibitor.release()
    eventually((tmp_path / "gone").exists)
    assert inhibitor.trouble is None


def test_the_lock_can_be_had_again(program: Path, tmp_path: Path) -> None:
    inhibitor = SystemInhibitor(str(program))
    for _ in range(2):
        inhibitor.hold()
        inhibitor.release()
    inhibitor.hold()
    eventually(lambda: (tmp_path / "asked").exists() and len((tmp_path / "asked").read_text().splitlines()) == 3)
    inhibitor.release()


def test_the_lock_does_not_outlive_a_process_that_is_killed(program: Path, tmp_path: Path) -> None:
    script = "import sys, time; from spoold.system.hardware import SystemInhibitor as I; I(sys.argv[1]).hold()"
    holder = subprocess.Popen(
        [sys.executable, "-c", f"{script}; time.sleep(60)", str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    eventually((tmp_path / "asked").exists)
    assert not (tmp_path / "gone").exists()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    eventually((tmp_path / "gone").exists)


def test_a_refusal_is_told_in_its_own_words_and_not_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "inhibit"
    program.write_text(REFUSES)
    program.chmod(0o755)
    inhibitor = SystemInhibitor(str(program))

    def refused() -> bool:
        inhibitor.hold()
        return inhibitor.trouble is not None

    eventually(refused)
    assert inhibitor.trouble == f"sleep cannot be inhibited: {program}: Failed to inhibit: Access denied"
    program.unlink()
    inhibitor.hold()
    assert "Access denied" in str(inhibitor.trouble)
    inhibitor.release()


def test_a_machine_without_systemd_is_told_of_and_works_on() -> None:
    inhibitor = SystemInhibitor("no-such-program-anywhere")
    inhibitor.hold()
    inhibitor.hold()
    assert inhibitor.trouble == "sleep cannot be inhibited: no-such-program-anywhere: No such file or directory"
    inhibitor.release()


def test_a_battery_is_read_and_what_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(power_plugged=False, percent=34.0)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: found)
    assert battery() == SystemHost().battery() == Battery(plugged=False, percent=34.0)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None)
    assert battery() is None

    def broken() -> None:
        raise OSError("a driver in mid-change")

    monkeypatch.setattr(psutil, "sensors_battery", broken)
    assert battery() is None
    monkeypatch.delattr(psutil, "sensors_battery")
    assert battery() is None


def test_a_machine_in_memory_has_the_battery_that_it_is_given() -> None:
    host = FakeHost("laptop")
    assert host.battery() is None
    machine: FakeMachine = host.machine
    machine.battery = hardware.Battery(plugged=True)
    assert host.battery() == Battery(plugged=True)
