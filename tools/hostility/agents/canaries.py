"""What nobody may touch: files, a key of ssh, a socket, a port, a variable, a key of the kernel; and marks of traps.

Law: it only listens. Whoever opens, knocks or runs leaves a line, with the time and what is known of it. What these
hold is a word that is nowhere else, so that it is found wherever it went.

Touches: files, processes, threads, the network, the clock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import secrets
import select
import socket
import struct
import threading
from pathlib import Path

IN_ACCESS, IN_MODIFY, IN_OPEN, IN_CREATE, IN_DELETE, IN_MOVED, IN_ISDIR = 1, 2, 0x20, 0x100, 0x200, 0xC0, 1 << 30
WATCHED = IN_ACCESS | IN_MODIFY | IN_OPEN | IN_CREATE | IN_DELETE | IN_MOVED
WHAT = {IN_ACCESS: "read", IN_MODIFY: "written", IN_OPEN: "opened", IN_CREATE: "made", IN_DELETE: "removed"}
ADD_KEY = {"x86_64": 248, "aarch64": 217}
KEYCTL = {"x86_64": 250, "aarch64": 219}
JOIN, SESSION = 1, -3
OPEN_TO_ALL = "open"


class Canaries:
    """All of it, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.marks = folder, folder.with_name("marks")
        self.words = {what: f"canary-{secrets.token_hex(8)}" for what in ("file", "key", "variable", "keyring")}
        (folder / ".ssh").mkdir(parents=True)
        self.marks.mkdir()
        for name, what in (("secret", "file"), (".ssh/id_ed25519", "key")):
            (folder / name).write_text(f"{self.words[what]}\n")
            (folder / name).chmod(0o600)
        (folder / OPEN_TO_ALL).write_text("of others, and no secret\n")
        self.keyring = _put_key(self.words["keyring"])
        self._told: list[str] = []
        self._over = threading.Event()
        self._door = socket.create_server(("127.0.0.1", 0))
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / "agent.sock"))
        self._socket.listen()
        self.port: int = self._door.getsockname()[1]
        self._watch = _watch(folder, folder / ".ssh")
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def told(self) -> list[str]:
        """Return what was touched since the last time, each a sentence; marks are taken away."""
        found, self._told = self._told, []
        for mark in sorted(self.marks.iterdir()):
            with contextlib.suppress(OSError):
                found.append(f"{mark.name} was run: {mark.read_bytes()[:300]!r}")
                mark.unlink()
        return found

    def words_in(self, data: bytes) -> list[str]:
        """Return whose words are in some data."""
        return [what for what, word in self.words.items() if word.encode() in data]

    def close(self) -> None:
        """Stop listening."""
        self._over.set()
        self._thread.join()
        for one in (self._door, self._socket):
            one.close()
        os.close(self._watch)

    def _listen(self) -> None:
        while not self._over.is_set():
            doors = {door.fileno(): door for door in (self._door, self._socket)}
            ready, _, _ = select.select([*doors, self._watch], [], [], 0.2)
            for one in ready:
                if one == self._watch:
                    self._told += _seen(os.read(self._watch, 1 << 16))
                else:
                    self._knock(doors[one])

    def _knock(self, door: socket.socket) -> None:
        way, _ = door.accept()
        with way:
            way.settimeout(1)
            said = b""
            with contextlib.suppress(OSError):
                said = way.recv(500)
        self._told.append(
            f"{'the port' if door is self._door else 'the socket of keys'} was knocked at: {said[:60]!r}"
        )


def _watch(*folders: Path) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    watch: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    for folder in folders:
        libc.inotify_add_watch(watch, os.fsencode(folder), WATCHED)
    return watch


def _seen(data: bytes) -> list[str]:
    """Return what the kernel says of the files, in the words of people; the same once."""
    found, at = [], 0
    while at + 16 <= len(data):
        _, mask, _, size = struct.unpack_from("iIII", data, at)
        name = data[at + 16 : at + 16 + size].rstrip(b"\0").decode(errors="replace")
        at += 16 + size
        what = next((word for bit, word in WHAT.items() if mask & bit), "changed")
        # What a hard link leads to may be read by its other name, and that is no other's file.
        if name not in (OPEN_TO_ALL, "agent.sock"):
            found.append(f"{name or 'the folder'} of the canary was {what}")
    return list(dict.fromkeys(found))


def _put_key(word: str) -> bool:
    """Begin a key ring of this session with a key in it; whether this kernel has them."""
    number = ADD_KEY.get(platform.machine())
    if number is None:
        return False
    libc, data = ctypes.CDLL(None, use_errno=True), word.encode()
    libc.syscall(KEYCTL[platform.machine()], JOIN, None)
    made: int = libc.syscall(number, b"user", b"hostile", data, len(data), SESSION)
    return made > 0
