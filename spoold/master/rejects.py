"""rejected/, as far as a leader remembers it.

Law: both can be listed and read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spoold.master.contents import Content


@dataclass(slots=True)
class Rejects:
    """taken: the names there, where a step asked; open: names that may be written again, and what they said."""

    taken: set[str] | None = None
    open: dict[str, Content] = field(default_factory=dict)
