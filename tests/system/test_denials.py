"""Permission denied on NFS is asked about anew: a client remembers it long after the server has allowed all again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from spoold.system.openat import Beneath
from spoold.system.posix import EVERY_S, Denials


class Asked:
    """What was asked about, with its own clock."""

    def __init__(self, root: Path, *, nfs: bool = True) -> None:
        self.root, self.names, self.at = root, list[str](), 100.0
        self.denials = Denials(str(root), lambda: nfs, self.ask, lambda: self.at)

    def ask(self, name: str, above: int | None = None, *, follow: bool = False) -> None:
        assert follow == (above is None)
        here = "" if above is None else os.readlink(f"/proc/self/fd/{above}") + "/"
        self.names.append(f"{here}{name}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "spool"
    (made / "ready" / "type=x").mkdir(parents=True)
    return made


def test_every_directory_on_the_way_is_asked_about_also_above_the_spool(root: Path) -> None:
    asked = Asked(root)
    assert asked.denials.doubt("ready/type=x/task.json")
    ways = [str(way) for way in (*reversed(root.parents), root, root / "ready", root / "ready" / "type=x")]
    assert asked.names == ways


def test_nothing_is_asked_twice_within_a_second(root: Path) -> None:
    asked = Asked(root)
    assert asked.denials.doubt("ready/type=x/task.json")
    assert not asked.denials.doubt("ready/type=x/other.json")
    assert asked.denials.doubt("ready/type=x")  # in another directory
    asked.at += EVERY_S
    assert asked.denials.doubt("ready/type=x/task.json")


def test_no_link_is_followed(root: Path) -> None:
    elsewhere = root.parent / "elsewhere"
    (elsewhere / "below").mkdir(parents=True)
    (root / "ready" / "link").symlink_to(elsewhere)
    asked = Asked(root)
    assert asked.denials.doubt("ready/link/below/file")
    assert asked.names[-1] == str(root / "ready" / "link")


def test_only_an_nfs_client_is_doubted(root: Path) -> None:
    asked = Asked(root, nfs=False)
    assert not asked.denials.doubt("ready/type=x/task.json")
    assert asked.names == []


class Denied:
    """A call that is denied so often, then allowed."""

    def __init__(self, times: int, code: int = errno.EACCES) -> None:
        self.left, self.code, self.calls = times, code, 0

    def at(self, name: str, above: int | None) -> str:
        self.calls += 1
        self.left -= 1
        if self.left >= 0:
            raise OSError(self.code, os.strerror(self.code))
        return name

    def between(self, src: str, dst: str, giver: int | None, taker: int | None) -> str:
        return f"{self.at(src, giver)} {dst}"


def test_a_denied_call_is_made_once_more_when_the_server_was_asked(root: Path) -> None:
    beneath = Beneath(str(root), Asked(root).denials.doubt)
    call = Denied(1)
    assert beneath.at("ready/type=x", call.at) == "type=x"
    call = Denied(1)
    assert beneath.between("ready/type=x/a", "ready/b", call.between) == "a b"
    call = Denied(2)
    with pytest.raises(PermissionError, match="spool/ready/type=x"):
        beneath.at("ready/type=x", call.at)


def test_a_denial_that_was_asked_about_just_now_is_believed(root: Path) -> None:
    beneath = Beneath(str(root), Asked(root).denials.doubt)
    for calls in (2, 1):
        call = Denied(9)
        with pytest.raises(PermissionError):
            beneath.at("ready/type=x", call.at)
        assert call.calls == calls


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EPERM, errno.EIO])
def test_other_errors_ask_nobody(root: Path, code: int) -> None:
    asked = Asked(root)
    call = Denied(1, code)
    with pytest.raises(OSError, match=os.strerror(code)):
        Beneath(str(root), asked.denials.doubt).at("ready/type=x", call.at)
    assert (call.calls, asked.names) == (1, [])
