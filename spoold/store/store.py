"""An open spool, as one writer sees it: marker, settings, its own tmp directory, reading, publishing, moving.

Law: a token moves only by a line of the lifecycle table. A file is published whole, under a name that only this
writer makes. A writer is shut out only if its own directory is surely gone, or is no directory any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, ShutOut, Unavailable
from spoold.protocol.lifecycle import Mover, insist
from spoold.protocol.plain_settings import CLAIMS, Basics, Identity, basics, identity, says_nothing
from spoold.rules.share import free_space
from spoold.store import existence, mover
from spoold.store.existence import regular
from spoold.store.locked_renames import LockedFileSystem
from spoold.store.mover import Moved
from spoold.store.path_conflicts import remove_link
from spoold.store.pool_clock import CommonClock
from spoold.system.clock import Clock
from spoold.system.errnos import Meaning, classify
from spoold.system.filesystem import FileSystem, Usage
from spoold.system.posix import WHOLE, FileLock, Lock, PosixFileSystem

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import MountFacts
    from spoold.protocol.settings import Settings
    from spoold.store.contained_faults import Faults
    from spoold.store.settings_revisions import Revisions


TWIN_FIX = (
    "Were both resumed from one image of memory? Reboot one of them, with a machine id and host name of its own"
)
# One change waits for the lock at most this long (s), and at most half an interval: a wait must not cost a beat.
LOCK_WAIT_S = 2.5


class Store:
    """One spool, one writer. `writer` is a node id, unique per start: only this writer writes under tmp/<writer>/.

    common: the time that decides about deadlines. marker, basics: the parts of spool.json and spool.toml that
    every command needs.
    """

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        writer: str,
        marker: Identity,
        basics: Basics,
        settings: Callable[[], Settings],
    ) -> None:
        self.fs = fs
        self.clock = clock
        self.common = CommonClock(clock)
        self.writer = writer
        self.marker = marker
        self.basics = basics
        self._read_settings = cache(settings)
        # Another process writes under this writer's name, so nothing that bears it is surely this one's.
        self.shared = False
        # How the spool is mounted now, as far as the program that opened it knows; heartbeats carry it.
        self.mount: Callable[[], MountFacts | None] = lambda: None
        self._written = 0

    @cached_property
    def faults(self) -> Faults:
        """The inputs that this node could not handle."""
        from spoold.store.contained_faults import Faults  # a short command has none

        return Faults(self.clock)

    @cached_property
    def revisions(self) -> Revisions:
        """The settings that this writer goes by, as it looked them up."""
        from spoold.store.settings_revisions import Revisions  # most commands ask for no settings but the basics

        return Revisions(self.fs, self._read_settings, self.faults)

    @property
    def settings(self) -> Settings:
        """spool.toml as it was when the spool was opened, with the changes in settings/ that were seen since."""
        return self.revisions.current

    @property
    def durable(self) -> bool:
        """Whether to wait until important files would survive a power cut."""
        return self.basics.fsync

    def stamp(self) -> str:
        """Now, as people read it: RFC 3339, UTC, milliseconds."""
        return stamp(self.clock.wall())

    def room(self) -> free_space.Room:
        """The room on the share. Errors: OSError."""
        return free_space.room(*self._figures(self.fs.usage()))

    def room_warnings(self) -> list[str]:
        """The warnings about the room on the share: none if there is enough. Errors: OSError."""
        usage = self.fs.usage()
        warnings = free_space.warnings(*self._figures(usage))
        return [free_space.READ_ONLY, *warnings] if usage.read_only else warnings

    @property
    def read_only(self) -> bool:
        """Whether the share is mounted read-only on this machine. Errors: OSError."""
        return self.fs.usage().read_only

    def _figures(self, usage: Usage) -> tuple[int, int, int | None, Basics]:
        return usage.total_bytes, usage.free_bytes, usage.free_inodes, self.basics

    def move(self, role: Mover, event: str, src: str, dst: str) -> Moved:
        """Move a token, by the line of the lifecycle table that has this mover and this event.

        Errors: LawBroken if there is no such line.
        """
        insist(role, event, src, dst)
        return mover.move(self.fs, src, dst)

    def attempt(self, role: Mover, event: str, src: str, dst: str) -> OSError | None:
        """One rename of a token, by such a line of the lifecycle table; the error if there was one.

        After an error the rename may have happened all the same, or may still happen: for callers that look at the
        destination anyway. Errors: LawBroken as `move`.
        """
        insist(role, event, src, dst)
        try:
            self.fs.rename(src, dst)
        except OSError as error:
            return error
        return None

    def open_tmp(self) -> None:
        """Make this writer's tmp directory. Once per start: if it vanishes, this writer has been shut out."""
        make_directory(self.fs, layout.join(layout.TMP, self.writer))

    def close_tmp(self) -> None:
        """Leave nothing behind in tmp/; never raises OSError."""
        if self.shared:
            return
        with contextlib.suppress(OSError):
            clear_directory(self.fs, layout.join(layout.TMP, self.writer))

    def stage(self, data: bytes, *, durable: bool) -> str:
        """Write a file under tmp/<writer>/ and return its path; a rename publishes it. Errors: OSError, ShutOut."""
        self._written += 1
        path = layout.tmp(self.writer, f"{self._written}")
        try:
            self.fs.write(path, data, durable=durable)
        except (FileNotFoundError, NotADirectoryError):
            self.check_kept(layout.TMP)
            raise
        return path

    def has_twin(self, seen: str) -> ShutOut:
        """Give this writer's name up to a twin, with all that bears it. seen: a file that this one never made."""
        self.shared = True
        return ShutOut(f"{seen} is not from this process: another machine runs as {self.writer}, too. {TWIN_FIX}")

    def check_kept(self, above: str) -> None:
        """Find out why my own directory in `above` was not found: raise ShutOut if it was removed, else return.

        The directory above must confirm that: an unmounted share has neither. Errors: OSError.
        """
        mine = layout.join(above, self.writer)
        if not existence.listed(self.fs, mine):
            raise ShutOut(f"{mine} is gone: this node was taken for dead")
        if self.fs.stat(mine).kind != "dir":
            raise ShutOut(f"{mine} is no directory any more: a link or a file stands in its place")

    def publish(self, dst: str, data: bytes, *, durable: bool) -> str:
        """Make a file appear whole under a name that only this writer makes; return its path before.

        Errors: OSError, with nothing left behind; ShutOut.
        """
        path = self.stage(data, durable=durable)
        self._appear(path, dst)
        return path

    def _appear(self, path: str, dst: str) -> None:
        moved = mover.move(self.fs, path, dst)
        if not moved:
            with contextlib.suppress(OSError):
                self.fs.unlink(path)
            raise moved.error or OSError(f"{dst}: publishing ended as {moved.fate}")

    def settle(self, directory: str, published: Mapping[str, str]) -> None:
        """Make everything moved into a directory until now survive a power cut. Errors: OSError, ShutOut.

        published: the names that this writer published there, by their path before. If a server may forget, it cannot
        be asked about a directory. But its disk keeps the order of all changes, so everything before a durable file
        is durable, too. A file that was forgotten before that is back at its old path, and is published again.
        """
        self.fs.sync(directory)
        while self.fs.forgets:
            self.fs.unlink(self.stage(b"", durable=True))
            tmp = layout.join(layout.TMP, self.writer)
            back = [path for name in self.fs.list(tmp) if (path := layout.join(tmp, name)) in published]
            if not back:
                return
            for path in back:
                self._appear(path, published[path])


