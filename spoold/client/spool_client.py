"""SpoolClient: one object for one spool, everything a program can do with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spoold.client import arguments, pauses, submission
from spoold.client.reading import Reading
from spoold.protocol.amount import amount
from spoold.protocol.errors import WaitTimeout
from spoold.protocol.lifecycle import State
from spoold.protocol.request import EVERYTHING, Verb, kind_target

# What only some methods need is imported by them, since to import all of it takes longer than a `spool submit`.
if TYPE_CHECKING:
    from datetime import datetime

    from spoold.client.info import TaskInfo
    from spoold.client.logs import Piece
    from spoold.protocol.result import Result
    from spoold.store.locate import Located


class SpoolClient(Reading):
    """An open spool: `with Spool("/mnt/spool") as spool: …`. Serves several threads, save in `close`.

    Every method that reaches the spool raises Unavailable when it cannot be reached, with what to do about it.
    """

    def submit(self, task: Mapping[str, Any] | None = None, /, **fields: Any) -> str:
        """Drop a task, given as a mapping, as fields, or both (fields win); returns its id at once.

        It has survived a power cut by then, if the spool's settings ask for that. Without an `id` one is made;
        with one, submitting the same task again changes nothing. Errors: BadFile, TypeError for what is no task.
        """
        return self.submit_from(submission.TASK, {**arguments.mapping_of(task, fields), **fields})

    def submit_from(self, file: str, task: Mapping[str, Any], *, stem: str = "") -> str:
        """As `submit`, for a task that came from a file, by whose name errors call it; a made id begins with stem."""
        micros, stamp = self.micros(), self.store.stamp()
        drop = submission.plain(task, self.store.basics, micros, stamp, file=file, stem=stem)
        if drop is None:
            drop = submission.one(task, self.store.settings, micros, stamp, file=file, stem=stem)
        self.publish([drop])
        return drop.ids[0]

    def submit_many(self, tasks: Iterable[Mapping[str, Any]], *, file: str = submission.TASKS) -> list[str]:
        """Drop many tasks as one file, all of which are admitted or none; returns their ids in order.

        More than `[drop] max_batch_bytes` of them become several files. Errors: BadFile that names the line, and
        then nothing was dropped.
        """
        drops = submission.many(tasks, self.store.settings, self.micros(), self.store.stamp(), file=file)
        if len(drops) > 1:
            self.micros(len(drops) - 1)  # the parts took the numbers after the first
        self.publish(drops)
        return [task_id for drop in drops for task_id in drop.ids]

    def locate(self, task_id: str) -> Located:
        """Where a task is, by id, name of its drop, or a beginning of one id only. Errors: NotFound."""
        from spoold.store import locate

        with self.reaching():
            return locate.locate(self.store, task_id)

    def locate_all(self, refs: str | Iterable[str]) -> list[Located]:
        """As `locate`, for many in one look; each once. Errors: NotFound for the first that is missing."""
        from spoold.store import locate

        wanted = [refs] if isinstance(refs, str) else list(dict.fromkeys(refs))
        with self.reaching():
            found = locate.locate_many(self.store, wanted)
            located = [found.get(ref) or locate.locate(self.store, ref) for ref in wanted]
        return list({one.path + str(one.line): one for one in located}.values())

    def _locate_exactly(self, refs: str | Iterable[str]) -> list[Located]:
        """As `locate_all`, but no beginnings: once job-1 is gone for good, job-10 is not meant. Errors: NotFound."""
        from spoold.client import selecting

        wanted = [refs] if isinstance(refs, str) else list(refs)
        with self.reaching():
            found, wrong = selecting.find(self.store, wanted, exactly=True)
        for error in wrong.values():
            raise error
        return found

    def state(self, task_id: str) -> State:
        """pending, waiting, ready, claimed, completed, failed or rejected. Errors: NotFound."""
        return self.locate(task_id).state

    def show(self, task_id: str) -> TaskInfo:
        """All that is known of a task. Errors: NotFound."""
        from spoold.client import info

        with self.reaching():
            return info.describe(self.store, task_id)

    def result(self, task_id: str) -> Result:
        """What a task ended with, well or not. Errors: NotFinished while it has not, NotFound."""
        from spoold.client import info
        from spoold.client.failures import NotFinished
        from spoold.store import locate

        with self.reaching():
            found = info.result_of(self.store, task_id)
            if found is None:
                raise NotFinished(info.not_ended(locate.locate(self.store, task_id)))
            return found

    def wait(
        self,
        ids: str | Iterable[str],
        timeout: float | None = None,
        *,
        progress: Callable[[dict[str, Result]], None] | None = None,
    ) -> dict[str, Result]:
        """Wait until all the tasks have ended; returns their results in the order of the ids.

        A rejected one counts as ended, with an error that says why; also where another task has the id that this
        client chose. timeout in seconds; progress is told of results as they come. A share that is away for a minute
        is borne with. Errors: NotFound for an unknown id, WaitTimeout (the tasks go on).
        """
        from spoold.client.waiting import Waiter

        wanted = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        clock = self.store.clock
        give_up_at = None if timeout is None else clock.monotonic() + timeout
        results: dict[str, Result] = {}
        nothing: dict[str, Result] = {}
        waiter = Waiter(self.store, wanted, self.dropped)
        checked = False
        while True:
            with self.reaching():
                came = waiter.pace.forgiving(waiter.poll, nothing)
                if waiter.pending and not checked:
                    checked = waiter.pace.forgiving(waiter.look_elsewhere, False)
                    came = {**came, **waiter.pace.forgiving(waiter.poll, nothing)}
            results.update(came)
            if came and progress is not None:
                progress(came)
            if not waiter.pending:
                return {task_id: results[task_id] for task_id in wanted if task_id in results}
            left_s = None if give_up_at is None else give_up_at - clock.monotonic()
            if left_s is not None and left_s <= 0:
                some = ", ".join(waiter.pending[:3]) + (" …" if len(waiter.pending) > 3 else "")
                open_ = len(waiter.pending)
                raise WaitTimeout(
                    f"{open_} of {amount(len(wanted), 'task')} {'has' if open_ == 1 else 'have'} "
                    f"not ended after {timeout:g} s: {some}"
                )
            time.sleep(min(waiter.pace.pause_s(), left_s) if left_s is not None else waiter.pace.pause_s())

    def refusal(self, task_id: str) -> Result | None:
        """Why what this client dropped last under this id was rejected; None when it was not.

        Waits until a leader has judged the drop, if its id was chosen: another task may have it. Errors: Unavailable.
        """
        from spoold.client.waiting import Waiter

        waiter = Waiter(self.store, [task_id], self.dropped)
        while True:
            with self.reaching():
                if not waiter.pace.forgiving(waiter.unjudged, {task_id}):
                    return waiter.refusals().get(task_id)
            time.sleep(waiter.pace.pause_s())

    def cancel(self, ids: str | Iterable[str], *, reason: str = "") -> list[str]:
        """Ask for tasks to be ended, running or not, by their whole ids; returns these.

        Errors: NotFound, SpoolError for a drop that was rejected; then none is asked for.
        """
        from spoold.client import asking

        found = self._locate_exactly(ids)
        asking.insist(found, asking.refuses_cancel)
        return self._post_each(Verb.CANCEL, found, reason)

    def retry(self, ids: str | Iterable[str], *, reason: str = "") -> list[str]:
        """Ask for failed tasks to be tried again with a fresh budget, by their whole ids; returns these.

        Errors: NotFound, SpoolError for a task that has not failed; then none is asked for.
        """
        from spoold.client import asking

        found = self._locate_exactly(ids)
        asking.insist(found, asking.refuses_retry)
        return self._post_each(Verb.RETRY, found, reason)

    def pause(
        self,
        kind: str | None = None,
        *,
        reason: str = "",
        until: datetime | None = None,
        for_s: float | None = None,
    ) -> datetime | None:
        """Start no more tasks of a type, or none at all; what runs goes on. It ends with a resume, or at a moment.

        until: the moment, with a zone; for_s: in so many seconds. Returns the moment, or None. Errors: BadName,
        SpoolError for a moment that is over.
        """
        target, end = kind_target(kind), pauses.end_of(until, for_s, self.pool_time)
        self.post(Verb.PAUSE, target, reason, until=end)
        return end

    def resume(self, kind: str | None = None, *, reason: str = "") -> None:
        """Take back a pause; without a type every pause, and a halt. Errors: BadName for what is no type."""
        self.post(Verb.RESUME, kind_target(kind), reason)

    def drain(self, worker: str | None = None, *, reason: str = "") -> list[str]:
        """Let a worker (by id, or by the name it was started with), or all, finish what they have and take no more.

        Returns the ids of those that were asked; of all, none is named. Errors: NotFound; SpoolError for a master.
        """
        return self._ask_workers(Verb.DRAIN, worker, reason)

    def undrain(self, worker: str | None = None, *, reason: str = "") -> list[str]:
        """Take back a drain. Errors: NotFound, SpoolError for a master."""
        return self._ask_workers(Verb.UNDRAIN, worker, reason)

    def halt(self, *, reason: str = "") -> None:
        """Stop at once: what runs is killed and handed back uncharged, nothing starts until `resume`."""
        self.post(Verb.HALT, EVERYTHING, reason)

    def gc(self) -> None:
        """Apply retention now: ended tasks go to the archive, what was archived for long is deleted."""
        self.post(Verb.GC, EVERYTHING, "")

    def logs(
        self,
        task_id: str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[bytes]:
        """What the task wrote to stdout and stderr: of one attempt, the last one if none is named.

        With follow, goes on until the task has ended, with later attempts too; `sleep` waits between two looks, and
        may raise to end it. Errors: NotFound.
        """
        for piece in self.log_pieces(task_id, follow=follow, attempt=attempt, sleep=sleep):
            yield piece.data

    def log_pieces(
        self,
        task_id: str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Piece]:
        """As `logs`, with the attempt and the worker that each piece is of."""
        from spoold.client import logs

        located = self.locate(task_id)
        if follow:
            yield from self.follow_logs([located], attempt=attempt, sleep=sleep)
            return
        with self.reaching():
            yield from logs.read_log(self.store, located.id, attempt)

    def follow_logs(
        self, tasks: Sequence[Located], *, attempt: int | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[Piece]:
        """What these tasks write, as it comes, from the named or the present attempt on, until all have ended."""
        from spoold.client import logs
        from spoold.client.waiting import Waiter

        waiter = Waiter(self.store, [one.id for one in tasks if not one.archived])
        waiter.look_in_archive()
        begin = {one.id: one.attempt if attempt is None else attempt for one in tasks}
        follower = logs.Follower(self.store, begin)

        def ended() -> bool:
            follower.end(waiter.poll())
            return not waiter.pending

        with self.reaching():
            yield from logs.follow(follower, ended, waiter.pace, sleep)

    def _post_each(self, verb: Verb, found: list[Located], reason: str) -> list[str]:
        for located in found:
            self.post(verb, located.id, reason)
        return [located.id for located in found]

    def _ask_workers(self, verb: Verb, worker: str | None, reason: str) -> list[str]:
        from spoold.client import asking

        if worker is None:
            self.post(verb, EVERYTHING, reason)
            return []
        with self.reaching():
            meant = asking.workers_meant(self.store.fs, worker)
        for node in meant:
            self.post(verb, node, reason)
        return meant
