"""Finds out of which shares tasks are, while they and others wait for turns: the batches of those that another leader
admitted; and where users take turns, the owners of the files of all.

Law: reads, and moves nothing. Where all that waits is one run of a batch it costs nothing. Else it reads at most
PER_STEP files in a step and READ_MOST in all, the youngest and the oldest tasks first; the others are one share.
"""

from __future__ import annotations

from collections import deque

from spoold.master.state.leader_state import Desk
from spoold.master.state.tree_view import waiting_place
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key_in
from spoold.rules.scheduling.fair_shares import UNREAD, runs, share_of
from spoold.system.errnos import concerns_one_file

# How often (s) tasks that are not read yet are looked for anew.
PER_STEP, READ_MOST, AGAIN_S = 64, 20_000, 5.0


class UnreadShares:
    """The search. runs: of tasks that are to be read, by age, see `fair_shares.runs`."""

    def __init__(self) -> None:
        self._runs: deque[list[str]] = deque()
        self._read = 0
        self._youngest = True

    def step(self, desk: Desk) -> None:
        """Read on. Errors: OSError."""
        turns = desk.backlog.turns
        if not turns.waiting[UNREAD]:
            self._runs.clear()
            return
        if not self._runs and desk.polling.take("shares", AGAIN_S, AGAIN_S):
            found = runs(entry.file for _, entry in desk.backlog.items() if entry.share == UNREAD)
            self._runs.extend(found if len(found) > 1 or turns.active else ())
        before = self._read
        while self._runs and self._read < min(before + PER_STEP, READ_MOST):
            desk.breathe()
            self._look(desk, self._runs.pop() if self._youngest else self._runs.popleft())
            self._youngest = not self._youngest

    def _look(self, desk: Desk, run: list[str]) -> None:
        """Read the ends of a run: where they are of one share, all between are. Else its halves are looked at."""
        first, last = self._share(desk, run[0]), self._share(desk, run[-1]) if len(run) > 1 else None
        between = run if first == last and first is not None else [run[0], run[-1]]
        for file in between:
            share = first if file == run[0] or between is run else last
            if share is not None:
                desk.learned.learn_share(key_in(file), share)
                desk.backlog.join(key_in(file), share)
        inner = run[1:-1]
        if between is not run and inner:
            half = len(inner) // 2
            self._runs.extend(part for part in (inner[:half], inner[half:]) if part)

    def _share(self, desk: Desk, file: str) -> str | None:
        """The share of a waiting task; None where it is not known just now, or waits no more. Errors: OSError."""
        entry = desk.backlog.get(key_in(file))
        if entry is None or entry.file != file:
            return None
        if entry.share != UNREAD:
            return entry.share
        self._read += 1
        path, settings = waiting_place(entry.lane, file).path, desk.backlog.turns.settings
        try:
            if settings.by == "owner":
                return share_of(settings, None, desk.store.fs.stat(path).owner)
            with desk.faults.reading("file", path, entry.name.id):
                task = desk.read_task(path)
        except BadFile:
            return None  # the node that moves it next fails it
        except OSError as error:
            if not concerns_one_file(error):
                raise
            return None
        return None if task is None else share_of(settings, task.batch, None)
