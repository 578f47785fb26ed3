"""One line of a journal.

Law: journals are for people and tools, and no node decides anything from them. Only `spool fsck --repair` reads the
highest epoch there, for a new token of leadership. A line needs no field but `writer` and `event`.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

# A request was seen in control/. The detail has its verb as `request`, its `target`, `by`, `reason` and `until`.
ASKED = "ASKED"


class Event(BaseModel):
    """What happened, when (RFC 3339, the writer's clock), who wrote it, and its place in that writer's order."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    at: str = ""
    writer: str
    seq: int = 0
    event: str
    task: str | None = None
    attempt: int | None = None
    epoch: int | None = None
    detail: Any = None
