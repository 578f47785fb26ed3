"""What a leader remembers of rejected/.

Law: both can be listed and read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spoold.master.contents import Content


@dataclass(slots=True)
class Rejects:
    """taken: the names there, if a step listed them; open: names that may be written again, and their content."""

    taken: set[str] | None = None
    open: dict[str, Content] = field(default_factory=dict)
