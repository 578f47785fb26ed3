"""A share that is lost for good ends the node with a code for a new start; one that comes back in time does not."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spoold.daemon import loop as loop_module
from spoold.daemon.loop import Actor, Loop, StepResult
from spoold.daemon.processes import EXIT_UNAVAILABLE
from spoold.daemon.progress_watch import VERBS, Pulse, pulsing
from spoold.daemon.signals import Nap
from spoold.protocol.settings import PollSettings
from spoold.system.clock import ManualClock
from spoold.system.errnos import is_lost
from spoold.system.filesystem import FileSystem

# A worker with a task on a share that answers ESHUTDOWN for ever, as CephFS does to a client that it has evicted.
LOST = """
import errno, os
from types import SimpleNamespace
from spoold.daemon import processes
from spoold.daemon.loop import Loop
from spoold.daemon.progress_watch import VERBS, Freezing, Pulse, pulsing
from spoold.daemon.signals import Nap
from spoold.protocol.settings import PollSettings
from spoold.system.clock import SystemClock

processes.LOST_S = 2.0

def refuse(path):
    print("refused", flush=True)
    raise OSError(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN), path)

pulse = Pulse()
fs = pulsing(SimpleNamespace(remote=True, forgets=False, **dict.fromkeys(VERBS, refuse)), pulse)
class Working:
    idle = resting = False
    trouble = None
    step = staticmethod(lambda: fs.list("claimed"))
    leave = rest = wake = close = staticmethod(lambda *_: None)
    describe = staticmethod(lambda: "works")
loop = Loop(Working, PollSettings(), pulse, lambda: False, Nap(SystemClock()))
raise SystemExit(processes._run(loop, Freezing(lambda: None, 0.0, pulse), 5.0, leave_within_s=1000, until_eof=False))
"""


@pytest.mark.parametrize("leaves", [False, True])
def test_a_lost_share_ends_the_node_also_while_it_leaves(leaves: bool) -> None:
    """C3: it neither recovered nor ended on SIGTERM."""
    with subprocess.Popen(
        [sys.executable, "-c", LOST], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == "refused\n"
        if leaves:
            it.send_signal(signal.SIGTERM)
        _, said = it.communicate(timeout=40)
    assert it.returncode == EXIT_UNAVAILABLE, said
    assert "the share is lost" in said


def refusing(code: int, pulse: Pulse) -> FileSystem:
    def refuse(path: str) -> None:
        raise OSError(code, os.strerror(code), path)

    inner = SimpleNamespace(remote=True, forgets=False, **dict.fromkeys(VERBS, refuse))
    return pulsing(cast(FileSystem, inner), pulse)


class Playing:
    """An actor of which each step is one of these calls, in turn; the last is done. seen: lost, before each."""

    resting, trouble = False, None

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.seen: list[bool] = []
        self.loop: Loop | None = None

    def step(self) -> StepResult:
        assert self.loop is not None
        self.seen.append(self.loop.lost_s is not None)
        if not self.steps:
            return StepResult(busy=False, next_due=None, done=True)
        self.steps.pop(0)()
        return StepResult(busy=False, next_due=0.0)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def test_only_errors_of_the_share_in_a_row_count_and_a_step_that_goes_through_ends_the_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_module, "PATIENCE_S", 0.01)
    pulse = Pulse()

    def share(code: int) -> Any:
        return lambda: refusing(code, pulse).list("")

    def local() -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected", "/proc/meminfo")

    steps = [share(errno.ESHUTDOWN), share(errno.ENOTCONN), share(errno.ESHUTDOWN), lambda: None]
    steps += [share(errno.ENODEV), share(errno.EIO), local, share(errno.EHOSTDOWN), share(errno.ENOSPC)]
    actor = Playing(*steps)
    actor.loop = Loop(lambda: cast(Actor, actor), PollSettings(), pulse, lambda: False, Nap(ManualClock()), fuse=True)
    actor.loop.run()
    assert actor.loop.error is None
    assert actor.seen == [False, True, True, True, False, True, False, False, False, False]


@pytest.mark.parametrize(
    ("code", "fuse", "lost"),
    [
        (errno.ESHUTDOWN, False, True),
        (errno.ENODEV, False, True),
        (errno.ENOTCONN, True, True),
        (errno.ENOTCONN, False, False),
        (errno.ESTALE, False, False),
        (errno.EIO, True, False),
    ],
)
def test_what_a_server_answers_for_a_while_ends_no_node(code: int, fuse: bool, lost: bool) -> None:
    """An NFS server answers ESTALE while it exports nothing, and tasks that are frozen then go on."""
    assert is_lost(OSError(code, ""), fuse=fuse) is lost
