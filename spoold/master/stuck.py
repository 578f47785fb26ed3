"""Drops that cannot be moved: another user's directory, or a file that an SMB client has open.

Law: each is tried again ever more rarely, at the latest after STUCK_MOST_S. Its notices are repeated in every step
until then.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.master.desk import Desk

# How long (s) until a drop is tried again, at first and at most.
STUCK_S, STUCK_MOST_S = 0.5, 60.0


@dataclass(slots=True)
class _Stuck:
    """One drop: when it is tried again, how long (s) that was put off, and its notices."""

    look_at: float
    wait_s: float
    notices: list[str]


class Stuck:
    """All stuck drops, by name."""

    def __init__(self) -> None:
        self.drops: dict[str, _Stuck] = {}

    def __contains__(self, drop: str) -> bool:
        return drop in self.drops

    def next_due(self) -> float | None:
        """When (monotonic, s) to try the next one again."""
        return min((stuck.look_at for stuck in self.drops.values()), default=None)

    def rests(self, desk: Desk, drop: str) -> bool:
        """Whether it is too early to try it again; then its notices are repeated."""
        stuck = self.drops.get(drop)
        if stuck is None or desk.step.now.monotonic >= stuck.look_at:
            return False
        desk.report.notice(*stuck.notices)
        return True

    def put_off(self, desk: Desk, drop: str, told: int) -> None:
        """Put off a refused drop. told: how many notices there were before that."""
        stuck = self.drops.get(drop)
        wait_s = min(STUCK_MOST_S, stuck.wait_s * 2) if stuck else STUCK_S
        self.drops[drop] = _Stuck(desk.step.now.monotonic + wait_s, wait_s, desk.report.notices[told:])

    def forget(self, drop: str) -> None:
        """Forget a drop that was not refused this time."""
        self.drops.pop(drop, None)
