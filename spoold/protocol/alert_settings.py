"""[alerts] of spool.toml: when people are told of something, and by which task.

Law: a rule that is off by default is None or 0.
"""

from __future__ import annotations

from pydantic import Field

from spoold.protocol.fields import Real, Seconds, Strict, Whole, Word


class NotifySettings(Strict):
    """The task that each alert becomes; its input is the alert."""

    type: Word


class AlertSettings(Strict):
    """When people are told: fractions from 0 to 1, numbers of tasks and nodes, and seconds. None or 0: never.

    failure_rate: of the attempts that ended last; memory: of a node's in use; queue: tasks that wait or are ready;
    budget: spent of one; stuck_s: how long nothing starts while a worker has nothing to do; dead_s: how long the
    alert of a dead node stands; followers: fewer workers of other hosts and standbys; after_s: how long memory, queue
    or followers are out of bounds before that is an alert.
    """

    failure_rate: Real | None = Field(default=None, gt=0, le=1)
    memory: Real | None = Field(default=None, gt=0, le=1)
    queue: Whole | None = Field(default=None, ge=1, le=1_000_000_000)
    budget: Real | None = Field(default=0.8, gt=0, le=1)
    stuck_s: Seconds = 600
    dead_s: Seconds = 600
    followers: Whole = Field(default=0, ge=0, le=1_000_000)
    limits: bool = True
    breakers: bool = True
    disk: bool = True
    after_s: Seconds = 10
    task: NotifySettings | None = None

    @property
    def kind(self) -> str | None:
        """The type of the tasks that alerts become; None where they become none."""
        return self.task.type if self.task is not None else None
