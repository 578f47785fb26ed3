"""A node that was stopped, starved or suspended says so as soon as it goes on, with its own figures.

Method: a world of steps, calls, refusals, work, stops and suspends of any length at any moment, on a clock that moves
only on request; and real nodes that are stopped by a signal.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from spoold.daemon import processes
from spoold.daemon.progress_watch import LATE_S, Pause, Pulse
from spoold.rules.cluster.liveness import LEAST_S
from spoold.store.initialise import initialise
from spoold.system.clock import ManualClock, SystemClock
from spoold.system.posix import PosixFileSystem

INTERVAL_S = 5.0
# A stop is measured so well (s); one that is longer than SURELY_S is told.
PRECISE_S = 0.5
SURELY_S = max(LEAST_S, INTERVAL_S / 3) + PRECISE_S
# Stops of a test that really takes that long, shorter than the silence after which a node is dead.
STOP_S = 4.0
PATIENCE_S = 60.0
TOLD = "this node was stopped, or got no processor, for "


class World:
    """One node: its loop goes through random steps, and its main thread waits in ticks.

    real: the time (s) by what it was spent on, without stops; unseen_s: the part of stops that is too short to be
    seen; stops: how long each stopped and suspended the node, and whether it fell into a call and into a step.
    """

    def __init__(self, seed: int) -> None:
        self.chance, self.clock = random.Random(seed), ManualClock()
        self.pulse = Pulse(self.clock)
        self.real = dict.fromkeys(("own", "call", "idle"), 0.0)
        self.refused_s = self.unseen_s = 0.0
        self.refusing = False
        self.doing, self.left_s, self.busy = "idle", 0.0, False
        self.stop_in = self.chance.uniform(0, 30)
        self.stops: list[tuple[float, float, bool, bool]] = []

    def wait(self, asked_s: float) -> None:
        """The main thread sleeps, and is woken early now and then; the loop goes on, or nothing does."""
        woken_in = self.chance.choice((9.0, 9.0, self.chance.uniform(0, 1)))
        until = self.clock.monotonic() + min(asked_s, woken_in)
        while (rest_s := until - self.clock.monotonic()) > 0:
            if self.left_s <= 0:
                self.turn()
            passed = max(min(rest_s, self.left_s, self.stop_in), 1e-9)
            (self.clock.work if self.busy else self.clock.advance)(passed)
            self.real[self.doing] += passed
            self.refused_s += passed * self.refusing
            self.left_s -= passed
            self.stop_in -= passed
            if self.stop_in <= 0:
                self.pause()

    def turn(self) -> None:
        """The loop begins with something else."""
        if self.doing == "call":
            self.pulse.leave()
        before, self.doing = self.doing, self.chance.choice(("own", "call", "idle"))
        if self.doing == "idle" and before != "idle":
            self.pulse.rest()
            self.refusing = self.chance.random() < 0.3
            self.pulse.failed(by_share=True) if self.refusing else self.pulse.went()
        elif self.doing != "idle" and before == "idle":
            self.pulse.beat()
        if self.doing == "call":
            self.pulse.enter("list", "ready")
        self.busy = self.doing == "own" and self.chance.random() < 0.5
        self.left_s = self.chance.choice((0.01, 0.3, 2.0, 9.0)) * self.chance.random()

    def pause(self) -> None:
        """Nothing runs: a stop, or a suspend."""
        length = self.chance.choice((0.2, 1, 3, 14, 40)) * self.chance.random()
        asleep = self.chance.random() < 0.3
        (self.clock.suspend if asleep else self.clock.advance)(length)
        stopped_s, asleep_s = (0.0, length) if asleep else (length, 0.0)
        self.stops.append((stopped_s, asleep_s, self.doing == "call", self.doing != "idle"))
        self.stop_in = 2 * PRECISE_S + self.chance.uniform(0, 20)


@pytest.mark.parametrize("seed", range(60))
def test_each_pause_is_told_once_at_once_and_charged_to_nobody(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Any length, any moment: a stop within a wait of 5 s was not seen at all, and told by no line."""
    world = World(seed)
    caplog.set_level(logging.INFO, logger="spoold")
    before = world.pulse.spent()
    for _ in range(60):
        ended = len(world.stops)
        pause = world.pulse.tick(world.wait, world.chance.choice((0.0, 0.1, 1.0, 5.0, 5.0)))
        processes.tell(pause, INTERVAL_S, "w1 runs 1 of at most 2 tasks")
        new, lines = world.stops[ended:], [record.getMessage() for record in caplog.records]
        caplog.clear()
        stopped_s, asleep_s, calling, stepping = new[-1] if new else (0.0, 0.0, False, False)
        seen_s = pause.stopped_s if pause is not None else 0.0
        world.unseen_s += sum(stop[0] for stop in new) - seen_s
        assert len(lines) <= 1
        if stopped_s + asleep_s >= SURELY_S:
            assert len(lines) == 1, (new, pause)
            assert all(sum(stop[:2]) < SURELY_S for stop in new[:-1]), "the tick ended with the pause"
            assert pause is not None
            assert asleep_s == pytest.approx(pause.asleep_s)
            assert stopped_s - PRECISE_S - 1e-6 <= pause.stopped_s <= stopped_s + 1e-6
            assert (pause.calling, pause.stepping) == (calling, stepping) or asleep_s
            assert ("suspended" in lines[0], "was stopped" in lines[0]) == (asleep_s > 0, stopped_s > 0)
        elif stopped_s + asleep_s < min(LEAST_S, LATE_S):
            assert not lines
    spent = world.pulse.spent().since(before)
    real, most = world.real, world.unseen_s + 1e-6
    assert -1e-6 <= spent.waited_s - real["call"] <= most
    assert -1e-6 <= spent.stepping_s - real["own"] - real["call"] <= most
    assert -1e-6 <= spent.refused_s - world.refused_s <= most
    assert world.pulse.ran_s - 1000 == pytest.approx(sum(real.values()) + world.unseen_s)


