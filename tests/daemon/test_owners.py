"""What owner and umask mean for others is said at the start of a node, once."""

import logging
import os
from pathlib import Path

import pytest

from spoold.daemon.actors import open_spool
from spoold.daemon.pulse import Pulse
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem


def test_a_umask_that_keeps_the_group_out_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0o022)
    try:
        tmp_path.chmod(0o775)
        initialise(PosixFileSystem(tmp_path), SystemClock(), "test", str(tmp_path))
        with caplog.at_level(logging.WARNING, logger="spoold"):
            for number in range(2):
                open_spool(str(tmp_path), f"w-{number}", Pulse())
    finally:
        os.umask(before)
    assert [record.message.partition(":")[0] for record in caplog.records] == ["umask 022"]
    assert "start it with umask 002" in caplog.records[0].message


def test_in_ones_own_spool_nothing_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o755)
    initialise(PosixFileSystem(tmp_path), SystemClock(), "test", str(tmp_path))
    with caplog.at_level(logging.WARNING, logger="spoold"):
        open_spool(str(tmp_path), "w-1", Pulse())
    assert caplog.records == []
