"""SpoolExecutor: concurrent.futures over a spool, for functions that the workers can import too.

Law: only the thread that takes a future out of the table finishes it, so that a result and a cancel that come
together do not both finish it.

Touches: threads, the clock.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from itertools import islice
from typing import Any, ParamSpec, TypeVar

import orjson

from spoold.client.read import attempt_logs
from spoold.client.spool.submission import check_arguments, target_of
from spoold.client.spool.waiting import TaskFailed, Waiter
from spoold.client.spool_client import SpoolClient
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, NotFound, SpoolError, WaitTimeout
from spoold.protocol.names import key
from spoold.protocol.result import Result, Status

P = ParamSpec("P")
T = TypeVar("T")
AFTER_AN_ERROR_S = 2.0
# A wait of at least so long (s) that was in vain is explained, if that takes no longer than this (s).
EXPLAINED_S = 1.0

_log = logging.getLogger(__name__)


class SpoolFuture(Future[T]):
    """The future of a task; `task_id` names it in the spool."""

    def __init__(
        self, task_id: str, cancel: Callable[[SpoolFuture[Any]], bool], why: Callable[[str], str] | None = None
    ) -> None:
        """why: says why the task of this id has not ended."""
        super().__init__()
        self.task_id = task_id
        self._cancel, self._why = cancel, why

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. timeout: in seconds. Errors: TaskFailed, CancelledError; WaitTimeout, a TimeoutError,
        which says why the task has not ended if it was waited for long enough (EXPLAINED_S).
        """
        try:
            return super().result(timeout)
        except TimeoutError as error:
            raise self._late(timeout, error) from None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As `result`, for the error of the task, None where it succeeded."""
        try:
            return super().exception(timeout)
        except TimeoutError as error:
            raise self._late(timeout, error) from None

    def _late(self, timeout: float | None, error: TimeoutError) -> TimeoutError:
        if timeout is None or isinstance(error, WaitTimeout):
            return error
        why = self._why(self.task_id) if self._why is not None and timeout >= EXPLAINED_S else ""
        why = why or f"`spool explain {self.task_id}` says why"
        return WaitTimeout(f"task {self.task_id} has not ended after {max(0.0, timeout):g} s: {why}")

    def cancel(self) -> bool:
        """Cancel the task wherever it is, running or not. False if it has ended."""
        return self._cancel(self) or self.cancelled()

    def mark_cancelled(self) -> None:
        """Finish as cancelled; only for the thread that took the future out of the executor's table."""
        super().cancel()
        self.set_running_or_notify_cancel()


_OF_EACH_CALL = {"id", "python", "args", "kwargs", "calls", "command"}


