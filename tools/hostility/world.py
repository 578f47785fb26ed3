"""The place of a hostile task, the register of deeds, and what several deeds do.

Law: the standard library alone, and nothing of spoold.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

MS_BIND = 4096
# Larger than any disk.
SPARSE = 1 << 42
# What may be in the place of a file: a folder, a pipe, a socket, and links.
NO_FILES = ("folder", "pipe", "zero", "canary", "loop", "socket")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of each kind. small: for many seeds; large: what the promises speak of."""

    files: int = 3_000
    levels: int = 1_500
    printed: int = 8 << 20
    written: int = 4 << 20


SCALES = {"small": Scale(), "large": Scale(files=2_000_000, levels=5_000, printed=512 << 20, written=64 << 20)}


@dataclass(slots=True)
class World:
    """The place of a task: its chance, its scale, the canary, the work folder and the paths that it was given."""

    chance: random.Random
    scale: Scale
    canary: str
    work: str = field(default_factory=lambda: os.environ.get("SPOOL_WORK_DIR") or os.getcwd())

    def given(self, name: str) -> str:
        """Return a path that the environment names; one that cannot be made where it names none."""
        return os.environ.get(name) or f"/proc/none/{name}"

    def folder(self, name: str) -> str:
        """Return a path to a folder that the environment names, as long as this process lives. Errors: OSError.

        Another task may have put a link or a mount that leads to the canary in its place: then it is refused.
        """
        opened = os.open(self.given(name), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if os.path.samestat(os.fstat(opened), os.stat(self.canary)):
            raise PermissionError(name)
        return f"/proc/{os.getpid()}/fd/{opened}"

    @property
    def home(self) -> str:
        """The folder that its files are in."""
        return os.path.dirname(self.given("SPOOL_RESULT_FILE"))


Deed = Callable[[World], None]
DEEDS: dict[str, Deed] = {}


def deed(function: Deed) -> Deed:
    """Enter a deed under its name."""
    DEEDS[function.__name__] = function
    return function


def unfollowed(path: str, flags: int) -> int:
    """Open a path, for `open`; no link in its place, which another deed of the task may have put there."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def taken(path: str, world: World) -> None:
    """Put something else in the place of a folder: a link to another's, a pipe, a file, or nothing."""
    os.chdir("/")
    # It may be gone before the task's end: the worker looks there in each step.
    with contextlib.suppress(OSError):
        os.rename(path, f"{path}.old")
    kind = world.chance.choice(("link", "file", "pipe", "nothing", "folder"))
    if kind == "link":
        os.symlink(world.canary, path)
    elif kind == "file":
        os.close(unfollowed(path, os.O_CREAT | os.O_WRONLY))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        _make(path)


def _make(path: str) -> None:
    """Put a folder with something in it there. What stands there meanwhile may lead elsewhere: it is not followed."""
    with contextlib.suppress(OSError):
        os.makedirs(f"{path}.new/in", exist_ok=True)
        os.rename(f"{path}.new", path)


def mount(source: str, target: str, kind: str, flags: int) -> None:
    """Mount, where this user may; elsewhere nothing is mounted."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mount(source.encode(), os.fsencode(target), kind.encode() or None, flags, None)


def texts(world: World) -> bytes:
    """A text that is no JSON that anybody should write, or is just allowed."""
    chance = world.chance
    number = chance.choice(
        ("1e308", "-1e308", "1e999", "NaN", "-Infinity", "1" * 400, "-1", "0.1e-400", "12345678901234567890123")
    )
    depth = chance.choice((10, 300, 1_000, 100_000))
    return chance.choice(
        (
            b"[" * depth,
            b"[" * depth + b"]" * depth,
            b'{"a":' * depth + b"1" + b"}" * depth,
            f'{{"cost_usd": {number}}}'.encode(),
            f'{{"tokens_used": {number}, "cost_usd": {number}}}'.encode(),
            f'{{"fraction": {number}, "message": {number}}}'.encode(),
            f'{{"retry_after": {number}, "retry_after_s": {number}}}'.encode(),
            b'{"message": "\\ud800 half"}',
            b'{"message": "\xff\xfe"}',
            b'{"message": "' + b"x" * world.scale.written + b'"}',
            b"{" + b",".join(b'"%d": 1' % n for n in range(50_000)) + b"}",
            b"\xef\xbb\xbf{}",
            b"\x00" * 1000,
            b"",
            b"null",
            b'"text"',
            b"{",
            b'{"a": 1, "a": 2}',
            b'{"changed_files": ["' + b"../" * 500 + b'"], "served": "yes", "quota": {"until": 1e300}}',
            b'{"asks": 3, "notes": [[[]]], "files": {"a": null}}',
        )
    )


def write(path: str, world: World, kinds: tuple[str, ...] = (*("text",) * 8, *NO_FILES, "sparse")) -> None:
    """Put a text, or something that is no file, where the worker reads."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    kind = world.chance.choice(kinds)
    if kind == "text":
        with open(path, "wb", opener=unfollowed) as file:
            file.write(texts(world))
    elif kind == "folder":
        _make(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        os.close(unfollowed(path, os.O_CREAT | os.O_WRONLY))
        os.truncate(path, SPARSE)
    elif kind == "socket":
        os.mknod(path, 0o600 | 0o140000)
    else:
        os.symlink({"zero": "/dev/zero", "canary": f"{world.canary}/file", "loop": path}[kind], path)


def left_behind(work: Callable[[], object]) -> None:
    """Run something in a process that has left the task's session."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        with contextlib.suppress(BaseException):
            work()
        os._exit(0)
