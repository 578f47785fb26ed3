"""What a leader remembers of rejected/.

Law: both can be listed and read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spoold.master.contents import Content


@dataclass(slots=True)
class Rejects:
    """taken: the names there, if a step listed them; open: names that may be written again, and their content."""

    taken: set[str] | None = None
    open: dict[str, Content] = field(default_factory=dict)

    def begin_step(self) -> None:
        """Forget the names: people may clear the directory."""
        self.taken = None

    def see(self, names: Iterable[str]) -> set[str]:
        """Note the names there, and return them."""
        self.taken = set(names)
        return self.taken

    def came(self, *names: str) -> None:
        """Note names that this leader made there, once they were listed."""
        if self.taken is not None:
            self.taken.update(names)

    def watch(self, name: str, content: Content) -> None:
        """Note that this entry may be written again, and the content it was rejected for; the first one counts."""
        self.open.setdefault(name, content)

    def take_watched(self) -> dict[str, Content]:
        """Hand over the entries that may be written again."""
        watched, self.open = self.open, {}
        return watched
