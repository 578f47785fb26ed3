"""Whatever ends a loop is known by its error, so that a service manager starts the process again."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any, cast

import pytest

from spoold.daemon import loop as loop_module
from spoold.daemon.loop import FAULTY_STEPS, Actor, Loop, StepResult
from spoold.daemon.progress_watch import VERBS, Pulse, pulsing
from spoold.daemon.signals import Nap
from spoold.protocol.settings import PollSettings
from spoold.system.clock import ManualClock
from spoold.system.filesystem import FileSystem
from spoold.system.posix import PosixFileSystem
from tests.support.injected import Recursion

STEP, CLOSE = RuntimeError("in a step"), RuntimeError("on leaving")


class Broken:
    """An actor that raises in its step, or is done, and raises when it is closed."""

    def __init__(self, step: Exception | None) -> None:
        self._step = step

    def step(self) -> StepResult:
        if self._step is not None:
            raise self._step
        return StepResult(busy=False, next_due=None, done=True)

    def close(self) -> None:
        raise CLOSE

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize(("step", "told"), [(None, CLOSE), (STEP, STEP)])
def test_an_actor_that_cannot_close_is_an_error_and_the_first_one_is_told(
    step: Exception | None, told: Exception
) -> None:
    loop = Loop(lambda: cast(Actor, Broken(step)), PollSettings(), Pulse(), lambda: False, Nap(ManualClock()))
    loop.run()
    assert (loop.over, loop.error) == (True, told)


class Troubled:
    """An actor whose steps come to what it is given, one by one, and end with the last."""

    def __init__(self, *steps: Exception | StepResult, resting: bool = False) -> None:
        self._steps = list(steps)
        self.resting = resting
        self.trouble: str | None = None

    def step(self) -> StepResult:
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Remarking(Troubled):
    """As Troubled; before each step it takes the next remark about a part that cannot be done."""

    def __init__(self, *remarks: str | None) -> None:
        super().__init__(*[WENT] * len(remarks), DONE)
        self._remarks = list(remarks)

    def step(self) -> StepResult:
        if self._remarks:
            self.trouble = self._remarks.pop(0)
        return super().step()


WENT, DONE = StepResult(busy=False, next_due=0.0), StepResult(busy=False, next_due=None, done=True)
AGAIN, OVER = "this step cannot be finished, and is tried again", "this is over"
GONE = [OSError(errno.ENOENT, "No such file or directory", path) for path in ("ready/x/t", "ready/y/t", "ready/x/u")]
LOCAL = OSError(errno.ENOSPC, "No space left on device", "/tmp/scratch/x")


@pytest.mark.parametrize(
    ("actor", "told"),
    [
        (
            Troubled(LOCAL, WENT, DONE),
            [f"{AGAIN}: {LOCAL}", f"{OVER}, after 0 s: No space left on device: /tmp/scratch"],
        ),
        (
            Troubled(LOCAL, DONE),
            [f"{AGAIN}: {LOCAL}"],
        ),  # asked to leave, it has looked at nothing
        (
            Troubled(LOCAL, WENT, DONE, resting=True),
            [f"{AGAIN}: {LOCAL}"],
        ),  # nor has who rests
        (Troubled(WENT, DONE), []),
        (  # N33: what is over is all that was in trouble, each told once
            Troubled(*GONE, WENT, DONE),
            [
                f"{AGAIN}: {GONE[0]}",
                f"{AGAIN}: {GONE[1]}",
                f"{OVER}, after 0 s: No such file or directory: ready/x, No such file or directory: ready/y",
            ],
        ),
        (  # N30: a part that cannot be done on a full share, though no step fails
            Remarking(None, "the share is full", "the share is full", None),
            ["the share is full", f"{OVER}: the share is full"],
        ),
    ],
)
def test_what_is_over_is_what_was_in_trouble_and_only_a_step_that_looked_says_so(
    actor: Troubled, told: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "PATIENCE_S", 0.01)
    caplog.set_level(logging.INFO, "spoold")
    Loop(lambda: cast(Actor, actor), PollSettings(), Pulse(), lambda: False, Nap(ManualClock())).run()
    assert [record.message for record in caplog.records] == told


FAULTS = [Recursion(str(number)) for number in range(FAULTY_STEPS)]


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ((*FAULTS[1:], DONE), None),
        ((*FAULTS[1:], WENT, *FAULTS[1:], DONE), None),
        ((*FAULTS, DONE), FAULTS[-1]),
    ],
)
def test_a_fault_that_names_no_input_ends_its_step_and_only_several_in_a_row_end_the_process(
    steps: tuple[Exception | StepResult, ...],
    error: Exception | None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_module, "PATIENCE_S", 0.01)
    loop = Loop(lambda: cast(Actor, Troubled(*steps)), PollSettings(), Pulse(), lambda: False, Nap(ManualClock()))
    loop.run()
    assert (loop.over, loop.error) == (True, error)
    assert all(record.exc_info for record in caplog.records)


def test_the_pulse_knows_every_verb_of_the_port(tmp_path: Path) -> None:
    verbs = {name for name in vars(FileSystem) if not name.startswith("_")} - {"remote", "forgets"}
    assert set(VERBS) == verbs
    fs = pulsing(PosixFileSystem(tmp_path), Pulse())
    assert all(callable(getattr(fs, verb)) for verb in verbs)


def test_an_error_of_an_open_file_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over SMB a write says EBADF after the server was away: `[Errno 9] Bad file descriptor`, and of what?"""

    def lost(fd: int, data: object) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    fs = pulsing(PosixFileSystem(tmp_path), Pulse())
    monkeypatch.setattr(os, "write", lost)
    with pytest.raises(OSError, match="Bad file descriptor: 'note'"):
        fs.write("note", b"x", durable=False)
    monkeypatch.undo()
    with pytest.raises(OSError, match=f"'{tmp_path}/none'"):
        fs.unlink("none")
