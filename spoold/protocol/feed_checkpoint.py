"""How far the leader's feed of results has read, and what its subscribers made of that: `EPOCH-SEQ.feed.json`.

Law: state and coverage are in one file, so a leader that restores both counts no record twice and leaves none out.
Readers accept fields that they do not know; a release that knows no feed passes over the name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from spoold.protocol.names import number, sure

_CHECKPOINT = re.compile(rf"{number(12)}-{number(15)}\.feed\.json")


@dataclass(frozen=True, slots=True, order=True)
class CheckpointName:
    """`EPOCH-SEQ.feed.json` in status/: the next leader takes the highest that it can read."""

    epoch: int
    seq: int

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        return sure(self, f"{self.epoch}-{self.seq}.feed.json", parse_checkpoint)


def parse_checkpoint(name: str) -> CheckpointName | None:
    """The name of a checkpoint in status/, or None."""
    match = _CHECKPOINT.fullmatch(name)
    return CheckpointName(int(match[1]), int(match[2])) if match else None


class Checkpoint(BaseModel):
    """The state of each subscriber by its name, and the last record of each task that is in these states.

    covered: names of `results/`, one per task that is not archived. at: when (RFC 3339), for people.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    at: str = ""
    states: dict[str, Any] = {}
    covered: tuple[str, ...] = ()
