"""What a leader does about a cancel, by where the task stands."""

from __future__ import annotations

import pytest

from spoold.protocol.lifecycle import ENDED, State
from spoold.rules.attempts.end_conditions import Cancel, decide


@pytest.mark.parametrize("state", [State.WAITING, State.READY, State.RETURNED])
def test_the_leader_fails_what_no_worker_holds(state: State) -> None:
    assert decide(state, archived=False) is Cancel.FAIL


@pytest.mark.parametrize("state", [State.PENDING, State.CLAIMED])
def test_what_a_worker_runs_and_what_is_being_admitted_is_left_alone_for_now(state: State) -> None:
    assert decide(state, archived=False) is Cancel.STANDING


@pytest.mark.parametrize("state", sorted(ENDED | {State.ARCHIVE}))
def test_what_has_ended_stays_as_it_ended(state: State) -> None:
    assert decide(state, archived=False) is Cancel.OVER


def test_a_task_that_is_nowhere_may_still_come_unless_it_is_in_the_archive() -> None:
    assert decide(None, archived=False) is Cancel.STANDING
    assert decide(None, archived=True) is Cancel.OVER
