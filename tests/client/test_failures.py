"""An error crosses processes: executors and multiprocessing pickle what a call raises."""

import copy
import pickle

import pytest

from spoold.client.spool.fsck_and_repair import StillAlive
from spoold.client.spool.location import NoSpoolNamed
from spoold.client.spool.waiting import NotFinished, TaskFailed
from spoold.protocol.errors import (
    BadFile,
    BadName,
    LawBroken,
    NotFound,
    ShutOut,
    Unavailable,
    WaitTimeout,
    WrongValue,
)
from spoold.protocol.result import Code, Error, Result, Status
from spoold.store.existence import Unreadable

FAILED = Result(
    task_id="t1",
    attempt=2,
    worker_id="w1",
    status=Status.FAILURE,
    completed_at="2026-01-01T00:00:00Z",
    error=Error(code=Code.TIMEOUT, message="took too long"),
)
ERRORS = [
    TaskFailed(FAILED, "the last line\n"),
    NotFinished("t1 runs"),
    BadFile("t.json", "timeout", "is too small.", "write more."),
    Unreadable("t.json", "", "cannot be read.", "chmod it."),
    WrongValue("too small", "write more"),
    WaitTimeout("not yet"),
    *(kind("why") for kind in (LawBroken, BadName, Unavailable, ShutOut, NotFound, StillAlive, NoSpoolNamed)),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_in_another_process(error: Exception) -> None:
    error.add_note("seen by the caller")
    for again in (*(pickle.loads(pickle.dumps(error, number)) for number in range(6)), copy.copy(error)):
        assert type(again) is type(error)
        assert (str(again), again.args) == (str(error), error.args)
        assert vars(again) == vars(error)