def stamp(wall: float) -> str:
    """A moment (s since 1970) as people read it: RFC 3339, UTC, milliseconds."""
    whole, milliseconds = divmod(int(wall * 1000), 1000)
    return f"{_second(whole)}.{milliseconds:03d}Z"


@lru_cache(maxsize=16)
def _second(whole: int) -> str:
    """The stamp without its fraction: most stamps differ in the fraction alone. Cached."""
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def open_store(fs: FileSystem, clock: Clock, writer: str, where: str, lock: Lock | None = None) -> Store:
    """Open an existing spool. Errors: Unavailable if it is not a spool (not mounted?), BadFile for its settings.

    where: its directory. lock: excludes other nodes while a move is made, in a spool that claims by lock; None: the
    kernel's lock on the spool's lock file.
    """
    try:
        names = set(fs.list(""))
    except FileNotFoundError as error:
        hint = f"Is the share mounted? `spool init {where}` makes a spool."
        raise Unavailable(f"{where}: {error.strerror}. {hint}") from error
    except OSError as error:
        raise Unavailable(f"{where}: {error.strerror}. {advice_to_open(error)}") from error
    if layout.MARKER not in names:
        hint = f"Is the share mounted? `spool init {where}` makes a new one."
        raise Unavailable(f"{where} is not a spool: it has no {layout.MARKER}. {hint}")
    marker = read_marker(_read(fs, layout.MARKER, where), f"{where}/{layout.MARKER}")
    found, file = b"", f"{where}/{layout.SETTINGS}"
    if layout.SETTINGS in names:
        found = _read(fs, layout.SETTINGS, where)
    settings, basic = read_settings(found, file)
    if isinstance(fs, PosixFileSystem):
        fs.whole = largest(basic)
    if marker.claim == "lock":
        wait_s = min(basic.interval_s / 2, LOCK_WAIT_S)
        fs = LockedFileSystem(fs, lock or FileLock(f"{where}/{layout.LOCK}"), clock, writer, wait_s)
    return Store(fs, clock, writer, marker, basic, settings)


