"""Laws of single moves, broken: renames and what is believed of them, names, publishing, results, fencing."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from spoold.master.tasks import reaping
from spoold.protocol import codec, layout
from spoold.protocol.errors import ShutOut
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName, SnapshotName, TaskName
from spoold.protocol.result import Status
from spoold.protocol.snapshot import Snapshot
from spoold.rules.attempts.attempt_outcome import Outcome
from spoold.rules.workers import matching
from spoold.store import existence, heartbeats, mover, snapshots
from spoold.store.mover import DONE, Fate, Moved
from spoold.store.step_timing import Slice
from spoold.store.store import Store, make_directory
from spoold.system.filesystem import FileSystem
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.claims import Claims
from spoold.worker.attempts.lease import Resuming
from spoold.worker.attempts.settling import Company, Conclusion, Judged, Settling
from spoold.worker.worker import Worker
from tests.sim.mutation import Mutations, Swap

moves = Mutations()

# A worker that thinks its claim was taken away keeps a result that may count all the same. Whoever misjudges a move
# does harm only where that second look is missing, too.
_UNGUARDED: Swap = (Settling, "_counts", lambda self, attempt: False)


@moves.add("result before commit", "The worker commits first and writes the result afterwards.")
def commit_before_result() -> list[Swap]:
    write, commit = Settling._write_result, Settling._commit

    def first(self: Settling, attempt: Attempt, verdict: Conclusion) -> bool:
        done = commit(self, attempt, verdict)
        with contextlib.suppress(OSError):
            write(self, attempt, verdict, durable=True)
        return done

    return [(Settling, "_write_result", lambda *_, **__: None), (Settling, "_commit", first)]


@moves.add("result before commit", "The result is written, and not made durable before the commit.")
def result_not_durable() -> list[Swap]:
    write = Settling._write_result

    def hasty(self: Settling, attempt: Attempt, verdict: Conclusion, *, durable: bool) -> None:
        write(self, attempt, verdict, durable=False)

    return [(Settling, "_write_result", hasty)]


class _Hasty:
    """A file system on which nobody waits for what was written."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fs, name)

    def flush(self) -> None:
        pass


@moves.add("result before commit", "Results that could wait for the disk together do not wait before their commits.")
def results_not_flushed() -> list[Swap]:
    publish = Settling._publish

    def hasty(self: Settling, judged: list[Judged]) -> list[Judged]:
        store = self._store
        self._store = copy.copy(store)
        self._store.fs = _Hasty(store.fs)
        try:
            return publish(self, judged)
        finally:
            self._store = store

    return [(Settling, "_publish", hasty)]


@moves.add("the source name is the permission", "A worker whose claim was taken away commits by writing the file.")
def no_fencing() -> list[Swap]:
    forget = Settling._forget

    def commit_anyway(self: Settling, attempt: Attempt) -> None:
        with contextlib.suppress(OSError):
            target = layout.join(layout.COMPLETED, attempt.name.ended(attempt.worker).encode())
            self._store.fs.write(target, b"{}", durable=True)
        forget(self, attempt)

    return [(Settling, "_forget", commit_anyway)]


@moves.add("no name twice", "A task goes back under the attempt number that it had.")
def attempt_number_reused() -> list[Swap]:
    again = TaskName.again

    def same(self: TaskName, **charged: int) -> TaskName:
        return replace(again(self, **charged), attempt=self.attempt)

    return [(TaskName, "again", same)]


@moves.add("after an error, look", "After an error the rename counts as done when the source is gone.")
def source_gone_is_done() -> list[Swap]:
    judge = mover._judge

    def hopeful(fs: FileSystem, src: str, dst: str, error: OSError) -> Moved:
        moved = judge(fs, src, dst, error)
        return DONE if moved.fate is Fate.LOST else moved

    return [(mover, "_judge", hopeful)]


@moves.add("after an error, look", "The error alone decides: ENOENT means lost, anything else not done.")
def error_alone_decides() -> list[Swap]:
    judge = mover._judge

    def blind(fs: FileSystem, src: str, dst: str, error: OSError) -> Moved:
        moved = judge(fs, src, dst, error)
        if moved.fate in (Fate.NO_DIRECTORY, Fate.REFUSED):
            return moved  # lanes are made when somebody finds them missing: else nothing would ever be admitted
        return Moved(Fate.LOST if isinstance(error, FileNotFoundError) else Fate.UNKNOWN, error)

    return [(mover, "_judge", blind), _UNGUARDED]


@moves.add("discover by listing", "After an error the names are looked up, and the directories not listed.")
def look_up_instead_of_listing() -> list[Swap]:
    def there(fs: FileSystem, path: str) -> bool:
        fs.stat(path.rpartition("/")[0])
        try:
            fs.stat(path)
        except FileNotFoundError:
            return False
        return True

    return [(mover, "listed", there), _UNGUARDED]


@moves.add("destinations of one's own", "All workers claim into one directory.")
def shared_claim_directory() -> list[Swap]:
    register = Worker.register

    def join(self: Worker, left: Collection[str] = ()) -> None:
        make_directory(self.store.fs, "claimed/shared")
        register(self, left)

    def list_shared(self: Claims) -> set[str]:
        return set(self._store.fs.list("claimed/shared"))

    def shared(worker: str, name: str) -> str:
        return f"{layout.CLAIMED}/shared/{name}"

    return [(layout, "claimed", shared), (Worker, "register", join), (Claims, "list", list_shared)]


@moves.add("destinations of one's own", "Who hands an attempt back does not put its own name to it.")
def returned_without_mover() -> list[Swap]:
    encode = TaskName.encode_returned
    return [(TaskName, "encode_returned", lambda self, _: encode(self, "somebody"))]


