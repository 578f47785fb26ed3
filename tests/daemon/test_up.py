"""`spool up` outlives what its machine refuses for a while."""

from __future__ import annotations

import errno
import sys
import time

import pytest

from spoold.daemon import up
from spoold.daemon.up import Child, _Family


def test_a_child_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child("w", [sys.executable, "-c", "pass"])
    family = _Family([child])
    start, refused = Child.start, [OSError(errno.EAGAIN, "no process to spare")]

    def fork(self: Child) -> None:
        if refused:
            raise refused.pop()
        start(self)

    monkeypatch.setattr(Child, "start", fork)
    monkeypatch.setattr(up, "AGAIN_AFTER_S", 0.05)
    until = time.monotonic() + 30
    while child.process is None and time.monotonic() < until:
        family._tend(child)
    assert not refused
    assert child.process is not None
    child.process.communicate(timeout=30)
