"""Time stamps in files: RFC 3339, as people read them.

Law: a stamp is for people, and of some machine's clock; the pool's own time decides. One that is none is missing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any


def moment(stamp: Any) -> float | None:
    """Return a stamp in seconds since 1970; None for anything else. One without a zone is in this machine's."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
