"""What is frozen is said once when it freezes and once when it goes on, and stands in the status meanwhile."""

from __future__ import annotations

import logging
import math
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spoold.daemon import progress_watch
from spoold.daemon.loop import Loop
from spoold.daemon.processes import Notifier, _tell
from spoold.daemon.progress_watch import Freezing, Pulse
from spoold.rules.cluster.liveness import Spent

LEASE_S = 12.5


class Runner:
    """A runner that says what the test says. overdue: since the lease ended, negative before."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lease_end: float | None = self.now + 8
        self.keys = {"a.1": 600.0, "b.1": 30.0}
        self.stopped: set[str] = set()
        self.on: set[str] = set()
        self.part = "system.scratch.close"
        self.asleep_s = 0.0
        self.waited_s: float | None = None

    def spent(self) -> Spent:
        """As its pulse: all the time in a step, and so far as nothing else is said, in a call."""
        waited_s = self.now if self.waited_s is None else self.waited_s
        return Spent(awake_s=self.now, asleep_s=self.asleep_s, stepping_s=self.now, waited_s=waited_s)

    def thawed(self) -> set[str]:
        return self.on & self.keys.keys()

    def overdue_s(self) -> float | None:
        return None if self.lease_end is None else self.now - self.lease_end

    def still(self) -> dict[str, float]:
        over = (self.overdue_s() or 0) > 0
        return {key: most for key, most in self.keys.items() if over or key in self.stopped}

    def running(self) -> set[str]:
        return set(self.keys)


def watching(runner: Runner) -> Freezing:
    """What watches this runner, whose pulse it is as well."""
    return Freezing(lambda: runner, LEASE_S, cast(Pulse, runner))


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was logged."""
    messages: list[str] = []
    for level in ("warning", "info"):
        monkeypatch.setattr(progress_watch.log, level, lambda text, *args: messages.append(text % args))
    return messages


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    made = Runner()
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: made.now + made.asleep_s)
    return made


def test_it_is_said_once_when_they_freeze_and_once_when_they_go_on(runner: Runner, told: list[str]) -> None:
    watch = watching(runner)
    assert watch.look() == ""
    assert watch.due_s == pytest.approx(8.05), "at the end of the lease"
    runner.now += 9
    for _ in range(3):
        assert watch.look() == "2 tasks have been frozen for 1 s, until the share answers, for at most 10 m"
    said = "the share has been silent for 9 s; 2 tasks are frozen until the share answers, for at most 10 m"
    assert told == [said], "its calls have waited for 9 s, though the last beat is longer ago"
    assert watch.due_s == progress_watch.FROZEN_LOOK_S
    runner.now += 20
    runner.lease_end, runner.stopped = runner.now + 12, set(runner.keys)
    assert "frozen for 21 s" in watch.look(), "the beat is out, and the claims are not moved yet"
    runner.stopped, runner.on = set(), set(runner.keys)
    assert watch.look() == ""
    assert told[1:] == ["2 tasks go on, after 21 s"]


def test_tasks_that_are_killed_do_not_go_on(runner: Runner, told: list[str]) -> None:
    """N29, N32: taken over meanwhile; the lease goes on, and the supervisors' reports are not read yet."""
    watch = watching(runner)
    watch.look()
    runner.now += 9
    watch.look()
    runner.now += 20
    runner.lease_end = runner.now + 12
    assert "2 tasks have been frozen" in watch.look(), "the beat is out; nobody has thawed them"
    runner.keys.clear()
    assert watch.look() == ""
    assert told[1:] == ["2 tasks have ended, after 21 s frozen"]


def test_a_worker_that_was_busy_says_so_and_with_what(runner: Runner, told: list[str]) -> None:
    """N3: it removed a million files in its own step, and said that the share had been silent."""
    runner.waited_s = 0.0
    watch = watching(runner)
    watch.look()
    runner.now += 12.3
    assert "until this worker has beaten again" in watch.look()
    frozen = "2 tasks are frozen until this worker has beaten again, for at most 10 m"
    assert told == [f"this worker was busy with system.scratch.close for 12 s; {frozen}"]
    assert not watch.by_share


def test_a_worker_that_was_suspended_says_so_and_its_tasks_were_not_frozen_meanwhile(
    runner: Runner, told: list[str]
) -> None:
    """N29: a laptop wakes after an hour."""
    runner.waited_s = 0.0
    watch = watching(runner)
    watch.look()
    assert runner.lease_end is not None
    runner.asleep_s += 3600
    runner.lease_end -= 3600
    assert watch.look().startswith("2 tasks have been frozen for 0 s")
    assert told == [
        "this machine was suspended for 1 h; 2 tasks are frozen until this worker has beaten again, for at most 10 m"
    ]
    runner.now += 1
    assert watch.look().startswith("2 tasks have been frozen for 1 s")
    assert len(told) == 1, "none has been frozen for as long as it may be"


def test_what_is_frozen_for_too_long_is_said_to_be_killed_though_the_loop_hangs(
    runner: Runner, told: list[str]
) -> None:
    watch = watching(runner)
    watch.look()
    runner.now += 9
    watch.look()
    runner.now += 31
    assert watch.look().startswith("1 task has been frozen")
    assert watch.look().endswith("for at most 10 m")
    assert told[1:] == ["1 task is killed: frozen for 32 s"]
    del runner.keys["a.1"], runner.keys["b.1"]
    assert watch.look() == ""
    assert told[2:] == ["1 task has ended, after 32 s frozen"]


def test_without_anything_to_freeze_nothing_is_said_and_nobody_wakes_for_it(runner: Runner, told: list[str]) -> None:
    runner.keys.clear()
    watch = watching(runner)
    runner.now += 9
    assert (watch.look(), watch.due_s, told) == ("", math.inf, [])
    nobody = Freezing(lambda: None, 0.0, Pulse())
    assert (nobody.look(), nobody.due_s) == ("", math.inf)
    runner.lease_end = None
    assert (watch.look(), watch.due_s) == ("", math.inf)


@pytest.mark.parametrize(
    ("inside", "age_s", "trouble", "shown"),
    [
        (None, 0.0, None, "waiting for the share: FROZEN"),
        (None, 0.0, "Read-only file system: tmp", "trouble: FROZEN; Read-only file system: tmp"),
        ("list claimed", 40.0, None, "waiting for the share for 40 s (list claimed); FROZEN"),
    ],
)
def test_the_status_says_it_behind_the_word_that_the_unit_for_sleep_looks_for(
    inside: str | None, age_s: float, trouble: str | None, shown: str
) -> None:
    said: list[str] = []
    notifier = SimpleNamespace(status=said.append, watchdog=lambda: None)
    pulse = SimpleNamespace(inside=inside, age_s=age_s)
    actor = SimpleNamespace(trouble=None, describe=lambda: "runs 1")
    loop: Any = SimpleNamespace(pulse=pulse, trouble=trouble, actor=actor)
    _tell(cast(Loop, loop), cast(Notifier, notifier), "FROZEN")
    assert said == [shown]
    assert logging.getLogger("spoold") is progress_watch.log
