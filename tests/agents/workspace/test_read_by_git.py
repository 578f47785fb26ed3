"""Whatever an agent puts in the place of a file that git or git-lfs reads by itself in a tree: all else is saved."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spoold.agents.workspace.looking import READ_MAX
from tests.agents.workspace.repos import Remote, git, workspace, write
from tests.agents.workspace.test_lfs import remote

__all__ = ["remote"]  # its content is on a server of git-lfs, whose program reads files of the tree, too

NAMES = (".gitattributes", ".gitignore", ".gitmodules", ".lfsconfig", ".mailmap")
WITHIN_S = 60.0


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_a_pipe(path: Path) -> None:
    pipe = path.with_name("pipe")
    if not pipe.exists():
        os.mkfifo(pipe)
    path.symlink_to("pipe")


def link_without_end(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_the_input(path: Path) -> None:
    path.symlink_to("/dev/stdin")


def sparse(path: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, 1 << 40)


def long_line(path: Path) -> None:
    path.write_bytes(b"x" * (200 << 20))


def folder(path: Path) -> None:
    path.mkdir()


KINDS = (pipe, link_to_a_pipe, link_without_end, link_to_the_input, sparse, long_line, folder)


@pytest.mark.turns
@pytest.mark.parametrize("above", ["", "deep/", "inner/"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_else_is_saved(remote: Remote, tmp_path: Path, kind: Callable[[Path], None], above: str) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n", "deep/c.txt": "x\n", "new.bin": "large\n", "inner/d.txt": "x\n"})
        git("init", "-q", cwd=tree / "inner")
        for name in NAMES:
            (tree / above / name).unlink(missing_ok=True)
            kind(tree / above / name)
        began = time.monotonic()
        saved = made.save("saved")
        took = time.monotonic() - began
    assert {"b.txt", "deep/c.txt", "inner/d.txt", "new.bin", "old.bin"} <= set(remote.files(saved.ref))
    assert took < WITHIN_S
    if kind is sparse:
        named = "\n".join(saved.left_out)
        assert f"{above}.gitignore: git reads it whole, and it has more than 10 MiB; its name is" in named
        assert f"{above}.gitignore.too-large: " in named, "and that is too large for the remote"


def test_a_file_that_gives_way_takes_no_name_of_another(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {".gitignore.too-large": "mine\n", ".gitignore": "#" * (READ_MAX + 1)})
        saved = made.save("saved")
    assert remote.read(saved.ref, ".gitignore.too-large") == "mine\n"
    assert remote.read(saved.ref, ".gitignore.too-large.2") == "#" * (READ_MAX + 1)
    assert saved.left_out == (
        ".gitignore: git reads it whole, and it has more than 10 MiB; its name is .gitignore.too-large.2 now",
    )
