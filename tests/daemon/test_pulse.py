"""Where a node's time goes is measured: in calls, in its own work, or nowhere, because it did not run."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spoold.daemon.progress_watch import VERBS, Pulse, pulsing
from spoold.system.clock import ManualClock
from spoold.system.filesystem import FileSystem

# Longer than any pause of a busy machine that is to be told from it.
LONG_S = 2.0


def share(call: Callable[..., Any]) -> FileSystem:
    """A share of which each call is this one."""
    return cast(FileSystem, SimpleNamespace(remote=True, forgets=False, **dict.fromkeys(VERBS, call)))


def spend(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def test_time_in_calls_is_told_from_time_in_the_own_work() -> None:
    clock = ManualClock()
    pass_by, pulse = clock.advance, Pulse(clock)
    fs = pulsing(share(lambda path: pass_by(3)), pulse)
    before = pulse.spent()
    pulse.beat()
    fs.list("")
    pass_by(5)
    fs.list("")
    pulse.rest()
    pass_by(7)
    spent = pulse.spent().since(before)
    assert (spent.awake_s, spent.stepping_s, spent.waited_s) == (18, 11, 6)
    pulse.beat()
    pulse.enter("list", "ready")
    pass_by(9)
    spent = pulse.spent().since(before)
    assert (spent.stepping_s, spent.waited_s, pulse.inside) == (20, 15, "list ready"), "it is still under way"


def test_a_step_that_fails_is_charged_to_the_share_or_to_this_machine() -> None:
    clock = ManualClock()
    pulse = Pulse(clock)
    before = pulse.spent()
    for by_share in (True, True, False):
        pulse.failed(by_share=by_share)
        clock.advance(4)
    spent = pulse.spent().since(before)
    assert (spent.refused_s, spent.hindered_s) == (8, 4)
    pulse.went()
    clock.advance(4)
    assert pulse.spent().since(before).hindered_s == 4


def test_the_error_of_the_share_is_known_from_others() -> None:
    gone = OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    def refuse(path: str) -> None:
        raise gone

    pulse = Pulse()
    with pytest.raises(OSError, match="not connected"):
        pulsing(share(refuse), pulse).list("")
    assert pulse.error is gone


def test_the_part_that_a_step_is_busy_with_has_a_name() -> None:
    pulse = Pulse()
    seen: list[str] = []
    pulse.beat()
    pulsing(share(lambda path: seen.append(pulse.part)), pulse).list("")
    assert seen == [""], "the daemon itself is no part"
    pulse.rest()
    assert pulse.part == ""


STOPPED = """
import sys, time
from spoold.daemon.progress_watch import Pulse
pulse = Pulse()
pulse.tick(time.sleep, 0.01)
print("ready", flush=True)
while pulse.spent().stopped_s == 0:
    pulse.tick(time.sleep, 0.05)
print(pulse.spent().stopped_s, flush=True)
"""


def test_a_process_that_was_stopped_knows_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        time.sleep(LONG_S)  # the stop itself: what is tried here is a length of time
        child.send_signal(signal.SIGCONT)
        assert float(child.stdout.readline()) >= LONG_S - 1


def test_a_process_that_works_instead_of_waking_was_not_stopped() -> None:
    pulse = Pulse()
    pulse.tick(time.sleep, 0.01)
    pulse.tick(lambda timeout_s: spend(timeout_s + 1), 0.01)
    assert pulse.spent().stopped_s < 1
