"""completed/, failed/ or archive/ → waiting/: an ended task waits again, as its next attempt.

Law: the next attempt has a fresh budget of retries and a new ORDER, so no answer to an earlier question counts.
"""

from __future__ import annotations

from spoold.master.desk import Desk
from spoold.protocol.names import COUNT_MAX, EndedName, TaskName, key
from spoold.protocol.task import Task
from spoold.rules.attempts.policy import rank
from spoold.rules.scheduling.spending import needs_reading


def revive(desk: Desk, path: str, ended: EndedName, task: Task, event: str) -> bool:
    """Move the token, and tell those that wait for it; True when it waits. Errors: OSError."""
    name = TaskName(
        rank=rank(task, desk.store.settings),
        order=desk.orders.encode(desk.next_micros()),
        id=ended.id,
        attempt=min(ended.attempt + 1, COUNT_MAX),
        conditional=needs_reading(task, desk.store.settings),
    )
    if not desk.to_waiting(path, name, task.lane.encode(), task, event):
        return False
    desk.view.archived.discard(key(ended.id))
    desk.backlog.parent_changed(key(ended.id), desk.step.now)
    return True
