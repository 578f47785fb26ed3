"""The content of a request, for people and the journal.

Law: of most requests only `until`, the end of a pause or a closed limit, decides anything. What is asked, answered
and told about a task is here, too, what a reservation locks, and the tasks of a request for many. Every field may be
missing, since a request is valid by its name.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import Stamp, Whole
from spoold.protocol.lock_patterns import PATTERNS_MAX, Pattern
from spoold.protocol.names import is_id

# The most tasks of one request: a leader reads and checks so many within one step. For more there are more requests.
TASKS_MAX = 10_000
# A task that runs again, and the attempt that had ended when a person asked for that.
Again = tuple[str, Annotated[int, Field(ge=1)]]


class RequestBody(BaseModel):
    """Who asked, when and why; until: when it ends by itself, or a question expires, None for never.

    ask, choices, attempt: of a question; attempt is of the running task that asks, None where its approval is asked
    for. order: of the token that it is about, '' for any. about: the UNIQUE of the question that is answered, '' for
    the task's approval. answer: None for the first choice, or true where there are no choices.
    seen: of an approve of a task's approval: the SHA-256 of the task's file as it was approved, '' for any file.
    redo: of a reject: the tasks that run again, those before others first; the first one gets the reason.
    tell: of a tell: the words for the agent of a task.
    write, read: what a reservation locks; its attempt is of the running task that asks, None where none does.
    tasks: the ids of the tasks that a request for many is for.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    by: str = ""
    at: str = ""
    reason: str = ""
    until: Stamp | None = None
    ask: str = ""
    choices: tuple[str, ...] = ()
    attempt: Whole | None = None
    order: str = ""
    about: str = ""
    answer: Any = None
    seen: str = ""
    redo: tuple[Again, ...] = ()
    tell: str = ""
    write: tuple[Pattern, ...] = ()
    read: tuple[Pattern, ...] = ()
    tasks: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _not_too_many(self) -> RequestBody:
        if (count := len(self.write) + len(self.read)) > PATTERNS_MAX:
            raise WrongValue(f"{count:,} patterns, and {PATTERNS_MAX} are the most", "lock a folder: end it with a /")
        return self

    @model_validator(mode="after")
    def _sent_back_in_one_round(self) -> RequestBody:
        if self.redo and not self.order:
            raise WrongValue("redo without an order would be done in each round", "name the order of the token")
        wrong = [task for task, _ in self.redo if not is_id(task)]
        if wrong:
            raise WrongValue(f"redo names {wrong[0]!r}, which is no id", "name tasks by their whole ids")
        return self

    @model_validator(mode="after")
    def _names_tasks(self) -> RequestBody:
        if len(self.tasks) > TASKS_MAX:
            raise WrongValue(f"it has {len(self.tasks):,}, and {TASKS_MAX:,} are the most", "make several requests")
        wrong = next((task for task in self.tasks if not is_id(task)), None)
        if wrong is not None:
            raise WrongValue(f"tasks names {wrong!r}, which is no id", "name tasks by their whole ids")
        return self

    @property
    def ends(self) -> str:
        """When it ends by itself, as text (RFC 3339); empty for never."""
        return self.until.isoformat().replace("+00:00", "Z") if self.until else ""

    @property
    def told(self) -> str:
        """Who asked and why, as the result of a cancelled task says it."""
        return f"asked for by {self.by or 'an unknown user'}" + (f": {self.reason}" if self.reason else "")