def largest(basics: Basics) -> int:
    """How many bytes of a file are read where no limit is given: no file of a spool is larger than its drops."""
    return max(WHOLE, basics.max_bytes + 1)


def advice_to_open(error: OSError) -> str:
    """The advice for a directory or file of a spool that cannot be opened; the advice of `errnos` is for moves."""
    match classify(error):
        case Meaning.BUSY:
            return "Check that this user may read and write there."
        case Meaning.GONE | Meaning.STALE:
            return "Is the share mounted? If it is, mount it again."
        case Meaning.UNKNOWN:
            return "The file server does not answer; check the network and the server."
        case Meaning.BROKEN:
            return "A spool is a directory, and its settings are plain files."
        case Meaning.FULL | Meaning.CONFIG:
            return "Run `spool doctor` on it."


def _read(fs: FileSystem, name: str, where: str) -> bytes:
    """A file at the root of the spool. Errors: Unavailable that names it; BadFile if it is not a file."""
    file = f"{where}/{name}"
    try:
        with regular(file):
            return fs.read(name)
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}. {advice_to_open(error)}") from error


def make_directory(fs: FileSystem, path: str) -> None:
    """Make a directory that may exist already. A server that replays a request answers EEXIST to its own success."""
    with contextlib.suppress(FileExistsError):
        fs.mkdir(path)


def clear_directory(fs: FileSystem, path: str, take: Callable[[str], object] | None = None) -> bool:
    """Remove a directory of plain files, contents and all; True once it is gone. Errors: OSError, those of `take`.

    Removing the directory shuts the door: a writer that was thought dead can no longer put anything there. take: is
    called with each path in it, and removes or moves the file; by default every file is removed. A link in its place
    is removed itself, and its target is left alone. A directory that this user may not list is removed if it is
    empty.
    """

    def unlink(file: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(file)

    for _ in range(3):
        closed: set[str] = set()
        for name in existence.names_in(fs, path, closed):
            (take or unlink)(layout.join(path, name))
        try:
            fs.rmdir(path)
        except FileNotFoundError:
            if not existence.stands(fs, path):
                return True
        except NotADirectoryError:
            if remove_link(fs, path):
                return True
        except OSError as error:
            if path in closed:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path) from error
            continue  # a file came in meanwhile: list again
        else:
            return True
    return False


# The two files at the root of a spool, from their bytes: the marker and the settings.


def read_settings(data: bytes, file: str) -> tuple[Callable[[], Settings], Basics]:
    """A function that reads all settings, and the basics of them. Errors: BadFile that names the key."""
    if says_nothing(data):
        table: dict[str, Any] = {}
    else:
        from spoold.protocol.toml_file import toml_table  # its parser takes as long to load as a drop to write

        table = toml_table(data, file)

    def settings() -> Settings:
        found = codec.check_settings(table, file)
        if found.types:
            from spoold.rules.entry.references import check_settings_names

            check_settings_names(found, file)
        return found

    basic = basics(table)
    if basic is not None:
        return settings, basic
    read = settings()
    return lambda: read, read.basics


def read_marker(data: bytes, file: str) -> Identity:
    """The marker, if this version knows its format and claim strategy. Errors: BadFile."""
    try:
        return _known_marker(codec.load_sent(data, file), file)
    except BadFile as error:
        if error.field in ("format", "claim"):
            raise  # intact, and of another version
        mend = (
            "put back a copy of it; or, while no node runs, write "
            f'{{"format": {layout.FORMAT_VERSION}, "spool_id": "NAME", "claim": "rename"}} into it, '
            f'with "lock" where {layout.LOCK} stands beside it.'
        )
        raise BadFile(file, error.field, error.problem, mend) from error


def _known_marker(found: dict[str, Any], file: str) -> Identity:
    # First of all, since of a later format nothing else is known.
    form, claim = found.get("format", layout.FORMAT_VERSION), found.get("claim", "rename")
    if form != layout.FORMAT_VERSION:
        problem = f"is {form!r}; this spoold knows format {layout.FORMAT_VERSION}."
        raise BadFile(file, "format", problem, "upgrade spoold on this machine.")
    if claim not in CLAIMS:
        problem = f"is {claim!r}; this spoold knows {' and '.join(map(repr, CLAIMS))}."
        mend = "upgrade spoold on this machine: nodes that claim in different ways do not exclude each other."
        raise BadFile(file, "claim", problem, mend)
    return identity(found) or codec.check_marker(found, file)
