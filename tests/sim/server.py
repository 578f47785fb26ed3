"""The true tree, as the file server has it: what a change does, what a power cut takes back, and who looks on.

Law: nothing is ever renamed onto an existing name. A server here refuses nothing, it only tells `laws`.

A power cut comes in two kinds. A file server that exports synchronously keeps every name, and of every file that was
not made durable only the name. A local disk goes back, names and all, to some moment since the last thing that was
made durable: journals of file systems keep their order. So does a server that `forgets`, and who asked it lives on.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from typing import Protocol

from greenlet import getcurrent

from spoold.protocol.layout import REASON
from spoold.system.filesystem import Stat, Usage
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.sim.openfile import OpenFile
from tests.sim.scheduler import Process

KEPT = 40


class Onlooker(Protocol):
    """Who looks at every change of the tree."""

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """A file has another name now."""
        ...

    def removed(self, path: str) -> None:
        """A file is no more."""
        ...

    def written(self, path: str, replaced: bool) -> None:
        """A file was written where it stands."""
        ...

    def made(self, path: str) -> None:
        """A directory was made."""
        ...

    def appended(self, path: str, data: bytes) -> None:
        """Something was added to a file."""
        ...

    def scribbled(self, path: str) -> None:
        """A program that is no node's wrote into the file that it has open."""
        ...

    def rebuilt(self) -> None:
        """The tree went back to an earlier moment."""
        ...


