"""One colour and one glyph for each state of a task or an attempt, for light and for dark screens.

A test computes that all pairs differ by at least 10 in CIEDE2000, for normal sight, protanopia, deuteranopia and
tritanopia, and that a glyph can be read on its colour.

Law: a new state gets a colour here, and the test says whether it is one. No other module names a colour.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.pictures.picture_data import RUNNING, UNKNOWN
from spoold.protocol.lifecycle import State
from spoold.protocol.result import Status

# An attempt that came to nothing without a fault of its task: its worker died, or handed it back.
LOST = "lost"
GLYPHS = {
    State.PENDING.value: "…",
    State.WAITING.value: "○",
    State.READY.value: "◇",
    State.CLAIMED.value: "►",
    State.COMPLETED.value: "✓",
    State.FAILED.value: "✗",
    State.SKIPPED.value: "–",
    State.REJECTED.value: "!",
    LOST: "↺",
    UNKNOWN: "?",
}
# As people read them, and the one that a group or a bar of several shows.
ORDER = ("completed", "failed", "rejected", "claimed", "ready", "waiting", "pending", "skipped", LOST, UNKNOWN)
WORST = ("failed", "rejected", LOST, "claimed", "ready", "waiting", "pending", "skipped", "completed", UNKNOWN)
_ENDS = {
    Status.SUCCESS: State.COMPLETED.value,
    Status.FAILURE: State.FAILED.value,
    Status.TIMEOUT: State.FAILED.value,
    Status.CANCELLED: State.SKIPPED.value,
    Status.SKIPPED: State.SKIPPED.value,
    Status.WORKER_DIED: LOST,
    Status.HANDED_BACK: LOST,
}
_BLACK, _WHITE = "#000000", "#ffffff"


@dataclass(frozen=True, slots=True)
class Colour:
    """The colour of a state, and that of text on it."""

    fill: str
    ink: str


@dataclass(frozen=True, slots=True)
class Scheme:
    """All colours of one scheme. paper: behind everything; card: behind a box; mute: text that matters less."""

    paper: str
    card: str
    ink: str
    mute: str
    line: str
    link: str
    states: dict[str, Colour]


def mark(status: str) -> str:
    """Return the state whose colour an attempt with this status has."""
    if status == RUNNING:
        return State.CLAIMED.value
    return next((state for known, state in _ENDS.items() if known == status), UNKNOWN)


LIGHT = Scheme(
    paper="#ffffff",
    card="#f6f7f9",
    ink="#1b2129",
    mute="#5b6572",
    line="#dfe3e8",
    link="#8b95a3",
    states={
        "pending": Colour("#99a2ab", _BLACK),
        "waiting": Colour("#545f77", _WHITE),
        "ready": Colour("#05bbd8", _BLACK),
        "claimed": Colour("#166ff4", _BLACK),
        "completed": Colour("#008434", _WHITE),
        "failed": Colour("#eb143a", _BLACK),
        "skipped": Colour("#908366", _BLACK),
        "rejected": Colour("#8c26a2", _WHITE),
        LOST: Colour("#f39103", _BLACK),
        UNKNOWN: Colour("#c6c6c5", _BLACK),
    },
)
DARK = Scheme(
    paper="#12161c",
    card="#1b2129",
    ink="#e9edf2",
    mute="#9ba6b4",
    line="#313a46",
    link="#66717f",
    states={
        "pending": Colour("#697685", _WHITE),
        "waiting": Colour("#a8b0c4", _BLACK),
        "ready": Colour("#5ce9fc", _BLACK),
        "claimed": Colour("#669aff", _BLACK),
        "completed": Colour("#65c783", _BLACK),
        "failed": Colour("#fe3551", _BLACK),
        "skipped": Colour("#95896d", _BLACK),
        "rejected": Colour("#ab52c2", _BLACK),
        LOST: Colour("#fdab3b", _BLACK),
        UNKNOWN: Colour("#535960", _WHITE),
    },
)
