"""A client's hold on one spool: opened, written to through its own tmp directory, left clean."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

from spoold.client import submission
from spoold.client.location import spool_directory
from spoold.protocol import layout
from spoold.protocol.errors import Unavailable
from spoold.protocol.names import slug
from spoold.protocol.order import base36
from spoold.protocol.request import Verb
from spoold.store import control
from spoold.store.store import Store, open_store
from spoold.system.clock import Clock, SystemClock
from spoold.system.errnos import advice
from spoold.system.filesystem import FileSystem


class Connection:
    """An open spool. Use it in a `with`, or call `close`. Serves several threads, save in `close`."""

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        filesystem: FileSystem | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Open the spool in a directory; without one, the one that SPOOL_DIR or a configuration names.

        Errors: Unavailable when there is no spool (is the share mounted?), NoSpoolNamed, BadFile for its settings.
        filesystem and clock take the place of the real ones, for tests and simulators.
        """
        if filesystem is None:
            from spoold.system.posix import PosixFileSystem

            self.directory = spool_directory(directory)
            filesystem = PosixFileSystem(self.directory)
        else:
            self.directory = os.fspath(directory or "spool")
        self.store: Store = open_store(filesystem, clock or SystemClock(), writer_id(), self.directory)
        self._writing = threading.Lock()
        self._tmp_open = False
        self._last_micros = 0
        # What is left in tmp/ when a program ends without `close` is taken away as well.
        self._finalizer = weakref.finalize(self, self.store.close_tmp)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave nothing behind in the spool but what was submitted. May be called twice."""
        self._finalizer()

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Turns an OSError of the spool into Unavailable with advice."""
        try:
            yield
        except BrokenPipeError:
            raise  # no file system says this; it is the caller's own output
        except OSError as error:
            where = f"{error.filename}: " if isinstance(error.filename, str) else ""
            raise Unavailable(f"{self.directory}: {where}{error.strerror or error}. {advice(error.errno)}") from error

    def micros(self, count: int = 1) -> int:
        """Microseconds since 1970, never the same twice; with count, that many in a row are taken."""
        with self._writing:
            first = max(int(self.store.clock.wall() * 1e6), self._last_micros + 1)
            self._last_micros = first + count - 1
            return first

    def publish(self, drops: Iterable[submission.Drop]) -> None:
        """Make drops appear in pending/, safe from a power cut if the settings ask for that."""
        durable = self.store.durable
        with self.reaching(), self._writing:
            self._open_tmp()
            for drop in drops:
                self.store.publish(layout.join(layout.PENDING, drop.name), drop.data, durable=durable)
            if durable:
                self.store.fs.sync(layout.PENDING)

    def post(self, verb: Verb, target: str, reason: str) -> None:
        """Put a request into control/. Errors: BadName for a target that cannot stand in a name."""
        unique = f"{base36(self.micros(), 10)}-{submission.suffix()}"
        with self.reaching(), self._writing:
            self._open_tmp()
            control.post(self.store, verb, target, unique, by=_caller(), reason=reason)

    def _open_tmp(self) -> None:
        """Only who writes needs a tmp directory: looking works on a share that is mounted read-only."""
        if not self._tmp_open:
            self.store.open_tmp()
            self._tmp_open = True


def writer_id() -> str:
    """A node id for one client: where it runs, and a few characters of chance."""
    host = slug(socket.gethostname().lower().partition(".")[0], 20)
    legal = "".join(char if char.isalnum() or char == "-" else "-" for char in host)
    return f"cli-{legal}-{base36(secrets.randbelow(36**6), 6)}"


def _caller() -> str:
    """Who asks, for the record."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
