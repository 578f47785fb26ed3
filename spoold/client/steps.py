"""The steps of the task in which this process runs: save how far it has come, and go on from there.

Law: a step is durable, where the spool is, before the call returns. What does not come back the same is refused.

Touches: the environment.
"""

from __future__ import annotations

import os
from typing import Any

from spoold.client.connection import Connection
from spoold.client.inside import task_of
from spoold.protocol import codec
from spoold.protocol.errors import SpoolError
from spoold.protocol.step import BYTES_MAX, Step, StepName, directory, sum_of
from spoold.store import steps


class Steps:
    """The steps of one task over one connection. Thread-safe."""

    def __init__(self, spool: Connection) -> None:
        """Errors: SpoolError outside of a task of this spool."""
        self._spool = spool
        task, attempt = task_of(spool.directory), os.environ.get("SPOOL_ATTEMPT", "")
        if task is None or not attempt.isdecimal():
            raise SpoolError("this is no task of this spool: there is nothing to go on from. Use it within a task.")
        self._task, self._attempt = task, int(attempt)

    def save(self, value: Any) -> int:
        """Save a step, any JSON value, and return its number. Errors: SpoolError for no JSON, or too much of it;
        BadFile for a step that leaves no number for another; Unavailable.
        """
        step = self._checked(value)
        fs = self._spool.store.fs
        with self._spool.reaching(), self._spool.numbers.giving:
            there = steps.STEPS.names(fs, self._task)
            number = self._spool.numbers.above(directory(self._task), there)
            name = StepName(self._attempt, number, self._spool.store.writer)
            self._spool.change(lambda by: steps.publish_step(self._spool.store, self._task, name, step))
        return number

    def last(self) -> tuple[int, Any] | None:
        """Return the number and value of the last whole step, of this attempt or an earlier one; None for none.

        Errors: Unavailable.
        """
        with self._spool.reaching():
            found = steps.last_step(self._spool.store.fs, self._task, self._attempt)
        return None if found is None else (found[0].number, found[1].value)

    def _checked(self, value: Any) -> dict[str, object]:
        try:
            step = {"sum": sum_of(value), "value": value, "at": self._spool.store.stamp()}
            data = codec.dump(step)
            back = codec.load_model(Step, data, "the step")
        except (TypeError, ValueError, RecursionError) as error:
            raise SpoolError(f"a step has to be a value of JSON: {error}.") from error
        if not back.whole or back.value != value:
            raise SpoolError(
                "a step has to be JSON that comes back the same: lists and no tuples, keys that are texts, no NaN."
            )
        if len(data) > BYTES_MAX:
            raise SpoolError(
                f"a step has at most {BYTES_MAX >> 20} MiB, and this one {len(data):,} bytes: save a path to it."
            )
        return step
