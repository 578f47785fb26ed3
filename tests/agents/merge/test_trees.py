"""Whatever tests leave behind, the lane goes on, and leaves nothing of it on this machine."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from spoold.system.remover import remove
from tests.agents.merge.lanes import land, work
from tests.agents.workspace.repos import Remote
from tests.support.trees import deep

NAMES = (b"plain", b"new\nline", b"\xff\xfe", b"-rf", b"*", b"tab\t", b".git", b"x" * 255, b'quo"te', b" ")
Block = Callable[[bytes, random.Random], None]


def _pipe(path: bytes, chance: random.Random) -> None:
    os.mkfifo(path)


def _socket(path: bytes, chance: random.Random) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path[-90:] if len(path) <= 90 else b"s")


def _loop(path: bytes, chance: random.Random) -> None:
    os.symlink(chance.choice([b".", path, b"/", b"..", b"/proc/self"]), path)


def _closed(path: bytes, chance: random.Random) -> None:
    os.makedirs(os.path.join(path, b"in"))
    os.chmod(os.path.join(path, b"in"), 0)
    os.chmod(path, chance.choice([0, 0o500, 0o111]))


def _deep(path: bytes, chance: random.Random) -> None:
    deep(Path(os.fsdecode(path)), 150)


def _many(path: bytes, chance: random.Random) -> None:
    os.mkdir(path)
    for number in range(20):
        with open(os.path.join(path, b"%d" % number), "wb"):
            pass


def _linked(path: bytes, chance: random.Random) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    os.link(path, path[:-3] + b"-2")


def _fixed(path: bytes, chance: random.Random) -> None:
    """What only its flag keeps: as a user without rights can make none, so this is for root alone."""
    os.mkdir(path)
    subprocess.run(["chattr", "+a", path], check=False, capture_output=True)


BLOCKS: tuple[Block, ...] = (_pipe, _socket, _loop, _closed, _deep, _many, _linked, _fixed)


def _leave(tree: Path, chance: random.Random) -> None:
    """Leave something at random in a tree of tests, or of the tree itself something else."""
    for name in chance.sample(NAMES, 4):
        with suppress(OSError):
            chance.choice(BLOCKS)(os.path.join(os.fsencode(tree), name), chance)
    match chance.randrange(6):
        case 0:
            remove(str(tree))
            tree.symlink_to("/") if not tree.exists() else None
        case 1:
            os.rename(tree, tree.parent / "elsewhere")
            tree.write_text("a file")
        case 2:
            os.chmod(tree.parent, 0o500)
        case _:
            pass


@pytest.mark.parametrize("seed", range(5))
def test_any_tree_that_tests_leave_lets_good_work_land(tmp_path: Path, seed: int) -> None:
    """G18: a read-only folder in work that fails its tests stopped the lane, and so may anything else."""
    chance = random.Random(seed)
    remote = Remote(tmp_path)
    bad = [work(remote, tmp_path, f"bad{number}", {f"bad{number}.txt": "1\n"}) for number in range(2)]
    good = work(remote, tmp_path, "good", {"good.txt": "1\n"})

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        failed = any(name.startswith("bad") for name in os.listdir(tree))
        _leave(Path(tree), chance)
        return int(failed), "it is bad"

    try:
        outcome = land(remote, tmp_path, *bad, good, tests=("judge",), run=run)
        assert [one.task for one, _ in outcome.landed] == ["good"]
        assert sorted(one.task for one in outcome.refused) == ["bad0", "bad1"]
        again = work(remote, tmp_path, "again", {"again.txt": "1\n"})
        assert land(remote, tmp_path, again, tests=("true",)).whole
    finally:
        subprocess.run(["chattr", "-R", "-f", "-a", str(tmp_path / "merger")], check=False, capture_output=True)
