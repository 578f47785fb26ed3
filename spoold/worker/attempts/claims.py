"""claimed/<me>/: this worker's claims, as the share shows them.

Law: a token that is listed there is this worker's own, whether or not its rename was seen to succeed; one that is no
longer there is not. A directory that is gone from claimed/ means that this worker was taken for dead.

A task is a regular file. Any other entry that a member puts there under a task's name was never claimed: it is
renamed where it is, since a directory of another user can be moved nowhere else, and the worker warns of it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TypeVar

from spoold.protocol import layout
from spoold.protocol.lanes import Lane
from spoold.protocol.lifecycle import Mover
from spoold.protocol.names import COUNT_MAX, TaskName, key, parse_task
from spoold.store.attempt_records import ASIDE, set_aside
from spoold.store.journal import Journal
from spoold.store.path_conflicts import named
from spoold.store.step_timing import Polling, Slice
from spoold.store.store import Store

_LOOK = "claims"
# How often (s) a look is due where it costs a round trip: while tasks run, and while none does; and at least so many
# times per heartbeat interval while tasks run.
EVERY_S, IDLE_S, TIMES = 1.0, 2.0, 5
# Of how many attempts that are over the tokens are remembered.
REMEMBERED = 10_000
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Claims:
    """Looks at one worker's claim directory, as often as needed."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._polling = Polling(store)
        self._every_s = min(EVERY_S, store.settings.heartbeat.interval_s / TIMES)
        self._directory = layout.join(layout.CLAIMED, store.writer)
        self._spent: dict[str, None] = {}
        self._recorded: dict[tuple[str, int], str] = {}  # attempts that are over, and their records
        # Attempts that this worker claimed, or tried to, or looked into; as which other types, '' for their own.
        self._ordered: dict[tuple[str, int], frozenset[str]] = {}
        self._turn = 0
        self._strange: list[str] = []  # warnings of entries here that are no task

    def take(self, *, working: bool) -> bool:
        """Whether to look in this step; then the look counts as taken."""
        if working:
            self._polling.active()
        return self._polling.take(_LOOK, self._every_s if working else IDLE_S * self._polling.slow)

    def patience(self, working: bool) -> float:
        """Return by which factor to wait longer between looks that only hasten things, where a look is dear."""
        return self._polling.dear if working else self._polling.slow

    def doubt(self) -> None:
        """After a move into it or out of it whose end is unknown: look in the next step."""
        self._polling.hasten(_LOOK)

    def order(self, name: TaskName, lane: Lane) -> None:
        """Note that this worker is about to claim an attempt from a lane; from then on it may turn up here at any
        time.
        """
        _remember(self._ordered, (key(name.id), name.attempt), self.kinds(name) | {_kind(lane)})

    def took(self, name: TaskName, lane: Lane) -> None:
        """Note that a claim from this lane was made: so the token was there, and at no other place."""
        _remember(self._ordered, (key(name.id), name.attempt), frozenset({_kind(lane)}))

    def kinds(self, name: TaskName) -> frozenset[str]:
        """Return the other types as which this worker has claimed the attempt, or may have; '' for its own."""
        return self._ordered.get((key(name.id), name.attempt), frozenset())

    def never_ordered(self, late: Collection[str]) -> list[str]:
        """Return those of these tokens that this worker never tried to claim, each once."""
        names = [name for file in sorted(late) if (name := parse_task(file)) is not None]
        strange = [name for name in names if (key(name.id), name.attempt) not in self._ordered]
        for name in strange:
            _remember(self._ordered, (key(name.id), name.attempt), frozenset())
        return [name.encode() for name in strange]

    def spend(self, file: str) -> None:
        """Note that the claim got another name, or its attempt is over: a file of this name must not run."""
        _remember(self._spent, file, None)

    def end(self, name: TaskName, files: Collection[str]) -> None:
        """Note that an attempt is over, and the names that its token may have."""
        for file in files:
            self.spend(file)
        ended = name.ended(self._store.writer).encode()
        _remember(self._recorded, (key(name.id), name.attempt), layout.join(layout.RESULTS, ended))

    def is_spent(self, name: TaskName) -> bool:
        """Whether the token's attempt was here and is over, also if somebody made it a token of another name: the
        record that stands must not be written a second time. Errors: OSError.
        """
        if name.encode() in self._spent:
            return True
        record = self._recorded.get((key(name.id), name.attempt))
        if record is None or name.attempt == COUNT_MAX:  # the last number is given again and again
            return False
        try:  # a task that was removed may have come again under its id
            self._store.fs.stat(record)
        except FileNotFoundError:
            return False
        return True

    def give_back(self, file: str) -> TaskName | None:
        """Let the leader judge a token that shows though its attempt is over: its name, or None if it stayed.

        A stale entry of the share cannot be moved; a copy that a person restored is set aside; and if a power cut
        made the server forget the rename that committed it, the task has to run again.
        """
        name = parse_task(file)
        assert name is not None  # it ran here
        claim, back = layout.join(self._directory, file), name.again().encode_returned(self._store.writer)
        refused = self._store.attempt(Mover.WORKER, "RETURNED", claim, layout.join(layout.RETURNED, back))
        return name if refused is None else None

    def list(self) -> set[str]:
        """Return the names of this worker's tokens. Errors: OSError, ShutOut."""
        try:
            return set(self._store.fs.list(self._directory))
        except (FileNotFoundError, NotADirectoryError):
            self._store.check_kept(layout.CLAIMED)
            raise

    def files(self, late: Collection[str]) -> set[str]:
        """Return those of these names that are tokens; set aside entries with a task's name that are no file.

        late: listed names that are no running attempt's. Never raises OSError.
        """
        self._strange, tokens, time = [], set(), Slice(self._store.clock)
        listed = sorted(late)
        turn = self._turn % max(len(listed), 1)
        for number, file in enumerate([*listed[turn:], *listed[:turn]]):
            if number and time.over:
                self._turn = turn + number  # the next look goes on here
                self.doubt()
                break
            path = layout.join(self._directory, file)
            if file.endswith(ASIDE):
                self._tell(path)
            elif parse_task(file) is None:
                continue
            elif self._is_file(path):
                tokens.add(file)
            else:
                self._set_aside(path)
        return tokens

    def _is_file(self, path: str) -> bool:
        """An entry that is gone, or cannot be looked at now, counts as a file: a later move or read judges it."""
        try:
            return self._store.fs.stat(path).kind == "file"
        except OSError:
            return True

    def _set_aside(self, path: str) -> None:
        try:
            there = set_aside(self._store, path)
        except FileNotFoundError:
            return  # its owner has removed it
        except OSError as error:
            self._tell(path, f" and cannot be renamed ({error.strerror})")
            return
        self._journal.note("SET_ASIDE", message=f"{path} was no file, though it had the name of a task: {there}")
        self._tell(there)

    def _tell(self, path: str, more: str = "") -> None:
        said = f"{path} is in the claim directory of this worker{more} and is no task; another process put it there"
        self._strange.append(f"{said}: its owner (or root) removes it (`rm -r {path}`)")

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for people."""
        return tuple(named(self._strange, "things that are no task in this worker's claim directory"))

    def close(self) -> bool:
        """Remove the directory, as far as possible; True if no entry that may be a task is left. Errors: OSError."""
        if self._store.shared:
            return False
        try:
            self._store.fs.rmdir(self._directory)
        except OSError:
            return not any(map(parse_task, self._store.fs.list(self._directory)))
        return True


def _kind(lane: Lane) -> str:
    """Return the type as which the tasks of a lane run, '' for their own."""
    return lane.type if lane.instead_of else ""


def _remember(known: dict[K, V], what: K, value: V) -> None:
    """Note something, and forget the oldest of too many."""
    known[what] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]
