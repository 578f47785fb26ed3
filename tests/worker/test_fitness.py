"""What keeps a machine from starting tasks is reported once, with the fix where the cause is known."""

import errno

import pytest

from spoold.runner.job import NoSlot
from spoold.system.clock import ManualClock
from spoold.worker.handlers.availability import Fitness


def fail(fitness: Fitness, error: Exception) -> None:
    with pytest.raises(type(error)), fitness.starting():
        raise error


@pytest.mark.parametrize(
    ("act", "error", "fix"),
    [
        ("writing", OSError(errno.ENOSPC, "full"), "; free some room"),
        ("writing", OSError(errno.EROFS, "read-only"), "; let this user write"),
        ("writing", OSError(errno.EMFILE, "too many"), "; raise how many files"),
        ("starting", OSError(errno.EAGAIN, "again"), "; end processes, or raise how many"),
    ],
)
def test_a_cause_that_is_known_has_a_fix(act: str, error: OSError, fix: str) -> None:
    fitness = Fitness(ManualClock())
    with pytest.raises(OSError, match=str(error.strerror)), getattr(fitness, act)():
        raise error
    assert str(error) in fitness.notes[0]
    assert fix in fitness.notes[0]


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("writing", OSError(errno.EIO, "broken")),
        ("writing", OSError(errno.EAGAIN, "again")),
        ("starting", OSError(errno.ENOSPC, "full")),
        ("starting", OSError(errno.EACCES, "denied")),
    ],
)
def test_there_is_no_advice_for_a_cause_that_is_not_known(
    act: str, error: OSError, caplog: pytest.LogCaptureFixture
) -> None:
    fitness = Fitness(ManualClock())
    with pytest.raises(OSError, match=str(error.strerror)), getattr(fitness, act)():
        raise error
    assert fitness.notes == (f"no task can be started here ({error}), and none is claimed for 1 s",)
    assert caplog.messages == [f"no task can be started here: {error}. It is tried again now and then."]


def test_an_error_of_our_own_counts_for_nothing() -> None:
    fitness = Fitness(ManualClock())
    fail(fitness, NoSlot("no slot is free"))
    assert not fitness.lacking()
    assert fitness.notes == ()


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
