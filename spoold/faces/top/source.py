"""What pages ask: the view of the spool, for what it does not offer the client, and the time.

Law: a page asks nothing else, and asks it in a thread. Nothing here writes to the spool but `spoold.faces.top.acts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient
    from spoold.client.view import View

T = TypeVar("T")
# What the view does not offer is asked again after so many seconds at the earliest.
AGAIN_S = 5.0


@dataclass
class Source:
    """One spool, for all pages. now: the wall clock, in seconds."""

    view: View
    spool: SpoolClient
    now: Callable[[], float]
    read_only: bool = False

    def __post_init__(self) -> None:
        self._kept: dict[str, tuple[float, Any]] = {}

    def kept(self, name: str, ask: Callable[[], T], *, for_s: float = AGAIN_S) -> T:
        """Return what was asked under this name at most so long ago, or ask. Errors: those of `ask`."""
        at, value = self._kept.get(name, (-1.0, None))
        if not at <= self.now() < at + for_s or at < 0:
            value = ask()
            self._kept[name] = (self.now(), value)
            if len(self._kept) > 200:
                del self._kept[next(iter(self._kept))]
        return value  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Room:
    """How much of a page is on the screen: columns, lines, and the first row that is seen."""

    width: int
    height: int
    first: int = 0
