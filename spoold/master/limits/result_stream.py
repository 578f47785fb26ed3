"""results/ → subscribers that decide by the cost of attempts: each record is read once, and only on demand.

A leader notes each attempt whose end it sees (`known_tasks.Ends`). The stream reads the record of each, a bounded
number in a step, and hands it to all subscribers. Now and then it writes a checkpoint: their states, and the attempts
that these cover. The next leader restores both, lists results/ once, and reads only newer records.

Law: state and coverage are saved and restored together, and no task is archived before, so no record counts twice
and none is left out, wherever a leader dies. A record that cannot be read stops nothing. Without subscribers nothing
is noted, read or written.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from spoold.master.state.known_tasks import End, end_at
from spoold.master.state.leader_state import Desk
from spoold.master.state.tree_view import Place
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, ShutOut
from spoold.protocol.feed_checkpoint import Checkpoint, CheckpointName
from spoold.protocol.lanes import kind_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_ended, parse_task
from spoold.protocol.result import EndedAttempt, Result
from spoold.store import attempt_records, existence
from spoold.store.existence import regular
from spoold.store.path_conflicts import named
from spoold.system.errnos import Meaning, classify, concerns_one_file

# Records that are read in one step.
PER_STEP = 64
# For how long (s) a record that cannot be read is read again, and how often.
PATIENCE_S, AGAIN_S = 5.0, 0.5
# How often (s) a checkpoint is written while attempts end: with many tasks in it more rarely, EACH_S for each.
EVERY_S, EACH_S = 5.0, 1e-3
# A reader must be able to read it whole.
BYTES_MAX = 32 << 20
# How many of the last warnings the status shows, and for how long (s).
SHOWN, SHOWN_S = 5, 600.0


class Subscriber(Protocol):
    """A part that decides by the outcomes of attempts. name: its key in a checkpoint, the same in all releases."""

    name: str

    def take(self, attempt: EndedAttempt) -> None:
        """Take in one attempt. It comes once; two attempts of one task come in their order."""
        ...

    def save(self) -> Any:
        """Return the whole state as a JSON value."""
        ...

    def restore(self, state: Any) -> None:
        """Replace the whole state by one that `save` returned, perhaps in another release; None: begin with nothing.

        Errors: ValueError for a state that it cannot go on from.
        """
        ...


class Feed:
    """One leader's feed. It outlives epochs: each epoch has a new desk, which makes it restore everything."""

    def __init__(self, subscribers: Sequence[Subscriber] = ()) -> None:
        """Errors: ValueError for two subscribers of one name."""
        self._subscribers = {subscriber.name: subscriber for subscriber in subscribers}
        if len(self._subscribers) < len(subscribers):
            raise ValueError(f"two subscribers have one name: {[s.name for s in subscribers]}")
        self._numbers = itertools.count()
        self._desk: Desk | None = None
        self._coverage = Coverage()
        self._others: dict[str, Any] = {}
        self._standing: list[CheckpointName] = []
        self._news = False
        # Whether a checkpoint stands from which a next leader would go on; and the ends of before this leader.
        self._begun, self._behind = False, set[EndedName]()
        # Since when (monotonic, s) the newest checkpoint could not be read, and of which desk.
        self._waits: tuple[Desk, float] | None = None
        # Records that could not be read: since when (monotonic, s), and when to read them again.
        self._since, self._again = dict[EndedName, float](), dict[EndedName, float]()
        self._saved_at: float | None = None
        self._warnings: deque[tuple[float, str]] = deque(maxlen=SHOWN)

    def join(self, desk: Desk, subscriber: Subscriber) -> None:
        """Have one more subscriber from now on, unless it is one: attempts that were handed on before are past."""
        if subscriber.name in self._subscribers:
            return
        self._subscribers[subscriber.name] = subscriber
        if self._desk is desk:
            self._put_back(desk, subscriber, self._others.pop(subscriber.name, None))
            self._news = True

    def caught_up(self, desk: Desk) -> bool:
        """Whether all that ended before this leader was handed on, and a next leader would miss no attempt."""
        return self._desk is desk and self._begun and not self._behind

    def step(self, desk: Desk) -> int:
        """Hand on some attempts; returns how many are left for the next step. Errors: OSError of the share."""
        if not self._subscribers:
            return 0
        if self._desk is not desk and not self._restore(desk):
            return 0
        try:
            left = self._read(desk)
        except NotADirectoryError:
            return 0  # a non-directory is at results/: the status says so, and the records wait
        if not self._news:
            desk.ends.saved()
        elif self._saved_at is None or desk.step.now.monotonic >= self._saved_at + self._every_s():
            self._save(desk)
        self._tell(desk)
        return left

    def _read(self, desk: Desk) -> int:
        """Read some records, in order; a record that cannot be read just now keeps back those of its task alone.

        Returns how many are left that could be read at once. Errors: OSError of the share, and nothing is lost.
        """
        queue, budget, kept, now = desk.ends.queue, PER_STEP, list[End](), desk.step.now.monotonic
        late = set[str]()
        try:
            while queue and budget:
                end, task_key = queue[0], key(queue[0].name.id)
                if task_key in late or now < self._again.get(end.name, 0.0):
                    late.add(task_key)
                elif self._coverage.lacks(end.name):
                    desk.breathe()
                    budget -= 1
                    if not self._hand_on(desk, end):
                        late.add(task_key)
                queue.popleft()
                if task_key in late:
                    kept.append(end)
                else:
                    self._again.pop(end.name, None)
                    self._since.pop(end.name, None)
                    self._behind.discard(end.name)
            return len(queue)
        finally:
            queue.extendleft(reversed(kept))

    def save_soon(self) -> None:
        """Have the next step write a checkpoint, if there is news."""
        self._saved_at = None

    def close(self, desk: Desk | None) -> None:
        """Save what this desk's leader handed on since the last checkpoint. Never raises OSError."""
        if desk is not None and self._desk is desk and self._news:
            with contextlib.suppress(OSError, ShutOut):
                self._save(desk)

    def _every_s(self) -> float:
        return max(EVERY_S, EACH_S * len(self._coverage))

    def _restore(self, desk: Desk) -> bool:
        """Go on where the leader before left off. If it left nothing, attempts that ended by now are not read.

        False while its checkpoint cannot be read: to go on without it would forget what it counted.
        """
        fs, faults, now = desk.store.fs, list[str](), desk.step.now.monotonic
        if self._waits is None or self._waits[0] is not desk:
            self._waits = desk, now
        listed = attempt_records.list_checkpoints(fs)
        self._standing = [name for name in listed if name.epoch <= desk.epoch]
        # No leader wrote it, and under a higher name it would be read instead of theirs, by every next leader.
        strange = [
            f"{attempt_records.checkpoint_path(name)} is of a later epoch than {desk.epoch}, so no leader wrote it, "
            "and it is passed over; remove it"
            for name in listed[: len(listed) - len(self._standing)]
        ]
        faults += named(strange, "checkpoints of a later epoch")
        try:
            patient = now - self._waits[1] < PATIENCE_S
            found = attempt_records.latest_checkpoint(fs, self._standing, faults, patient=patient)
        except attempt_records.UnreadableCheckpoint:
            desk.ends.wait()
            return False
        states = dict(found.states) if found is not None else {}
        for name, subscriber in self._subscribers.items():
            self._put_back(desk, subscriber, states.pop(name, None))
        self._others = states
        self._coverage = Coverage(found.covered if found is not None else ())
        desk.breathe()
        behind = self._coverage.behind(existence.names_in(fs, layout.RESULTS, desk.view.blocked), desk.view.place)
        if found is None:
            for end in behind:
                self._coverage.add(end.name)
        desk.ends.expect(behind if found is not None else ())
        self._begun, self._behind = found is not None, {end.name for end in desk.ends.queue}
        self._since.clear()
        self._again.clear()
        for fault in faults:
            self._warn(desk, fault)
        self._desk, self._news, self._saved_at, self._waits = desk, found is None, None, None
        return True

    def _put_back(self, desk: Desk, subscriber: Subscriber, state: Any) -> None:
        why = ""
        with desk.faults.handling("saved state", subscriber.name) as handling:
            try:
                subscriber.restore(state)
            except ValueError as error:
                why = f"{error}"
        if handling.fault is not None:
            why = handling.fault.cause
        if why:
            subscriber.restore(None)
            problem = f"the saved state of {subscriber.name} cannot be used"
            self._warn(desk, f"{problem}, so it begins with nothing: {why}")

    def _hand_on(self, desk: Desk, end: End) -> bool:
        """Read a record and hand it on; False if it cannot be read just now, as a server may say for a moment."""
        path = layout.join(layout.RESULTS, end.name.encode())
        try:
            with desk.faults.reading("record", path, end.name.id, end.name.attempt):
                with desk.reading(path), regular(path):
                    data = existence.read(desk.store.fs, path)
                result = None if data is None else codec.load_model(Result, data, path)
        except BadFile as error:
            self._miss(desk, end.name, f"{path} {error.problem.rstrip('.')}")
        except OSError as error:
            if not concerns_one_file(error) or isinstance(error, NotADirectoryError):
                raise
            if not self._gave_up(desk, end):
                return False
            self._miss(desk, end.name, f"{path}: {error.strerror}")
        else:
            if result is not None:
                for subscriber in self._subscribers.values():
                    self._give(desk, subscriber, end, result)
            elif end.final:
                if not self._gave_up(desk, end):
                    return False
                self._miss(desk, end.name, f"{path} is missing")
        self._coverage.add(end.name)
        self._news = True
        return True

    def _give(self, desk: Desk, subscriber: Subscriber, end: End, result: Result) -> None:
        name = end.name
        with desk.faults.handling(f"record for {subscriber.name}", name.encode(), name.id, name.attempt) as handling:
            subscriber.take(EndedAttempt.of(name, result, end.kind))
        if handling.fault is not None:
            self._miss(desk, name, f"{layout.join(layout.RESULTS, name.encode())} {handling.fault.cause}")

    def _gave_up(self, desk: Desk, end: End) -> bool:
        """Whether a record could not be read for long enough; else it is read again a little later."""
        now = desk.step.now.monotonic
        since = self._since.setdefault(end.name, now)
        if now - since >= PATIENCE_S:
            return True
        self._again[end.name] = now + AGAIN_S
        return False

    def _miss(self, desk: Desk, name: EndedName, why: str) -> None:
        desk.journal.note("UNREAD", name.id, name.attempt, problem=why)
        self._warn(desk, f"{why}; the cost of this attempt is not counted")

    def _warn(self, desk: Desk, sentence: str) -> None:
        self._warnings.append((desk.step.now.monotonic + SHOWN_S, sentence))

    def _save(self, desk: Desk) -> None:
        """Write a checkpoint, and remove all but the one before it. Errors: OSError, but not for a full share."""
        self._saved_at = desk.step.now.monotonic
        self._coverage.keep(lambda task_key: _may_come_again(desk, task_key))
        states = {**self._others, **{name: subscriber.save() for name, subscriber in self._subscribers.items()}}
        covered = tuple(self._coverage.names())
        data = codec.dump(Checkpoint(at=desk.store.stamp(), states=states, covered=covered))
        if len(data) > BYTES_MAX:
            problem = f"the checkpoint of the feed would be larger than {BYTES_MAX >> 20} MiB"
            self._warn(desk, f"{problem}, so the next leader counts anew from the last one; lower retention.keep")
            desk.ends.saved()
            return
        name = CheckpointName(desk.epoch, next(self._numbers))
        try:
            attempt_records.publish_checkpoint(desk.store, name, data)
        except OSError as error:
            if classify(error) is not Meaning.FULL and not isinstance(error, NotADirectoryError):
                raise
            return
        self._news, self._begun = False, True
        desk.ends.saved()
        for old in self._standing[1:]:
            with contextlib.suppress(OSError):
                desk.store.fs.unlink(attempt_records.checkpoint_path(old))
        self._standing = [name, *self._standing[:1]]

    def _tell(self, desk: Desk) -> None:
        while self._warnings and self._warnings[0][0] <= desk.step.now.monotonic:
            self._warnings.popleft()
        desk.report.notice(*[sentence for _, sentence in self._warnings])


