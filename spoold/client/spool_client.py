"""SpoolClient: one object for one spool, everything a program can do with it.

Law: a call for several tasks or workers checks all of them before it drops or requests anything.
Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spoold.client import arguments, submission
from spoold.client.arguments import mappings
from spoold.client.connection import Connection
from spoold.client.deciding import Deciding
from spoold.client.pauses import Pausing
from spoold.client.reading import Reading
from spoold.protocol.amount import amount
from spoold.protocol.errors import WaitTimeout
from spoold.protocol.lifecycle import State
from spoold.protocol.request import EVERYTHING, Verb

if TYPE_CHECKING:
    from spoold.client.info import TaskInfo
    from spoold.client.logs import Piece
    from spoold.client.traces import Traces
    from spoold.client.view import View
    from spoold.protocol.result import Result
    from spoold.store.locate import Located


# A program's tasks on their way into a spool: checked, then dropped.


class Submitting(Connection):
    """The ways to submit tasks. `drafted` and `drafted_many` only check; `publish` drops what they return."""

    def submit(self, task: Mapping[str, Any] | None = None, /, **fields: Any) -> str:
        """Drop a task, given as a mapping, as fields, or both (fields win); returns its id at once.

        By then the task survives a power cut, if the spool's settings ask for it. Without an `id` one is made;
        with one, submitting the same task again changes nothing. Errors: BadFile, TypeError for a wrong argument.
        """
        return self.submit_from(submission.TASK, {**arguments.mapping_of(task, fields), **fields})

    def submit_from(self, file: str, task: Mapping[str, Any], *, stem: str = "") -> str:
        """Submit a task that came from a file; errors name that file. A generated id begins with stem."""
        drop = self.drafted(file, task, stem=stem)
        self.publish([drop])
        return drop.ids[0]

    def submit_many(self, tasks: Iterable[Mapping[str, Any]], *, file: str = submission.TASKS) -> list[str]:
        """Drop many tasks as one file; all are admitted or none. Returns their ids in order.

        Above `[drop] max_batch_bytes` they become several files. Errors: BadFile that names the line; then nothing
        was dropped.
        """
        drops = self.drafted_many(tasks, file=file)
        self.publish(drops)
        return [task_id for drop in drops for task_id in drop.ids]

    def drafted(self, file: str, task: Mapping[str, Any], *, stem: str = "") -> submission.Drop:
        """Return what `submit_from` would drop. Errors: BadFile."""
        from spoold.client.inside import born

        task = born(task, self.directory)
        micros, stamp = self.micros(), self.store.stamp()
        drop = submission.plain(task, self.store.basics, micros, stamp, file=file, stem=stem)
        if drop is None:
            drop = submission.one(task, self.store.settings, micros, stamp, file=file, stem=stem)
        return drop

    def drafted_many(
        self, tasks: Iterable[Mapping[str, Any]], *, file: str = submission.TASKS
    ) -> list[submission.Drop]:
        """Return what `submit_many` would drop. Errors: BadFile that names the line."""
        from spoold.client.inside import born

        children = (born(task, self.directory) for task in mappings(tasks))
        drops = submission.many(children, self.store.settings, self.micros(), self.store.stamp(), file=file)
        if len(drops) > 1:
            self.micros(len(drops) - 1)  # the parts took the numbers after the first
        return drops


class SpoolClient(Submitting, Reading, Deciding, Pausing):
    """An open spool: `with Spool("/mnt/spool") as spool: …`. Thread-safe, except `close`. Every method that reaches
    the spool raises Unavailable, with advice, when it cannot be reached."""

    def view(self) -> View:
        """Return a view that can be kept up to date, and answers from memory; it has read nothing yet."""
        from spoold.client.view import View
        from spoold.system.host import SystemHost

        return View(self.store, SystemHost(), self.reaching)

    def locate(self, task_id: str) -> Located:
        """Return where a task is, by its whole id or the name of its drop. Errors: NotFound."""
        from spoold.store import locate

        with self.reaching():
            return locate.locate(self.store, task_id)

    def complete(self, beginning: str) -> Located:
        """Return the only task whose id begins so, for a person, who sees the whole id then. Errors: NotFound."""
        from spoold.store import locate

        with self.reaching():
            return locate.complete(self.store, beginning)

    def locate_all(self, refs: str | Iterable[str]) -> list[Located]:
        """Locate many tasks in one look; each once. Errors: NotFound for the first that is missing."""
        from spoold.store import locate

        wanted = [refs] if isinstance(refs, str) else list(dict.fromkeys(refs))
        with self.reaching():
            found = locate.locate_many(self.store, wanted)
            located = [found.get(ref) or locate.locate(self.store, ref) for ref in wanted]
        return list({one.path + str(one.line): one for one in located}.values())

    def _locate_exactly(self, refs: str | Iterable[str]) -> list[Located]:
        """Locate tasks by their whole ids. Errors: NotFound."""
        from spoold.client import selecting

        wanted = [refs] if isinstance(refs, str) else list(refs)
        with self.reaching():
            found, wrong = selecting.find(self.store, wanted)
        for error in wrong.values():
            raise error
        return found

    def state(self, task_id: str) -> State:
        """Return pending, waiting, ready, claimed, completed, failed or rejected. Errors: NotFound."""
        return self.locate(task_id).state

    def show(self, task_id: str) -> TaskInfo:
        """Return everything that is known of a task. Errors: NotFound."""
        from spoold.client import info

        with self.reaching():
            return info.describe(self.store, task_id)

    def result(self, task_id: str) -> Result:
        """Return the result of a task, a success or not. Errors: NotFinished while it has none, NotFound."""
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

        A rejected task counts as ended, with an error that says why, also where another task has the id that this
        client chose. Inside a task, its slot is lent meanwhile. timeout: in seconds; progress: called with new
        results. Bears a share that is away for up to a minute. Errors: NotFound for an unknown id, WaitTimeout (the
        tasks go on).
        """
        from spoold.client.inside import check_wait, lending
        from spoold.client.waiting import Waiter

        wanted = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        check_wait(wanted, self.directory)
        clock = self.store.clock
        give_up_at = None if timeout is None else clock.monotonic() + timeout
        results: dict[str, Result] = {}
        nothing: dict[str, Result] = {}
        waiter = Waiter(self.store, wanted, self.dropped)
        checked = False
        with lending(clock.monotonic, time.sleep) as pause:
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
                pause(min(waiter.pace.pause_s(), left_s) if left_s is not None else waiter.pace.pause_s())

    def refusal(self, task_id: str) -> Result | None:
        """Return why this client's last drop with this id was rejected; None when it was not.

        If the caller chose the id, waits until a leader has judged the drop: another task may have the id.
        Errors: Unavailable.
        """
        from spoold.client.waiting import Waiter

        waiter = Waiter(self.store, [task_id], self.dropped)
        while True:
            with self.reaching():
                if not waiter.pace.forgiving(waiter.unjudged, {task_id}):
                    return waiter.refusals().get(task_id)
            time.sleep(waiter.pace.pause_s())

    def cancel(self, ids: str | Iterable[str], *, reason: str = "", tree: bool = False) -> list[str]:
        """Request that tasks end, running or not, by their whole ids; returns these.

        tree: also all that they submitted, and what that submitted; returns once all have ended. Errors: NotFound,
        SpoolError for a drop that was rejected; then nothing is requested. WaitTimeout.
        """
        from spoold.client import asking, families

        found = self._locate_exactly(ids)
        asking.insist(found, asking.refuses_cancel)
        if not tree:
            return self._post_each(Verb.CANCEL, found, reason)
        with self.reaching():
            return families.cancel_tree(self.store, found, lambda one: self.post(Verb.CANCEL, one, reason))

    def retry(self, ids: str | Iterable[str], *, reason: str = "") -> list[str]:
        """Request a retry of failed tasks with a fresh budget, by their whole ids; returns these.

        Errors: NotFound, SpoolError for a task that has not failed; then nothing is requested.
        """
        from spoold.client import asking

        found = self._locate_exactly(ids)
        asking.insist(found, asking.refuses_retry)
        return self._post_each(Verb.RETRY, found, reason)

    def traces(self, names: Sequence[str] = (), *, archived: bool = False) -> Traces:
        """Return the spans of these tasks and batches, or of all; archived: also those in the archive. Errors:
        NotFound.
        """
        from spoold.client import traces

        with self.reaching():
            return traces.traces_of(self.store, names, archived=archived)

    def drain(self, worker: str | None = None, *, reason: str = "") -> list[str]:
        """Let a worker (by id, or by the name it was started with), or all, finish their tasks and claim no more.

        Returns the ids of the workers; an empty list for all. Errors: NotFound; SpoolError for a master.
        """
        return self._ask_workers(Verb.DRAIN, worker, reason)

    def undrain(self, worker: str | None = None, *, reason: str = "") -> list[str]:
        """Take back a drain. Errors: NotFound, SpoolError for a master."""
        return self._ask_workers(Verb.UNDRAIN, worker, reason)

    def halt(self, *, reason: str = "") -> None:
        """Stop at once: running tasks are killed and handed back uncharged, and nothing starts until `resume`."""
        self.post(Verb.HALT, EVERYTHING, reason)

    def gc(self) -> None:
        """Apply retention now: ended tasks go to the archive, and old archived tasks are deleted."""
        self.post(Verb.GC, EVERYTHING, "")

    def logs(
        self,
        task_id: str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[bytes]:
        """Yield the task's stdout and stderr: of one attempt, by default the last.

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
        """Yield what `logs` yields, with the attempt and the worker of each piece."""
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
        """Yield these tasks' output as it comes, from the named or the present attempt on, until all have ended."""
        from spoold.client import logs
        from spoold.client.inside import lending
        from spoold.client.waiting import Waiter

        waiter = Waiter(self.store, [one.id for one in tasks if not one.archived])
        waiter.look_in_archive()
        begin = {one.id: one.attempt if attempt is None else attempt for one in tasks}
        follower = logs.Follower(self.store, begin)

        def ended() -> bool:
            follower.end(waiter.poll())
            return not waiter.pending

        with self.reaching(), lending(self.store.clock.monotonic, sleep) as pause:
            yield from logs.follow(follower, ended, waiter.pace, pause)

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
