"""What an agent says that it left is what git would save, and no more."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.hostility.agents.leaving import left_in


def paths(tree: Path, *ignored: bytes, base: Sequence[bytes] = ()) -> dict[str, tuple[str, ...]]:
    return {one.path: one.names for one in left_in(str(tree), ignored, {}, base)}


def test_files_and_links_have_the_names_that_git_gives_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n")
    (tmp_path / "link").symlink_to("/nowhere")
    (tmp_path / "in").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/in/\xff\n")).write_bytes(b"raw")
    found = paths(tmp_path)
    assert set(found) == {"a.txt", "link", "in/\udcff\n"}
    done = subprocess.run(
        ["git", "hash-object", "--no-filters", "a.txt"], cwd=tmp_path, capture_output=True, check=True
    )
    assert found["a.txt"][0] == done.stdout.decode().strip()
    assert hashlib.sha256(b"one\r\ntwo\n").hexdigest() in found["a.txt"]
    assert found["link"] == (hashlib.sha1(b"blob 8\0/nowhere").hexdigest(),)


def test_git_directories_and_what_is_no_file_do_not_count(tmp_path: Path) -> None:
    for name in (".git", "inner/.git"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "HEAD").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "inner/file").write_text("x")
    assert set(paths(tmp_path)) == {"inner/file"}


def test_what_is_ignored_counts_only_where_the_base_has_it(tmp_path: Path) -> None:
    for name in ("data.txt", "new", "ignored/x", "folder/file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert set(paths(tmp_path, b"ignored")) == {"data.txt", "new", "folder/file"}
    assert set(paths(tmp_path, b"", base=(b"data.txt", b"folder/file"))) == {"data.txt", "folder/file"}


def test_a_file_that_nobody_may_read_counts_by_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "shut").write_bytes(b"x")
    (tmp_path / "shut").chmod(0)
    found = {one.path: one.names for one in left_in(str(tmp_path), (), {b"shut": b"x", b"gone": b"y"})}
    assert list(found) == ["shut"]
    assert found["shut"][0] == hashlib.sha1(b"blob 1\0x").hexdigest()


@pytest.mark.parametrize("levels", [3, 400])
def test_a_tree_of_any_depth_is_walked(tmp_path: Path, levels: int) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 20, dir_fd=here)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("end", os.O_CREAT, dir_fd=here))
    os.close(here)
    [path] = paths(tmp_path)
    assert path.count("/") == levels
    subprocess.run(["rm", "-rf", tmp_path / ("d" * 20)], check=True)