def _may_come_again(desk: Desk, task_key: str) -> bool:
    """Whether records of the task may be in results/: it is neither archived nor gone."""
    return desk.view.place(task_key) is not None or task_key in desk.missing.keys


# Which records of attempts the feed has handed on: the last one of each task.


class Coverage:
    """The last record of each task that was handed on, or skipped for good. names: of files in results/."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._last: dict[str, EndedName] = {}
        for name in map(parse_ended, names):
            if name is not None:
                self.add(name)

    def __len__(self) -> int:
        return len(self._last)

    def lacks(self, name: EndedName) -> bool:
        """Whether this attempt, decided by this node, was not handed on.

        Another decider of the same attempt is news: a server that lost its power may forget a commit, and then the
        attempt is decided again.
        """
        last = self._last.get(key(name.id))
        return last is None or name.attempt > last.attempt or (name.attempt == last.attempt and name != last)

    def add(self, name: EndedName) -> None:
        """Record that it was handed on, or skipped for good."""
        last = self._last.get(key(name.id))
        if last is None or name.attempt >= last.attempt:
            self._last[key(name.id)] = name

    def keep(self, known: Callable[[str], bool]) -> None:
        """Forget tasks that are not known by their key: their records have left results/."""
        for task_key in [task_key for task_key in self._last if not known(task_key)]:
            del self._last[task_key]

    def names(self) -> list[str]:
        """Return the names from which another coverage can be made."""
        return [name.encode() for name in self._last.values()]

    def behind(self, names: Iterable[str], place_of: Callable[[str], Place | None]) -> list[End]:
        """Return the attempts of these names of results/ that ended and were not handed on, earlier attempts first.

        place_of: where the token of a key is. A record counts if its token's name says so, or if the token has gone
        on to a later attempt. In the second case nothing says which decider counts, so the first record by name does.
        """
        found: dict[tuple[str, int], End] = {}
        for name in map(parse_ended, sorted(names)):
            place = place_of(key(name.id)) if name is not None else None
            if name is None or place is None or not self.lacks(name):
                continue
            end, last = _end_of(name, place), self._last.get(key(name.id))
            again = last is not None and name.attempt == last.attempt
            if end is not None and (end.final or not again):
                found.setdefault((key(name.id), name.attempt), end)
        return sorted(found.values(), key=lambda end: (end.name.attempt, key(end.name.id)))


def _end_of(name: EndedName, place: Place) -> End | None:
    """Return the end that this record is of, given its token's place; None if it has not ended, or does not count."""
    at = end_at(place)
    if at is not None:
        if name.attempt < at.name.attempt:
            return End(name, final=False)
        return at if name == at.name else None
    task = parse_task(place.name) if place.state in (State.WAITING, State.READY, State.CLAIMED) else None
    if task is None or name.attempt >= task.attempt:
        return None
    lane = place.directory.partition("/")[2] if place.state is not State.CLAIMED else ""
    return End(name, kind_in(lane) or None, final=False)
