"""What is read of a file is bounded, however large somebody made it."""

import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.store.initialise import initialise
from spoold.store.store import open_store
from spoold.system.clock import ManualClock
from spoold.system.posix import WHOLE, PosixFileSystem

HUGE = 1 << 40  # of which nothing is on the disk


@pytest.fixture
def measured() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("measured")
def test_a_file_larger_than_memory_is_read_in_part_and_is_damaged(tmp_path: Path) -> None:
    with (tmp_path / "huge.json").open("wb") as file:
        file.write(b'{"id": "huge"')
        file.truncate(HUGE)
    fs = PosixFileSystem(tmp_path)
    data = fs.read("huge.json")
    assert len(data) == WHOLE
    assert tracemalloc.get_traced_memory()[1] < 4 * WHOLE
    with pytest.raises(BadFile):
        codec.load_task(data, "huge.json")


def test_a_spool_with_larger_tasks_reads_them_whole(tmp_path: Path) -> None:
    fs = PosixFileSystem(tmp_path)
    initialise(fs, ManualClock(), "spool", str(tmp_path))
    (tmp_path / "spool.toml").write_text(f"[drop]\nmax_bytes = {2 * WHOLE}\n")
    task = json.dumps({"id": "a", "type": "t", "input": "x" * WHOLE}).encode()
    (tmp_path / "tmp" / "a.json").write_bytes(task)
    assert len(fs.read("tmp/a.json")) == WHOLE
    store = open_store(fs, ManualClock(), "n", str(tmp_path))
    assert store.fs.read("tmp/a.json") == task
    assert os.path.getsize(tmp_path / "tmp" / "a.json") > WHOLE
