"""completed/ and failed/ → archive/: what the leader polls stays small.

The result and the logs of a task go into the archive before its file does: whoever finds the task there finds them.
"""

from __future__ import annotations

from collections.abc import Callable

from spoold.master.clearing import clear_bucket
from spoold.master.desk import Desk
from spoold.protocol import layout
from spoold.protocol.glance import ended_key_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_ended, parse_log
from spoold.protocol.request import Verb
from spoold.rules import retention
from spoold.store import control
from spoold.store.archive import archive_record, archive_task, make_buckets
from spoold.store.mover import Fate

LOOK_EVERY_S = 1.0
# More than may stay by this part of it, and the next look is not waited for: quick work must not outrun us. Not at
# every step, since each round costs a listing of results/.
CROWDED = 0.1


class Retaining:
    """Retention, a bounded piece each step. Ages count from when this leader first saw a task ended."""

    def __init__(self) -> None:
        self._seen: dict[State, dict[str, float]] = {State.COMPLETED: {}, State.FAILED: {}}
        self._looked_at: float | None = None

    def step(self, desk: Desk) -> None:
        """Archive what is due; when somebody asked for it, all there is. Errors: OSError."""
        asked = [request for request in desk.view.requests if request.verb is Verb.GC]
        rested = self._looked_at is None or desk.now.monotonic - self._looked_at >= LOOK_EVERY_S
        settings = desk.store.settings.retention
        crowded = settings.keep * (1 + CROWDED)
        if not (asked or rested or max(len(desk.view.completed), len(desk.view.failed)) > crowded):
            return
        self._looked_at = desk.now.monotonic
        ages = {State.COMPLETED: settings.completed_s, State.FAILED: settings.failed_s}
        for state, names in ((State.COMPLETED, desk.view.completed), (State.FAILED, desk.view.failed)):
            seen = self._seen[state]
            for gone in [name for name in seen if name not in names]:
                del seen[gone]
            for name in names:
                seen.setdefault(name, desk.now.monotonic)
            max_age_s, keep = (0.0, 0) if asked else (ages[state], settings.keep)
            due = retention.due(seen, desk.now.monotonic, max_age_s, keep)
            if due:
                _archive(desk, state, [names[name] for name in due])
        if asked and not desk.view.completed and not desk.view.failed:
            for request in asked:
                for bucket in sorted(desk.store.fs.list(layout.ARCHIVE)):
                    clear_bucket(desk, layout.join(layout.ARCHIVE, bucket))
                control.remove(desk.store.fs, request)
                desk.busy = True


def _archive(desk: Desk, state: State, names: list[EndedName]) -> None:
    make_buckets(desk.store.fs, (name.id for name in names))
    ids = {key(name.id) for name in names}
    stuck = set()
    for file, found in _records(desk, layout.RESULTS, ids, parse_ended):
        moved = archive_record(desk.store, layout.join(layout.RESULTS, file), found, found.archived("result"))
        if not moved and moved.fate is not Fate.LOST:
            stuck.add(key(found.id))  # its task stays where it is, too
    for file, log in _records(desk, layout.LOGS, ids, parse_log):
        archive_record(desk.store, layout.join(layout.LOGS, file), log, file)
    for name in names:
        if key(name.id) in stuck:
            continue
        moved = archive_task(desk.store, state, name)
        if desk.went(moved, name.id):
            desk.view.archived.add(key(name.id), state)
            desk.view.where.pop(key(name.id), None)
            (desk.view.completed if state is State.COMPLETED else desk.view.failed).pop(name.encode(), None)
            desk.journal.note("ARCHIVED", name.id, name.attempt)


def _records(
    desk: Desk, directory: str, ids: set[str], parse: Callable[[str], EndedName | None]
) -> list[tuple[str, EndedName]]:
    """The results or logs of these tasks; earlier attempts left some under names that only a listing tells."""
    near = [name for name in desk.store.fs.list(directory) if ended_key_in(name) in ids]
    parsed = [(name, parse(name)) for name in sorted(near)]
    return [(name, found) for name, found in parsed if found is not None]
