"""Opening a spool for a node: what owner and umask mean for others is said once, and large files are read whole."""

import logging
import os
from pathlib import Path

import pytest

from spoold.daemon.loop import open_spool
from spoold.daemon.progress_watch import Pulse
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.posix import WHOLE, PosixFileSystem


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


def test_a_node_reads_files_as_large_as_the_settings_let_drops_be(tmp_path: Path) -> None:
    initialise(PosixFileSystem(tmp_path), SystemClock(), "test", str(tmp_path))
    (tmp_path / "spool.toml").write_text(f"[drop]\nmax_bytes = {WHOLE + 1000}\n")
    with (tmp_path / "pending" / "large.json").open("wb") as file:
        file.truncate(WHOLE + 1000)
    assert len(open_spool(str(tmp_path), "w-1", Pulse()).fs.read("pending/large.json")) == WHOLE + 1000
