"""What was lost is told for a while, and not for ever."""

from __future__ import annotations

from spoold.runner.job import Ending, Kind
from spoold.worker.attempts.attempt_output import LOSS_REMEMBERED_S, LOSSES_SHOWN, Losses


def ending(key: str, kind: Kind = "lost") -> Ending:
    return Ending(key, kind, None, None, "its supervisor fell silent", 0.0, 1.0, 1.0)


def test_only_what_was_lost_is_told_and_only_the_latest_for_a_while() -> None:
    losses = Losses()
    losses.look(0.0, [ending("a.1"), ending("b.1", "exited")])
    assert losses.notes == ("attempt a.1 was lost: its supervisor fell silent",)
    losses.look(5.0, [ending(f"c{n}.1") for n in range(LOSSES_SHOWN)])
    assert len(losses.notes) == LOSSES_SHOWN
    assert "a.1" not in " ".join(losses.notes)
    losses.look(5.0 + LOSS_REMEMBERED_S, [])
    assert not losses.notes