def test_a_stop_does_not_use_up_the_patience_with_the_share() -> None:
    """A node that is stopped within a call has not waited for the share meanwhile."""
    clock = ManualClock()
    pulse = Pulse(clock)
    pulse.tick(clock.advance, 1.0)
    pulse.beat()
    pulse.tick(clock.advance, 2.0)
    assert pulse.tick(lambda asked_s: clock.advance(asked_s + 60), 1.0) is not None
    assert pulse.age_s == pytest.approx(2.0 + PRECISE_S)


STOPPED = "this node was stopped, or got no processor, for"
USED = "it used 0.0 s of processor time meanwhile; w1 rests"


@pytest.mark.parametrize(
    ("pause", "level", "text"),
    [
        (
            Pause(6.2, 0, 0.04, calling=False, stepping=False),
            "WARNING",
            f"{STOPPED} 6.2 s, between two steps; {USED}",
        ),
        (Pause(6.2, 0, 0.04, calling=False, stepping=True), "WARNING", f"{STOPPED} 6.2 s, in a step; {USED}"),
        (
            Pause(75, 50, 0, calling=True, stepping=True),
            "WARNING",
            f"{STOPPED} 1 m 15 s, and this machine was suspended for 50 s, in a call to the share; {USED}",
        ),
        (Pause(0, 3600, 0, calling=False, stepping=True), "INFO", "this machine was suspended for 1 h; w1 rests"),
    ],
)
def test_it_is_told_with_its_own_figures(
    pause: Pause, level: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="spoold"):
        processes.tell(pause, INTERVAL_S, "w1 rests")
        processes.tell(pause, 200.0, "w1 rests")
        processes.tell(None, INTERVAL_S, "w1 rests")
    records = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert records == [(level, text)] * (1 if pause.stopped_s == 6.2 else 2)


class Process:
    """A node as a process of its own, with its log."""

    def __init__(self, root: Path, log: Path, *command: str) -> None:
        self.log = log
        with log.open("wb") as sink:
            words = [sys.executable, "-m", "spoold", "--spool", str(root), *command, "--until-eof"]
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=sink, env=dict(os.environ))

    def says(self, words: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if words in line]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)


def eventually(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def test_real_nodes_that_were_stopped_for_less_than_their_death_say_so(tmp_path: Path) -> None:
    """A worker, a leader and a standby said nothing, and neither did any other file."""
    root = tmp_path / "spool"
    root.mkdir()
    initialise(PosixFileSystem(str(root)), SystemClock(), "test", str(root))
    nodes = [Process(root, tmp_path / "leader.log", "master", "--name", "desk")]
    try:
        eventually(lambda: nodes[0].says("leads epoch"), "it leads")
        nodes.append(Process(root, tmp_path / "standby.log", "master", "--name", "spare"))
        nodes.append(Process(root, tmp_path / "worker.log", "worker", "--name", "laptop", "--slots", "1"))
        eventually(lambda: nodes[2].says("runs 0 of at most 1 task"), "the worker runs")
        eventually(lambda: nodes[1].says("stands by") or list(root.glob("heartbeats/m-spare-*")), "the standby beats")
        for node in nodes:
            node.stop()
        time.sleep(STOP_S)  # the stop itself: what is tried here is a length of time
        for node in nodes:
            node.process.send_signal(signal.SIGCONT)
        for node, name in zip(nodes, ("m-desk-", "m-spare-", "laptop-"), strict=True):
            eventually(partial(node.says, TOLD), f"{node.log.name} tells it")
            told = [line for line in node.says(TOLD) if float(line.partition(TOLD)[2].split()[0]) >= STOP_S - 1]
            assert [line for line in told if f"; {name}" in line], node.log.read_text()
    finally:
        for node in nodes:
            node.process.send_signal(signal.SIGCONT)
            node.process.communicate(timeout=PATIENCE_S)  # it drains once its input ends