@moves.add("written once", "Every beat replaces the file of the one before.")
def heartbeat_replaced() -> list[Swap]:
    def publish(store: Store, beat: Heartbeat, before: Sequence[BeatName]) -> heartbeats.Published:
        name = BeatName(beat.node, 0)
        store.publish(layout.join(layout.HEARTBEATS, name.encode()), codec.dump(beat), durable=False)
        return heartbeats.Published(name)

    return [(heartbeats, "publish", publish)]


@moves.add("written once", "Every snapshot replaces the one before.")
def snapshot_replaced() -> list[Swap]:
    publish = snapshots.publish

    def same(store: Store, name: SnapshotName, snapshot: Snapshot) -> None:
        publish(store, SnapshotName(name.epoch, 0), snapshot)

    return [(snapshots, "publish", same)]


@moves.add("discover by listing", "A worker takes a claim whose file it cannot open just now for gone.")
def unopened_claim_is_gone() -> list[Swap]:
    adopt, start = Worker._adopt, Worker._start
    gone: set[tuple[str, str]] = set()

    def start_or_forget(self: Worker, name: TaskName, time: Slice) -> bool:
        started = start(self, name, time)
        if not started:
            gone.add((self.store.writer, name.encode()))
        return started

    def adopt_others(self: Worker, late: set[str], time: Slice) -> int:
        return adopt(self, {name for name in late if (self.store.writer, name) not in gone}, time)

    return [(Worker, "_start", start_or_forget), (Worker, "_adopt", adopt_others)]


# What runs is stopped for nothing, and its claim goes back when it shows again: that costs an attempt and no task.
@moves.add("discover by listing", "A listing of the claims that fails is taken for an empty one.", harmless=True)
def failed_listing_is_empty() -> list[Swap]:
    claims = Claims.list

    def hopeful(self: Claims) -> set[str]:
        try:
            return claims(self)
        except ShutOut:
            raise
        except OSError:
            return set()

    return [(Claims, "list", hopeful)]


@moves.add("discover by listing", "A directory that is not found was removed: an unmounted share shuts out.")
def unmounted_is_shut_out() -> list[Swap]:
    def believe(self: Store, above: str) -> None:
        raise ShutOut(f"{above}/{self.writer} was not found")

    return [(Store, "check_kept", believe)]


@moves.add("discover by listing", "What is not found is gone: an unmounted share is a spool in which nothing stands.")
def not_found_is_gone() -> list[Swap]:
    def believe(fs: FileSystem, path: str) -> bool:
        try:
            return existence.listed(fs, path)
        except FileNotFoundError:
            return False

    return [(module, "stands", believe) for module in (existence, mover, reaping)]


@moves.add("the door is shut", "A worker that was taken for dead makes its directories anew and goes on.")
def claim_directory_made_again() -> list[Swap]:
    stage = Store.stage

    def go_on(self: Claims) -> set[str]:
        try:
            return set(self._store.fs.list(self._directory))
        except FileNotFoundError:
            make_directory(self._store.fs, self._directory)
            return set()

    def stage_anyway(self: Store, data: bytes, *, durable: bool) -> str:
        try:
            return stage(self, data, durable=durable)
        except ShutOut:
            self.open_tmp()
            return stage(self, data, durable=durable)

    return [(Claims, "list", go_on), (Store, "stage", stage_anyway)]


@moves.add("one token", "What shows as a claim after its commit is run: told after the commits, and nobody knows it.")
def adoption_after_commit() -> list[Swap]:
    adopt, claims = Worker._adopt, Claims.list
    listed: dict[str, set[str]] = {}

    def remember(self: Claims) -> set[str]:
        listed[self._store.writer] = claims(self)
        return listed[self._store.writer]

    def afterwards(self: Worker, late: set[str], time: Slice) -> int:
        found = listed.pop(self.store.writer, set())
        return adopt(self, found - {a.name.encode() for a in self.running}, time)

    at_once = (Resuming, "_make_sure", lambda self, name: name)  # whose rename would find nothing
    return [
        (Claims, "list", remember),
        (Worker, "_adopt", afterwards),
        (Claims, "is_spent", lambda *_: False),
        at_once,
    ]


@moves.add("unknown may still happen", "Claims that turn up late are not adopted.")
def late_claims_left() -> list[Swap]:
    return [(Worker, "_adopt", lambda *_: 0)]


@moves.add("self-fence", "What a worker runs has no lease: it goes on when the worker is cut off.")
def no_self_fence() -> list[Swap]:
    beat = Worker._beat

    def for_ever(self: Worker, now: float, *, within: bool = False) -> None:
        beat(self, now, within=within)
        self.runner.extend(math.inf)

    return [(Worker, "_beat", for_ever)]


@moves.add("requests are carried out", "A worker does not stop a task that was cancelled while it runs.")
def cancel_ignored_by_worker() -> list[Swap]:
    stop = Worker._stop

    def deaf(self: Worker, attempt: Attempt, why: Outcome | None) -> None:
        if why is not None and why.status is not Status.CANCELLED:
            stop(self, attempt, why)

    return [(Worker, "_stop", deaf)]


@moves.add("elsewhere", "A worker that lacks a program charges the task without a look at the others.")
def charged_where_it_cannot_run() -> list[Swap]:
    return [(Company, "untried", lambda *_: set())]


@moves.add("elsewhere", "A task that is left to another worker is charged for that.")
def passed_on_at_its_charge() -> list[Swap]:
    return [(matching, "passed_on", lambda outcome, others: replace(outcome, final=False))]
