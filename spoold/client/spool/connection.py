"""A client's connection to one spool: opened, written to through its own tmp directory, left clean.

Law: it writes through its own tmp directory alone, which is made at the first write, so that reading needs no right
to write. Two processes never share that directory: a child of fork takes a new name.

Touches: processes, threads, the network, the environment.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from spoold.client.spool import submission
from spoold.client.spool.location import spool_directory
from spoold.protocol import layout
from spoold.protocol.errors import ShutOut, Unavailable
from spoold.protocol.names import Numbered, base36, key, next_number, slug
from spoold.store.path_conflicts import behind
from spoold.store.store import Store, open_store
from spoold.system import kernel_random
from spoold.system.clock import Clock, SystemClock
from spoold.system.errnos import advice
from spoold.system.filesystem import FileSystem

if TYPE_CHECKING:
    from datetime import datetime

    from spoold.protocol.request import Verb

T = TypeVar("T")
# At most so many ids that callers chose are remembered.
REMEMBERED = 10_000
# So many tasks get a request each. An older leader knows only such requests.
SINGLE_MOST = 100


class Numbers:
    """The numbers of the files that this connection publishes in a directory: each is given once.

    A publication that seemed to fail may still appear. Another one under its name would then be replaced.
    """

    def __init__(self) -> None:
        self.giving = threading.Lock()
        self._given: dict[str, int] = {}

    def above(self, directory: str, listed: Iterable[Numbered]) -> int:
        """Return a number above all that are listed there, and above all that were given there before. The caller
        holds `giving` from its listing until it has published. Errors: BadFile for a file that leaves no room.
        """
        self._given[directory] = next_number(directory, listed, self._given.get(directory, 0))
        return self._given[directory]


class Connection:
    """An open spool. Use it in a `with`, or call `close`. Thread-safe, except `close`."""

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        filesystem: FileSystem | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Open the spool in this directory, or else in the one that SPOOL_DIR or a configuration names.

        Errors: Unavailable when there is no spool (is the share mounted?), NoSpoolNamed, BadFile for its settings.
        filesystem and clock replace the real ones, for tests and simulators.
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
        # Behind the name of who asks, in the record of each request: through which program of ours.
        self.via = ""
        self.dropped: dict[str, str] = {}  # drop names by key, for the last ids that callers chose
        self._last_micros = 0
        self.numbers = Numbers()
        # Also removes the files in tmp/ when a program ends without `close`.
        self._finalizer = weakref.finalize(self, self.store.close_tmp)
        _open.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave only submitted tasks behind in the spool. May be called twice."""
        self._finalizer()

    def forked(self) -> None:
        """Take a new name in a child of fork: under one name, both would write the same files in tmp/."""
        self._finalizer.detach()
        self._writing = threading.Lock()
        self.numbers = Numbers()
        self._begin_anew()
        self._finalizer = weakref.finalize(self, self.store.close_tmp)

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Turn an OSError of the spool into Unavailable with advice."""
        try:
            yield
        except BrokenPipeError:
            raise  # no file system raises this; it is the program's own pipe
        except OSError as error:
            if (found := behind(self.store.fs, error, self.directory)) is not None:
                raise Unavailable(f"{self.directory}: {found}") from error
            where = f"{error.filename}: " if isinstance(error.filename, str) else ""
            raise Unavailable(f"{self.directory}: {where}{error.strerror or error}. {advice(error)}") from error

    def micros(self, count: int = 1) -> int:
        """Return microseconds since 1970, never the same number twice; count reserves that many in a row."""
        with self._writing:
            first = max(int(self.store.clock.wall() * 1e6), self._last_micros + 1)
            self._last_micros = first + count - 1
            return first

    def publish(self, drops: Iterable[submission.Drop]) -> None:
        """Publish drops in pending/; they survive a power cut if the settings ask for it."""
        durable, published = self.store.durable, {}
        with self.reaching(), self._writing:
            for drop in drops:
                path = layout.join(layout.PENDING, drop.name)
                staged = self._through_tmp(partial(self.store.publish, path, drop.data, durable=durable))
                published[staged] = path
                self._remember(drop)
            if durable:
                with suppress(ShutOut):  # the published drops are out of reach, and not lost
                    self.store.settle(layout.PENDING, published)

    def _remember(self, drop: submission.Drop) -> None:
        """Remember the drop of a chosen id: another task may have that id, and is not the drop."""
        for task_id in drop.chosen:
            self.dropped.pop(key(task_id), None)
            self.dropped[key(task_id)] = drop.name
        while len(self.dropped) > REMEMBERED:
            del self.dropped[next(iter(self.dropped))]

    def post(
        self,
        verb: Verb,
        target: str,
        reason: str,
        *,
        until: datetime | None = None,
        by: str = "",
        unique: str = "",
        **more: Any,
    ) -> str:
        """Put a request into control/; return its UNIQUE, which is made here if it is not given. until: when it ends
        by itself; by: who asks, by default this user; more: as for `control.post`. Errors: BadName for a target that
        no file name can hold.
        """
        from spoold.store import control

        unique = unique or self.unique()
        said = {"by": by or self._caller(), "reason": reason, "until": until, **more}
        with self.reaching(), self._writing:
            self._through_tmp(partial(control.post, self.store, verb, target, unique, **said))
        return unique

    def post_each(
        self, verb: Verb, ids: Sequence[str], reason: str, *, by: str = "", mark: Callable[[str], str] = str
    ) -> None:
        """Request the same of each of these tasks: of a few with a request each, of more with one for TASKS_MAX of
        them. The leader begins with those that come first. mark: makes the UNIQUE of a request from a text that is.
        """
        from spoold.protocol.request import MANY
        from spoold.protocol.request_body import TASKS_MAX

        if len(ids) <= SINGLE_MOST:
            for task_id in ids:
                self.post(verb, task_id, reason, by=by, unique=mark(self.unique()))
            return
        for begin in range(0, len(ids), TASKS_MAX):
            tasks = tuple(ids[begin : begin + TASKS_MAX])
            self.post(verb, MANY, reason, by=by, unique=mark(self.unique()), tasks=tasks)

    def unique(self) -> str:
        """Return a UNIQUE for a request; later ones sort behind it."""
        return f"{base36(self.micros(), 10)}-{submission.suffix()}"

    def change_settings(self, said: Mapping[str, Any], *, unset: Iterable[str] = (), reason: str = "") -> str:
        """Publish a change of settings; returns its revision, '' where all of it holds already.

        said: as in spool.toml, and only what changes; unset: keys that are again as in spool.toml. Errors: BadFile
        that names the key, with nothing published.
        """
        from spoold.client.spool import configuration

        with self.reaching(), self._writing:
            self.store.revisions.look()
            if configuration.holds_already(self.store, said, unset):
                return ""
            write = partial(configuration.publish, self.store, said, unset, by=self._caller(), reason=reason)
            return self._through_tmp(write)

    def change(self, act: Callable[[str], T]) -> T:
        """Have `act` publish a file, such as a change of settings; it gets the name of who asks."""
        with self.reaching(), self._writing:
            return self._through_tmp(partial(act, self._caller()))

    def _caller(self) -> str:
        return f"{caller()} via {self.via}" if self.via else caller()

    def pool_time(self) -> float:
        """Return the time (s since 1970) by which leaders judge deadlines: no single machine's clock decides it."""
        from spoold.store import heartbeats, pool_clock

        common = self.store.common
        with self.reaching(), self._writing:
            self._through_tmp(partial(common.ask, self.store))
            common.agree(pool_clock.by_host(heartbeats.read_all(self.store.fs).values()).values())
        return common.wall()

    def _through_tmp(self, write: Callable[[], T]) -> T:
        """Write a file that is staged first. Only this needs a tmp directory: reading works on a share mounted
        read-only.

        The leader removes the directory of a client that has not written for long. Then the write failed and left
        nothing, and the client tries again under a new name.
        """
        try:
            self._open_tmp()
            return write()
        except ShutOut:
            self._begin_anew()
            self._open_tmp()
            return write()

    def _begin_anew(self) -> None:
        self.store.writer, self._tmp_open = writer_id(), False

    def _open_tmp(self) -> None:
        if not self._tmp_open:
            self.store.open_tmp()
            self._tmp_open = True


_open: weakref.WeakSet[Connection] = weakref.WeakSet()


def _tell_forked() -> None:
    for connection in _open:
        connection.forked()


os.register_at_fork(after_in_child=_tell_forked)


def writer_id() -> str:
    """Return a node id for one client: its host and a few random characters."""
    host = slug(socket.gethostname().lower().partition(".")[0], 20)
    legal = "".join(char if char.isalnum() or char == "-" else "-" for char in host)
    return f"cli-{legal}-{base36(kernel_random.below(36**6), 6)}"


def caller() -> str:
    """Return USER@HOST, for the record of a request."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
