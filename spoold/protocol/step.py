"""How far a task has come: `steps/ID/NUMBER.ATTEMPT.NODE.json`, steps from which a later attempt may go on.

Of the steps of a task the one of the highest attempt counts, and of that attempt the one with the highest number,
unless its content does not fit its sum: then the one before it.

Law: a step is never replaced. What does not fit its sum was never a step.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from spoold.protocol import layout
from spoold.protocol.names import NODE, key, number, sure

BYTES_MAX, KEPT = 1 << 20, 3
_STEP = re.compile(rf"{number(9)}\.{number(9)}\.({NODE})\.json")


@dataclass(frozen=True, slots=True, order=True)
class StepName:
    """`NUMBER.ATTEMPT.NODE.json` in the directory of a task. Sorts by attempt, number, and who made it."""

    attempt: int
    number: int
    node: str

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        return sure(self, f"{self.number}.{self.attempt}.{self.node}.json", parse_step)


def parse_step(name: str) -> StepName | None:
    """A name in the directory of a task's steps, or None."""
    match = _STEP.fullmatch(name)
    return StepName(int(match[2]), int(match[1]), match[3]) if match else None


def directory(task_id: str) -> str:
    """Where the steps of a task are."""
    return layout.join(layout.STEPS, key(task_id))


class Step(BaseModel):
    """One step: any JSON value, and its sum. at (RFC 3339): for people."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    sum: str
    value: Any = None
    at: str = ""

    @property
    def whole(self) -> bool:
        """Whether the content is what its author wrote."""
        return self.sum == sum_of(self.value)


def sum_of(value: Any) -> str:
    """BLAKE2b (16 bytes) of a value as JSON: keys sorted, no spaces, every character beyond ASCII escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
