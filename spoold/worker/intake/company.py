"""The other workers, when this one has a task that it cannot run: which of them could, and have not tried?

Law: only listings count. Each is made at most once for all tasks that end together, and only for such a task.
"""

from __future__ import annotations

from collections.abc import Collection

from spoold.protocol import layout
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import EndedName, is_node, key, parse_ended
from spoold.protocol.result import Code
from spoold.rules.attempts import elsewhere
from spoold.rules.attempts.figures import figures_in
from spoold.store import beats
from spoold.store.records import read_record
from spoold.store.store import Store
from spoold.worker.attempts.attempt import Attempt


class Company:
    """One worker's view of the others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claiming: list[str] | None = None
        self._beats: dict[str, Heartbeat] = {}
        self._results: list[EndedName] | None = None

    def forget(self) -> None:
        """Forget what was seen so far: it is old."""
        self._claiming = self._results = None

    def untried(self, attempt: Attempt) -> set[str]:
        """Return the others that could run this task and have not tried. Errors: OSError."""
        if self._claiming is None:
            # Beats first: a worker that joins between the two looks then shows by its directory alone, and counts.
            self._beats = beats.read_all(self._store.fs)
            self._claiming = [node for node in self._store.fs.list(layout.CLAIMED) if is_node(node)]
        others = elsewhere.able(self._store.writer, attempt.lane, self._claiming, self._beats)
        if not others or elsewhere.surely_untried(attempt.name, others):
            return others
        return others - self._tried(attempt, others)

    def _tried(self, attempt: Attempt, others: Collection[str]) -> set[str]:
        if self._results is None:
            found = map(parse_ended, self._store.fs.list(layout.RESULTS))
            self._results = [ended for ended in found if ended is not None]
        mine, before = key(attempt.name.id), attempt.name.attempt
        told = [e for e in self._results if key(e.id) == mine and e.attempt < before and e.decider in others]
        return {ended.decider for ended in told if self._could_not(ended)}

    def _could_not(self, ended: EndedName) -> bool:
        found = read_record(self._store.fs, layout.join(layout.RESULTS, ended.encode()))
        if found is None or found.error is None:
            return False
        not_here = found.error.code is Code.TRY_LATER and figures_in(found.output).not_here is not None
        return not_here or found.error.code is Code.SPAWN_FAILED