class Server:
    """The file system that all mounts lead to, without any of their lies. heard is told what truly happens."""

    def __init__(self, clock: object, rolls_back: bool) -> None:
        self.fs = MemoryFileSystem(clock)  # type: ignore[arg-type]
        self.rolls_back = rolls_back
        self.forgets = rolls_back
        self.onlooker: Onlooker | None = None
        self.full = False
        self.cuts = 0
        self.by_hand: set[str] = set()
        self.heard: Callable[[str, tuple[object, ...], BaseException | None], None] | None = None
        self.holder: Process | None = None
        self._volatile: dict[str, int] = {}
        self._open: list[OpenFile] = []
        self._strangers: list[OpenFile] = []
        self._history: list[MemoryFileSystem] = []

    def call(self, verb: str, *args: object, **options: object) -> object:
        """Carry out a verb of the port. Errors: OSError."""
        own: Callable[..., object] | None = getattr(self, f"_{verb}", None)
        act: Callable[..., object] = own or getattr(self.fs, verb)
        if self.heard is None:
            return act(*args, **options)
        try:
            answer = act(*args, **options)
        except BaseException as error:
            self.heard(verb, args, error)
            raise
        self.heard(verb, args, None)
        return answer

    def _rename(self, src: str, dst: str) -> None:
        replaced = self.exists(dst) and not self._says_the_same(src, dst)
        self.fs.rename(src, dst)
        if src in self._volatile:
            self._volatile[dst] = self._volatile.pop(src)
        for file in self._strangers:
            if file.path == src:
                file.path = dst
        self._remember()
        if self.onlooker is not None and src != dst:
            self.onlooker.renamed(src, dst, replaced)

    def _says_the_same(self, src: str, dst: str) -> bool:
        """Whether it is the reason of a rejection, and another leader has given the same one, but for the time."""
        if not (dst.startswith("rejected/") and dst.endswith(REASON)):
            return False
        one, other = (json.loads(self.fs.read(path)) for path in (src, dst))
        return {**one, "at": None} == {**other, "at": None}

    def _unlink(self, path: str) -> None:
        self.fs.unlink(path)
        self._volatile.pop(path, None)
        for file in self._strangers:
            if file.path == path:
                # Of a removal that the network carried out late, nobody knows here who had asked for it.
                looks = [file.looks[here]] if (here := getcurrent()) in file.looks else file.looks.values()
                file.path, file.unread_end = None, False in looks
        self._remember()
        if self.onlooker is not None:
            self.onlooker.removed(path)

    def _mkdir(self, path: str) -> None:
        self.fs.mkdir(path)
        if self.onlooker is not None:
            self.onlooker.made(path)

    def _write(self, path: str, data: bytes, *, durable: bool) -> None:
        replaced = self.exists(path)
        self.fs.write(path, data, durable=durable)
        if durable:
            self._volatile.pop(path, None)
            self._history.clear()
        else:
            self._unsure(path)
        self._remember()
        if self.onlooker is not None:
            self.onlooker.written(path, replaced)

    def _read(self, path: str) -> bytes:
        data = self.fs.read(path)
        for file in self._strangers:
            if file.path == path:
                file.looks[getcurrent()] = True
        return data

    def _append(self, path: str, data: bytes) -> None:
        self.fs.append(path, data)
        self._unsure(path)
        if self.onlooker is not None:
            self.onlooker.appended(path, data)

    def _unsure(self, path: str) -> None:
        """A power cut may take its content, or what was added to it. Of what a person copies an NFS server keeps what
        was closed, and its client what was not.
        """
        if path not in self.by_hand or self.forgets:
            self._volatile.setdefault(path, 0)

    def open(self, path: str, late: bool) -> OpenFile:
        """A program opens a file for writing, and empties it. Errors: OSError.

        late: its client keeps what is written.
        """
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self.by_hand.add(path)
        self.fs.write(path, b"", durable=False)
        self._unsure(path)
        self._remember()
        file = OpenFile(path, self._add, self._open.remove, late)
        for before in [before for before in self._strangers if before.path == path]:
            file.looks |= before.looks
        self._open.append(file)
        self._strangers.append(file)
        self._scribbled(path)
        return file

    def is_strangers(self, path: str) -> bool:
        """Whether a program that is no node's has opened this very file for writing, under whatever name."""
        return any(file.path == path for file in self._strangers)

    def _scribbled(self, path: str) -> None:
        for file in self._strangers:
            if file.path == path:
                file.looks = dict.fromkeys(file.looks, False)
        if self.onlooker is not None:
            self.onlooker.scribbled(path)

    def _add(self, path: str, data: bytes) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self.fs.append(path, data)
        if self.forgets:
            self._unsure(path)
        self._scribbled(path)

    def _has_writer(self, path: str) -> bool:
        self.fs.stat(path)
        return any(file.path == path for file in self._open)

    def _persist(self, path: str) -> None:
        """What is in it now is on the disk, and with it all that was done before."""
        size = self.fs.stat(path).size
        if path in self._volatile:
            self._volatile[path] = size
        self._history.clear()

    def durable_size(self, path: str) -> int:
        """How many bytes of a file no power cut can take."""
        return self._volatile.get(path, self.fs.stat(path).size)

    def _sync(self, path: str) -> None:
        self.fs.sync(path)
        self._history.clear()

    def _flush(self) -> None:
        """Across a network it says nothing of files that were closed before: the server's cache is out of reach."""
        if self.rolls_back:
            held = [path for path in self._volatile if any(file.path == path for file in self._open)]
            self._volatile = {path: self.fs.stat(path).size for path in held}
            self._history.clear()

    def _lock(self, process: Process) -> bool:
        """The lock of the spool is given to one at a time, and goes with its holder's process."""
        if self.holder is None or self.holder.dead:
            self.holder = process
        return self.holder is process

    def unlock(self, process: Process) -> None:
        """It is free again, if it was still this one's."""
        if self.holder is process:
            self.holder = None

    def exists(self, path: str) -> bool:
        """Whether that name is truly there."""
        directory, _, name = path.rpartition("/")
        try:
            return name in self.fs.list(directory)
        except OSError:
            return False

    def _remember(self) -> None:
        """Where it goes back, any moment since the last durable one may be what a power cut leaves."""
        if self.forgets:
            self._history.append(self.fs.snapshot())
            del self._history[:-KEPT]

    def cut_power(self, draw: Callable[[], float]) -> None:
        """What was not made durable is forgotten."""
        self.cuts += 1
        if self.forgets:
            if self._history:
                self._go_back(self._history[int(draw() * len(self._history))])
            self._history.clear()
            self._lose_opened()
        for path, kept in sorted(self._volatile.items()):
            if draw() < 0.5 and self.exists(path):
                data = self.fs.read(path)
                self.fs.write(path, data[: max(kept, int(draw() * len(data)))], durable=True)
        self._volatile.clear()
        if self.onlooker is not None:
            self.onlooker.rebuilt()

    def put_back(self, copy: MemoryFileSystem) -> None:
        """A person restores an earlier copy of the tree."""
        self._go_back(copy)
        self._history.clear()
        self._lose_opened()
        self._volatile = {path: kept for path, kept in self._volatile.items() if self.exists(path)}
        if self.onlooker is not None:
            self.onlooker.rebuilt()

    def _go_back(self, then: MemoryFileSystem) -> None:
        self.fs._root, self.fs._used = then.snapshot()._root, then._used
        self.fs._owner = object()

    def _lose_opened(self) -> None:
        for file in self._open:
            file.lost = True
        self._strangers = [*self._open]

    def is_volatile(self, path: str) -> bool:
        """Whether a power cut may take the content of this file."""
        return path in self._volatile and self.durable_size(path) < self.fs.stat(path).size

    def stat(self, path: str) -> Stat:
        """What is truly there."""
        return self.fs.stat(path)

    def usage(self) -> Usage:
        """The room that is truly there."""
        return self.fs.usage()
