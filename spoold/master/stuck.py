"""Drops that may not be moved: somebody else's directory, or a file that an SMB client has open. Ever more seldom."""

from __future__ import annotations

from dataclasses import dataclass

from spoold.master.desk import Desk

# A drop is tried again after so long (s) at first and at most.
STUCK_S, STUCK_MOST_S = 0.5, 60.0


@dataclass(slots=True)
class _Stuck:
    """One of them: when it is tried again, how long (s) that was put off, what people are told."""

    look_at: float
    wait_s: float
    notices: list[str]


class Stuck:
    """All of them, by name."""

    def __init__(self) -> None:
        self.drops: dict[str, _Stuck] = {}

    def __contains__(self, drop: str) -> bool:
        return drop in self.drops

    def next_due(self) -> float | None:
        """When (monotonic, s) the next one is to be tried again."""
        return min((stuck.look_at for stuck in self.drops.values()), default=None)

    def rests(self, desk: Desk, drop: str) -> bool:
        """Whether it is too early to try it again, which people are told."""
        stuck = self.drops.get(drop)
        if stuck is None or desk.step.now.monotonic >= stuck.look_at:
            return False
        desk.report.notices += stuck.notices
        return True

    def put_off(self, desk: Desk, drop: str, told: int) -> None:
        """It was refused. told: how many notices there were before that."""
        stuck = self.drops.get(drop)
        wait_s = min(STUCK_MOST_S, stuck.wait_s * 2) if stuck else STUCK_S
        self.drops[drop] = _Stuck(desk.step.now.monotonic + wait_s, wait_s, desk.report.notices[told:])

    def forget(self, drop: str) -> None:
        """It was not refused this time."""
        self.drops.pop(drop, None)
