"""A sleep that is announced is over when somebody says so, or when it was slept."""

from spoold.daemon.signals import SLEEP_ANNOUNCED, SLEEP_OVER, Nap
from spoold.system.clock import ManualClock


def due(nap: Nap) -> bool:
    return nap.due


def test_an_announced_sleep_is_due_until_it_is_over() -> None:
    clock = ManualClock()
    nap = Nap(clock)
    nap.hear(SLEEP_OVER)
    assert not due(nap)
    nap.hear(SLEEP_ANNOUNCED)
    clock.advance(600)
    assert due(nap)
    nap.hear(SLEEP_OVER)
    assert not due(nap)


def test_a_sleep_that_was_slept_is_over_though_nobody_says_so() -> None:
    clock = ManualClock()
    nap = Nap(clock)
    clock.suspend(3600)
    nap.hear(SLEEP_ANNOUNCED)
    clock.advance(3)
    nap.hear(SLEEP_ANNOUNCED)
    assert due(nap), "what it slept before it was told does not count"
    clock.suspend(2)
    assert not due(nap)
    nap.hear(SLEEP_ANNOUNCED)
    assert due(nap), "it may be put to sleep again at once"
