"""A worker's lease ends by the clock that counts suspend, and is another one after it was over."""

from __future__ import annotations

from spoold.system.clock import ManualClock
from spoold.worker.attempts.lease import OwnLease


def test_there_is_none_before_the_first_beat() -> None:
    assert OwnLease(ManualClock()).over


def test_it_is_over_at_the_moment_at_which_it_ends() -> None:
    clock = ManualClock(boottime=1000.0)
    lease = OwnLease(clock)
    lease.extend(1010.0)
    clock.advance(9.5)
    assert not lease.over
    clock.advance(0.5)
    assert (lease.over, lease.until) == (True, 1010.0)


def test_it_ends_in_a_suspend_which_the_monotonic_clock_does_not_count() -> None:
    clock = ManualClock(boottime=1000.0)
    lease = OwnLease(clock)
    lease.extend(1010.0)
    clock.suspend(10.0)
    assert lease.over


def test_it_keeps_its_number_while_it_lasts_unbroken() -> None:
    clock = ManualClock(boottime=1000.0)
    lease = OwnLease(clock)
    lease.extend(1010.0)
    first = lease.number
    clock.advance(9.0)
    lease.extend(1019.0)
    assert lease.number == first
    clock.advance(10.0)
    lease.extend(1029.0)
    assert (lease.number, lease.over) == (first + 1, False)


def test_a_beat_that_took_longer_than_its_lease_extends_one_that_is_over() -> None:
    clock = ManualClock(boottime=1000.0)
    lease = OwnLease(clock)
    lease.extend(995.0)
    assert lease.over
