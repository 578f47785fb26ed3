"""What stands in the place of a directory is named, whichever call ran into it, and nothing behind it is touched.

Generator: every directory that a client writes into or reads, those above it too, is replaced by every kind of entry,
on a real file system, and every call that needs the directory is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spoold.client.context_and_steps import SharedContext, Steps
from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import Unavailable
from spoold.store.initialise import initialise
from spoold.store.path_conflicts import behind
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem

CALLS: dict[str, Callable[[SpoolClient], object]] = {
    "pending": lambda spool: spool.submit({"id": "a", "command": ["true"]}),
    "control": lambda spool: spool.pause("review"),
    "settings": lambda spool: spool.change_settings({"retry": {"max": 7}}),
    "steps/t save": lambda spool: Steps(spool).save(1),
    "steps/t last": lambda spool: Steps(spool).last(),
    "context/b put": lambda spool: SharedContext(spool, "b").put("plan", b"x"),
    "context/b get": lambda spool: SharedContext(spool, "b").get("plan"),
    "context/b current": lambda spool: SharedContext(spool, "b").current(),
}
KINDS: dict[str, Callable[[Path, Path], object]] = {
    "a link to a directory outside": lambda place, outside: place.symlink_to(outside),
    "a link to nothing": lambda place, outside: place.symlink_to(outside / "gone"),
    "a file": lambda place, outside: place.write_text("x"),
    "a pipe": lambda place, outside: os.mkfifo(place),
}


def places() -> Iterator[tuple[str, str]]:
    """Each call, with each directory that it needs."""
    for call in CALLS:
        directory = call.partition(" ")[0]
        parts = directory.split("/")
        yield from ((call, "/".join(parts[: end + 1])) for end in range(len(parts)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("call", "place"), list(places()))
def test_it_is_named_and_not_a_file_of_the_caller(
    call: str, place: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names-e: the error named a file in tmp/ that was in order, and steps behind a link were taken for none."""
    root, outside = tmp_path / "spool", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    initialise(PosixFileSystem(str(root)), SystemClock(), "s1", str(root))
    for name, value in (("ROOT", str(root)), ("TASK_ID", "t"), ("ATTEMPT", "1")):
        monkeypatch.setenv(f"SPOOL_{name}", value)
    with SpoolClient(str(root)) as spool:
        Steps(spool).save(0)
        SharedContext(spool, "b").put("plan", b"first")
        (root / place).rename(tmp_path / "before")
        KINDS[kind](root / place, outside)
        with pytest.raises(Unavailable) as told:
            CALLS[call](spool)
        assert f"{place} is a " in str(told.value)
        assert "where a directory should be" in str(told.value)
        assert f"{root}/tmp/" not in str(told.value)
        assert list(outside.iterdir()) == []
        (root / place).unlink()
        (tmp_path / "before").rename(root / place)
        CALLS[call](spool)
        assert list((root / "tmp" / spool.store.writer).iterdir()) == []


def test_an_error_that_no_obstacle_caused_names_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    fs = PosixFileSystem(str(tmp_path))
    for error in (
        FileNotFoundError(2, "x", "file"),
        NotADirectoryError(20, "x"),
        NotADirectoryError(20, "x", "gone/y"),
    ):
        assert behind(fs, error, str(tmp_path)) is None
    assert behind(fs, NotADirectoryError(20, "x", f"{tmp_path}/file/y"), str(tmp_path)) is not None
    assert behind(fs, NotADirectoryError(20, "x", f"{tmp_path}/file"), str(tmp_path)) is not None
    assert behind(fs, NotADirectoryError(20, "x", "file", None, "gone/y"), str(tmp_path)) is None
