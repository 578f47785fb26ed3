"""The progress of one batch: its tasks by state, the causes of its failures, and its cost so far.

Law: looks and never touches. A later look reads only the tasks and results that are new.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce

from spoold.client.estimates import time_left
from spoold.client.selecting import Words, nothing_fits, select
from spoold.client.waiting import read_result
from spoold.protocol.errors import SpoolError
from spoold.protocol.lifecycle import SHOWN, State
from spoold.protocol.names import key
from spoold.protocol.result import Result, Total
from spoold.rules.answers.selection import Selection
from spoold.rules.attempts.attempt_costs import plus, total_of
from spoold.store import drop_search, locate
from spoold.store.locate import Located
from spoold.store.store import Store

IDS_NAMED = 5
ENDED = (State.COMPLETED, State.FAILED, State.SKIPPED, State.REJECTED)


@dataclass(frozen=True, slots=True)
class Cause:
    """Tasks that failed for one cause: its code, the message of the first task, the count, the first few ids."""

    code: str
    message: str
    count: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """One batch. tasks: count by state; ended: completed, failed or rejected; causes: the most frequent first;
    spent: by all attempts of tasks that ended, None where none has. eta_s: in how many seconds all will have ended at
    the earliest, None if unknown; eta_unknown: the reason, in words.
    """

    batch: str
    tasks: dict[str, int]
    total: int
    ended: int
    causes: tuple[Cause, ...]
    spent: Total | None
    eta_s: float | None = None
    eta_unknown: str = ""


class Batch:
    """Watches one batch."""

    def __init__(self, store: Store, batch: str, *, archived: bool = False) -> None:
        """archived: count archived tasks, too."""
        self._store = store
        self._archived = archived
        self._selection = Selection(batches=(batch,))
        self._met = Words()
        self._results: dict[str, Result] = {}

    def look(self) -> Progress:
        """Return the progress now. Errors: NotFound where the batch has no task; OSError."""
        tasks = dict.fromkeys((state.value for state in SHOWN), 0)
        failed: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        spent: list[Total] = []
        kinds: list[tuple[Located, str]] = []
        for located in select(self._store, self._selection, archived=self._archived, met=self._met):
            kinds.append((located, self._met.admitted.get(key(located.id), ("", ""))[0]))
            tasks[located.state.value] += 1
            result = self._result(located)
            if result is not None:
                spent += filter(None, [total_of([result])])
            if located.state in (State.FAILED, State.REJECTED):
                code, message = self._cause(located, result)
                failed[code].append((message, located.id))
        total = sum(tasks.values())
        if not total:
            raise nothing_fits(self._selection, self._met, archived=self._archived)
        causes = [
            Cause(code, tasks_[0][0], len(tasks_), tuple(task_id for _, task_id in tasks_[:IDS_NAMED]))
            for code, tasks_ in failed.items()
        ]
        causes.sort(key=lambda cause: (-cause.count, cause.code))
        ended = sum(tasks[state.value] for state in ENDED)
        together = reduce(plus, spent) if spent else None
        left = time_left(self._store, kinds)
        return Progress(self._selection.batches[0], tasks, total, ended, tuple(causes), together, *left)

    def _result(self, located: Located) -> Result | None:
        """Return the result that counts; None where there is none, or it cannot be read."""
        if located.result is None:
            return None
        if located.path not in self._results:
            try:
                self._results[located.path] = read_result(self._store, located)
            except (SpoolError, OSError):
                return None
        return self._results[located.path]

    def _cause(self, located: Located, result: Result | None) -> tuple[str, str]:
        if located.state is State.REJECTED:
            problem = drop_search.problem_in(locate.reason_of(self._store, located))
            return "rejected", problem.told(located.id) if problem is not None else ""
        if result is None or result.error is None:
            return "unknown", "its result cannot be read"
        return str(result.error.cause or result.error.code), result.error.message
