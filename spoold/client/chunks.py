"""Chunks: the calls of a `map`, so many of them to a task, and their results one by one again.

Law: results come in the order of the calls, and none comes after an error. After an error, or once the caller stops
asking, the tasks that are left are cancelled.

Touches: threads, the clock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any

import orjson

from spoold.client.arguments import check_arguments
from spoold.client.failures import TaskFailed
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile


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