class SpoolExecutor(Executor):
    """Runs functions on the workers of a spool: `with SpoolExecutor("/mnt/spool") as pool: pool.map(f, xs)`.

    Functions are found by name, so they must be in a module that the workers may import (`python` in their
    configuration). Arguments and results are JSON. Other keywords are fields of every task: type, timeout, requires …
    A future whose task failed raises TaskFailed. The tasks outlive this program, unless they are cancelled.
    """

    def __init__(self, spool: SpoolClient | str | os.PathLike[str] | None = None, **fields: Any) -> None:
        """Open the spool, or use an open one, which stays open at shutdown.

        Errors: those of Spool; TypeError for a field that each call sets itself.
        """
        if own := sorted(_OF_EACH_CALL & fields.keys()):
            raise TypeError(f"{', '.join(own)}: each call has its own, so it cannot be said for all of them")
        self._spool = spool if isinstance(spool, SpoolClient) else SpoolClient(spool)
        self._own = self._spool is not spool
        # An exception is an answer, as with any other executor. The death of a worker is not.
        self._fields = {"max_retries": 0, **fields}
        self._futures: dict[str, SpoolFuture[Any]] = {}
        self._new: list[str] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._shut = False
        self._thread: threading.Thread | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> SpoolFuture[T]:
        """Drop a call as a task. Errors: TypeError if it cannot travel, RuntimeError after shutdown, BadFile."""
        target = target_of(fn)
        check_arguments(args, kwargs)
        task = {**self._fields, "python": target, "args": list(args), "kwargs": kwargs}
        future: SpoolFuture[T]
        (future,) = self._begin(lambda: [self._spool.submit(task)])
        return future

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[T]:
        """Call the function with the items of each iterable; returns its results, in order, as they come.

        chunksize: calls per task. They run one after another, up to the first that fails. A task's `timeout` is for
        all of its calls, and another attempt makes all of them again. Nothing is dropped if one task cannot be.
        timeout: seconds from now until the last result. Errors: those of `submit`, ValueError for a chunksize below
        1, BadFile for a chunk that is too large; while the results are read, TaskFailed in the place of the first
        call that failed, and TimeoutError. Then the iterator cancels what has not ended.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout)
        calls = zip(*iterables, strict=False)
        made = drafts(target_of(fn), calls, chunksize, self._spool.store.settings.drop.max_bytes)
        tasks = [{**self._fields, **draft} for draft in made]
        return results(self._begin(lambda: self._spool.submit_many(tasks)), timeout)

    def _begin(self, drop: Callable[[], Sequence[str]]) -> list[SpoolFuture[Any]]:
        """The futures of the tasks that `drop` submits. Errors: RuntimeError after shutdown, and those of `drop`."""
        with self._lock:
            if self._shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            futures = [SpoolFuture[Any](task_id, self._cancel, self._why) for task_id in drop()]
            for future in futures:
                self._futures[key(future.task_id)] = future
                self._new.append(future.task_id)
            if self._thread is None and futures:
                # A daemon: a program that has gone on without its results can end without them.
                self._thread = threading.Thread(target=self._watch, name="spool-executor", daemon=True)
                self._thread.start()
        self._wake.set()
        return futures

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. cancel_futures cancels calls that have not ended; wait waits for the rest."""
        with self._lock:
            self._shut = True
            futures = list(self._futures.values())
        if cancel_futures:
            for future in futures:
                future.cancel()
        self._wake.set()
        if self._thread is not None and wait:
            self._thread.join()
        if self._own and (wait or self._thread is None):
            self._spool.close()

    def _cancel(self, future: SpoolFuture[Any]) -> bool:
        if self._take(future.task_id) is None:
            return False
        try:
            self._spool.cancel(future.task_id, reason="the future was cancelled")
        except NotFound:
            _log.debug("task %s is gone already", future.task_id)
        finally:
            future.mark_cancelled()
        return True

    def _why(self, task_id: str) -> str:
        """Why a task has not ended, '' where that is not known at once: whether a node lives may take a while."""
        from spoold.client.read.explanation import explain
        from spoold.system.host import SystemHost

        left_s = EXPLAINED_S

        def sleep(seconds: float) -> None:
            nonlocal left_s
            left_s -= seconds
            if left_s < 0:
                raise WaitTimeout("")
            time.sleep(seconds)

        try:
            return explain(self._spool.store, SystemHost(), self._spool.store.clock, task_id, sleep=sleep).verdict
        except (OSError, SpoolError):
            return ""

    def _take(self, task_id: str) -> SpoolFuture[Any] | None:
        """Take a future out of the table; the thread that gets it finishes it."""
        with self._lock:
            return self._futures.pop(key(task_id), None)

    def _watch(self) -> None:
        """Run the thread: pass results to futures, until there are none and no new ones can come."""
        waiter = Waiter(self._spool.store)
        while True:
            with self._lock:
                new, self._new = self._new, []
                if self._shut and not self._futures:
                    return
                idle = not self._futures
            waiter.add(new)
            pause_s = None if idle else waiter.pace.pause_s()
            try:
                for task_id, result in waiter.poll().items():
                    self._finish(task_id, result)
            except (OSError, SpoolError) as error:
                # The share may be away for a while; the tasks are still there.
                _log.warning("results cannot be read just now: %s", error)
                pause_s = AFTER_AN_ERROR_S
            self._wake.wait(pause_s)
            self._wake.clear()

    def _finish(self, task_id: str, result: Result) -> None:
        future = self._take(task_id)
        if future is None:
            return
        if result.status is Status.CANCELLED:
            future.mark_cancelled()
        elif future.set_running_or_notify_cancel():
            if result.status is Status.SUCCESS:
                future.set_result(result.output)
            else:
                future.set_exception(TaskFailed(result, attempt_logs.tail(self._spool.store, task_id)))


# Chunks: the calls of a `map`, so many of them to a task, and their results one by one again.


def drafts(target: str, calls: Iterable[Sequence[Any]], size: int, max_bytes: int) -> list[dict[str, Any]]:
    """The tasks that make these calls of "module:function", `size` calls each; the last one may have fewer.

    max_bytes: of one task. Errors: TypeError for what cannot travel, BadFile for a chunk that is too large.
    """
    left = iter(calls)
    made: list[dict[str, Any]] = []
    while chunk := [list(args) for args in islice(left, size)]:
        for args in chunk:
            check_arguments(args, {})
        length = len(orjson.dumps(chunk))
        if length > max_bytes:
            problem = (
                f"has {amount(length, 'byte')} of arguments for {amount(len(chunk), 'call')}, over {max_bytes:,}."
            )
            mend = "use a smaller chunksize, pass paths to data, or raise [drop] max_bytes in spool.toml."
            raise BadFile(f"chunk {len(made) + 1}", "calls", problem, mend)
        made.append({"python": target, "calls": chunk})
    return made


def results(futures: Sequence[Future[list[Any]]], timeout_s: float | None) -> Iterator[Any]:
    """What each call returned, in order. After an error, or once the caller stops asking, the rest is cancelled.

    timeout_s: from now on, for all of them together. Errors: TaskFailed in the place of the first call that failed,
    TimeoutError, CancelledError.
    """
    return _each(deque(futures), None if timeout_s is None else time.monotonic() + timeout_s)


def _each(futures: deque[Future[list[Any]]], until: float | None) -> Iterator[Any]:
    try:
        while futures:
            try:
                values = futures[0].result(None if until is None else until - time.monotonic())
            except TaskFailed as failed:
                # A chunk that was killed cannot say what had returned; its output is an empty list, or none.
                before = failed.result.output
                yield from before if isinstance(before, list) else ()
                raise
            futures.popleft()  # what was handed out is not kept
            yield from values
    finally:
        for future in futures:
            future.cancel()
