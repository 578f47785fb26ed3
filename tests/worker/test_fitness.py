"""What keeps a machine from starting tasks is told with its mend, once."""

import errno

import pytest

from spoold.system.clock import ManualClock
from spoold.worker.fitness import Fitness


def fail(fitness: Fitness, error: Exception) -> None:
    with pytest.raises(type(error)), fitness.asked():
        raise error


@pytest.mark.parametrize(
    ("error", "mend"),
    [
        (OSError(errno.ENOSPC, "full"), "free some room"),
        (OSError(errno.EAGAIN, "again"), "ulimit -u"),
        (OSError(errno.EIO, "broken"), "see that this user can write where TMPDIR points"),
        (RuntimeError("no slot is free"), "see that this user can write where TMPDIR points"),
    ],
)
def test_every_cause_has_a_mend(error: Exception, mend: str) -> None:
    fitness = Fitness(ManualClock())
    fail(fitness, error)
    assert str(error) in fitness.notes[0]
    assert mend in fitness.notes[0]


def test_a_pause_ends_by_itself_and_what_is_said_only_by_a_proof(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    fitness = Fitness(clock)
    for pause in (1, 2, 4):
        fail(fitness, OSError(errno.EMFILE, "too many"))
        fail(fitness, OSError(errno.EMFILE, "too many"))  # of the same pause
        clock.advance(pause - 0.5)
        assert fitness.lacking()
        clock.advance(0.5)
        assert not fitness.lacking()
        assert fitness.notes
    fitness.proved()
    assert list(fitness.notes) == []
    assert len(caplog.messages) == 1
    fail(fitness, OSError(errno.EMFILE, "too many"))
    assert "for 1 s" in fitness.notes[0]
    assert len(caplog.messages) == 2, "another time"
