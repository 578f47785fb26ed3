"""One line of a journal.

Law: journals are for people and tools, and no node decides anything from them. Only `spool fsck --repair` reads the
highest epoch there, for a new token of leadership. A line needs no field but `writer` and `event`.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from spoold.protocol.amount import clip

WRITER_SHOWN = 80
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

    def written_by(self, writer: str) -> Event:
        """The same event as a line in the journal of this writer, though it names another one."""
        return self.model_copy(update={"writer": writer, "claimed_writer": self.writer})

    @property
    def misattributed(self) -> str:
        """The writer that the line names, where it stands in the journal of another one; '' for all others."""
        claimed = (self.model_extra or {}).get("claimed_writer", "")
        return clip(claimed, WRITER_SHOWN) if isinstance(claimed, str) else ""
