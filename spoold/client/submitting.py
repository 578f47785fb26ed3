"""A program's tasks on their way into a spool: checked, then dropped.

Law: a call for several tasks checks all of them before it drops the first. Inside a task, what is submitted becomes
its child.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spoold.client import arguments, submission
from spoold.client.arguments import mappings
from spoold.client.connection import Connection


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
