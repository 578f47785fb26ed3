"""The end of standard input is seen however it comes, and nothing else is taken for it."""

import os
import threading
from pathlib import Path

import pytest

from spoold.daemon import signals

PATIENCE_S = 30


def watch(monkeypatch: pytest.MonkeyPatch, number: int) -> threading.Event:
    """An event that is set at the end of this descriptor."""
    ended = threading.Event()
    monkeypatch.setattr(signals, "STDIN", number)
    signals.at_eof(ended.set)
    return ended


def test_an_input_that_cannot_be_read_has_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    number = os.open(tmp_path, os.O_RDONLY)
    assert watch(monkeypatch, number).wait(PATIENCE_S)
    os.close(number)


@pytest.mark.parametrize("blocking", [True, False])
def test_an_input_without_data_has_not_ended(monkeypatch: pytest.MonkeyPatch, blocking: bool) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, blocking)
    ended = watch(monkeypatch, read_end)
    os.write(write_end, b"x" * 5000)
    assert not ended.wait(0.2)
    os.close(write_end)
    assert ended.wait(PATIENCE_S)
    os.close(read_end)
