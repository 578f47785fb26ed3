"""The content of a request, for people and the journal.

Law: only `until`, the end of a pause or a closed limit, decides anything. Every field may be missing, since a request
is valid by its name.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from spoold.protocol.fields import Stamp


class RequestBody(BaseModel):
    """Who asked, when and why; until: when it ends by itself, None for never."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    by: str = ""
    at: str = ""
    reason: str = ""
    until: Stamp | None = None

    @property
    def ends(self) -> str:
        """When it ends by itself, as text (RFC 3339); empty for never."""
        return self.until.isoformat().replace("+00:00", "Z") if self.until else ""

    @property
    def told(self) -> str:
        """Who asked and why, as the result of a cancelled task says it."""
        return f"asked for by {self.by or 'an unknown user'}" + (f": {self.reason}" if self.reason else "")
