"""One claimed attempt on this worker, from the claim to the commit.

Law: nothing of a fenced attempt may be committed. An attempt is settled only when nothing of it runs any more and its
claim has one name, or is gone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol import layout
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName, key
from spoold.protocol.request import Request, Verb
from spoold.protocol.task import Task
from spoold.protocol.told import Message
from spoold.rules.attempts.outcome import Outcome
from spoold.runner.job import Ending
from spoold.worker.attempts.preparation import Preparation
from spoold.worker.attempts.redacting import NOTHING, Redacting

log = logging.getLogger("spoold")


@dataclass(slots=True)
class Attempt:
    """The worker's knowledge of an attempt. started_at and deadline in seconds since 1970.

    preparing: what it has to get before it starts; stopping: why it is being stopped, which then is its outcome;
    ending: how its processes ended; decided: the outcome when it never ran; judged: its outcome in the end, once that
    is known. fenced: the claim is gone, so nothing of this attempt may be committed. frozen_at: since when (s since
    1970) it is frozen, frozen_s: how long it was frozen before; approval: the answer that let it start; seen: the
    SHA-256 of its task's file, which an approve may name; asked:
    whether it asks people something, questions: what it asked, with the answers, once it is over; next: the name that
    its claim is getting; ordered_in: the number of the lease in which that order was given. lent: its slot is lent,
    since it waits for other tasks; back: it wants back what it lent. redacting: the masks of what it says; fetched:
    how many bytes of its output were masked, unlogged: those of them that are not in its log yet, logged: how many
    are. reported: its last progress report that was an object. words: messages of people for its agent, by name;
    given: the names of those that its agent has been given. notes: warnings about it now; told: warnings already
    logged on stderr.
    """

    name: TaskName
    worker: str
    task: Task
    lane: Lane
    started_at: float
    deadline: float = math.inf
    deadline_cut: bool = False
    preparing: Preparation | None = None
    stopping: Outcome | None = None
    ending: Ending | None = None
    decided: Outcome | None = None
    judged: Outcome | None = None
    fenced: bool = False
    lent: bool = False
    back: bool = False
    frozen_at: float | None = None
    frozen_s: float = 0.0
    approval: dict[str, Any] | None = None
    seen: str = ""
    asked: bool = False
    questions: list[dict[str, Any]] | None = None
    next: TaskName | None = None
    ordered_in: int = 0
    redacting: Redacting = NOTHING
    reported: dict[str, Any] | None = None
    words: dict[str, Message] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    fetched: int = 0
    unlogged: bytes = b""
    logged: int = 0
    log_complete: bool = False
    result_written: bool = False
    notes: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    # The name of its job, `ID.ATTEMPT`; its file while it runs; the file of its task and of its result after the end.
    key: str = field(init=False)
    file: str = field(init=False)
    ended: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = f"{self.name.id}.{self.name.attempt}"
        self.file = self.name.encode()
        self.ended = self.name.ended(self.worker).encode()

    def warn(self, note: str) -> None:
        """Note the obstacle to its commit, and log it here once: on a full share no beat can report it."""
        self.notes = [note]
        if note not in self.told:
            self.told.add(note)
            log.warning("%s; it is tried again", note)

    def hear(self, requests: Iterable[Request]) -> None:
        """Notice that the attempt asks people something."""
        self.asked = self.asked or any(
            request.verb is Verb.ASK and key(request.target) == key(self.name.id) for request in requests
        )

    @property
    def kind(self) -> str:
        """The type as which it runs: that of the lane from which it was claimed."""
        return self.lane.type

    @property
    def files(self) -> set[str]:
        """The names that its token may have."""
        return {self.file} if self.next is None else {self.file, self.next.encode()}

    def give_up(self, why: Outcome) -> None:
        """End it while it is being prepared."""
        self.preparing, self.decided = None, self.decided or why

    def resume(self) -> None:
        """Record that its claim has its next name."""
        assert self.next is not None
        self.name, self.next = self.next, None
        self.file, self.notes = self.name.encode(), []

    @property
    def claim(self) -> str:
        """The path of its token while this worker owns it."""
        return layout.claimed(self.worker, self.file)

    @property
    def result(self) -> str:
        """The path of its result."""
        return layout.join(layout.RESULTS, self.ended)

    @property
    def log(self) -> str:
        """The path of its log."""
        return layout.join(layout.LOGS, self.name.ended(self.worker).log())

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more, so that it can be settled."""
        return self.ending is not None or self.decided is not None

    @property
    def settleable(self) -> bool:
        """Whether it is over, and its claim has one name or is gone."""
        return self.over and (self.next is None or self.fenced)
