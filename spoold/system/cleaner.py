"""The process that removes what tasks left, for a worker that only moved it aside.

A worker starts it when there is something to remove, and writes a line of JSON to its standard input each time there
is more: `{"n": 3, "tmp": DIRECTORY, "roots": [DIRECTORY], "turn": 0}`. It answers with lines: `{"at": PATH}` when it
begins with a folder and every few seconds from then on, and `{"n": 3, "left": [[PATH, WHY, SIZE, MORE]]}` when
everything was tried. What stays is tried again after a minute, then after twice as long each time.

Law: it may be killed or hang at any moment; its worker only misses its answers. It ends with its worker, and when
there has been nothing to do for a while. It loads nothing but the standard library and files of this room.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spoold.system.remover import Left, remove
from spoold.system.same_mount import LISTED, NAMED, PLACE, open_here

# The names of a scratch whose worker is gone, and of a folder in a scratch whose attempt has ended.
RUBBISH, ENDED = "spoold-rubbish-", "ended-"
_NICE = 10
_IDLE_S, _SAY_S, _LOOK_S = 60.0, 5.0, 0.05
_AGAIN_S, _LATEST_S = 60.0, 3600.0
_READ = 1 << 16
# One folder is removed by one process at a time; a look at whether the other is done costs next to nothing.
_BUSY_S = 5.0


@dataclass(slots=True)
class _Try:
    """A folder that stayed: how often, when (monotonic, s) it is tried again, and what stays in it."""

    times: int
    due: float
    left: list[Left]


def on_wire(path: str) -> str:
    """Return a path as JSON can carry it: one character for each byte."""
    return os.fsencode(path).decode("latin-1")


def off_wire(text: str) -> str:
    """Return the path again."""
    return os.fsdecode(text.encode("latin-1"))


def main() -> None:
    """Serve the worker at the other ends of standard input and output."""
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(BrokenPipeError):
        Cleaner(0, 1).serve()


class Cleaner:
    """One process: what it was asked for, and what it could not remove."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._gone = select.poll()
        self._gone.register(source, 0)  # tells only that the other end was closed
        self._heard = b""
        self._order: dict[str, Any] = {"n": 0, "tmp": "", "roots": [], "turn": 0}
        self._tried: dict[str, _Try] = {}
        self._at, self._said_at, self._looked_at = "", 0.0, 0.0

    def serve(self) -> None:
        """Remove what there is, until the worker is gone or nothing is left to do. Errors: BrokenPipeError."""
        while self._hear():
            for path in self._found():
                if self._over():
                    return
                self._try(path)
            kept = [left for tried in self._tried.values() for left in tried.left]
            self._say({"n": self._order["n"], "left": [[on_wire(x.path), x.why, x.size, x.more] for x in kept[:16]]})

    def _hear(self) -> bool:
        """Wait for an order, or until a folder is due again; whether there is anything to go on for."""
        now = time.monotonic()
        due = min((tried.due for tried in self._tried.values()), default=None)
        waiting = select.poll()
        waiting.register(self._source, select.POLLIN)
        ready = waiting.poll(_IDLE_S * 1000 if due is None else max(0.0, due - now) * 1000)
        if not ready:
            return due is not None
        data = os.read(self._source, _READ)
        *lines, self._heard = (self._heard + data).split(b"\n")
        if lines:
            self._order = json.loads(lines[-1])
        return bool(data)

    def _found(self) -> list[str]:
        found = mine(off_wire(self._order["tmp"]), RUBBISH)
        for root in self._order["roots"]:
            # In the worker's own scratch, also what a task of root gave to somebody else.
            found += mine(off_wire(root), ENDED, of_others=True)
        for lost in set(self._tried) - set(found):
            del self._tried[lost]
        # A folder at which this process hung before must not keep the others from their turn for ever.
        turn = self._order["turn"] % max(len(found), 1)
        return found[turn:] + found[:turn]

    def _try(self, path: str) -> None:
        now = time.monotonic()
        before = self._tried.get(path)
        if before is not None and before.due > now:
            return
        self._at = path
        self._say({"at": on_wire(path)})
        held, taken = _lock(path)
        try:
            if taken:
                self._tried[path] = _Try(0, now + _BUSY_S, [])
                return
            left = remove(path, self._go_on)
        finally:
            if held is not None:
                os.close(held)
        if not left:
            self._tried.pop(path, None)
            return
        times = 1 if before is None else before.times + 1
        pause_s = min(_AGAIN_S * 2 ** (times - 1), _LATEST_S) if times < 10 else _LATEST_S
        self._tried[path] = _Try(times, time.monotonic() + pause_s, left)

    def _go_on(self) -> bool:
        now = time.monotonic()
        if now - self._looked_at < _LOOK_S:
            return True
        self._looked_at = now
        if now - self._said_at >= _SAY_S:
            self._say({"at": on_wire(self._at)})
        return not self._over()

    def _over(self) -> bool:
        return bool(self._gone.poll(0))

    def _say(self, message: dict[str, object]) -> None:
        self._said_at = time.monotonic()
        os.write(self._sink, json.dumps(message).encode() + b"\n")


def entries(directory: str, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the names in a directory that begin so, in order, each with the directory's descriptor. Errors: none."""
    try:
        above = os.open(directory, PLACE)
    except OSError:
        return
    try:
        names: list[str] = []
        with suppress(OSError), os.scandir(directory) as found:
            names = sorted(entry.name for entry in found if entry.name.startswith(prefix))
        for name in names:
            yield name, above
    finally:
        os.close(above)


def mine(directory: str, prefix: str, *, of_others: bool = False) -> list[str]:
    """Return the paths of a directory's entries of this user with this prefix, in order. of_others: and of others."""
    found = []
    for name, above in entries(directory, prefix):
        try:
            entry = open_here(name, NAMED, above)
        except OSError:
            found.append(f"{directory}/{name}")  # a mount: the remover names it, and touches nothing
            continue
        if of_others or os.fstat(entry).st_uid == os.geteuid():
            found.append(f"{directory}/{name}")
        os.close(entry)
    return found


def _lock(path: str) -> tuple[int | None, bool]:
    """Lock a folder against other processes that remove; returns what holds it, and whether another has it."""
    directory, name = os.path.split(path)
    try:
        above = os.open(directory, PLACE)
        try:
            folder = open_here(name, LISTED, above)
        finally:
            os.close(above)
    except OSError:
        return None, False
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return folder, True
    return folder, False
