"""Who is at fault for a silence is measured: the share only for the time that its calls took."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.rules.cluster.liveness import ALSO, LEAST_S, Cause, Spent, judge_silence

WHO = "this worker"


@pytest.mark.parametrize(
    ("spent", "cause", "text"),
    [
        (Spent(15, stepping_s=14, waited_s=13.8), Cause.SHARE, "the share has been silent for 14 s"),
        (Spent(15, refused_s=14), Cause.SHARE, "the share has refused for 14 s (Host is down)"),
        (Spent(15, stepping_s=12.5, waited_s=0.2), Cause.BUSY, "this worker was busy with system.scratch for 12 s"),
        (Spent(15, hindered_s=9), Cause.HINDERED, "this worker could not go on for 9.0 s (Host is down)"),
        (Spent(12, asleep_s=63), Cause.ASLEEP, "this machine was suspended for 1 m 3 s"),
        (Spent(15, stopped_s=9), Cause.STOPPED, "this worker was stopped, or got no processor, for 9.0 s"),
        (
            Spent(20, stepping_s=18, waited_s=8),
            Cause.BUSY,
            "this worker was busy with system.scratch for 10 s, and the share has been silent for 8 s",
        ),
        (Spent(15), Cause.UNKNOWN, "this worker has not beaten for 15 s"),
    ],
)
def test_the_cause_and_its_sentence(spent: Spent, cause: Cause, text: str) -> None:
    """N3: "the share has been silent" was said of a worker that was busy with itself."""
    found = judge_silence(spent, 15, WHO, "system.scratch", "Host is down")
    assert found.cause is cause
    assert found.text.endswith(text)


SECONDS = st.one_of(st.just(0.0), st.floats(0, 100))


@given(SECONDS, SECONDS, SECONDS, SECONDS, SECONDS, st.booleans())
def test_in_all_mixtures_the_largest_part_is_the_cause(
    idle: float, busy: float, waited: float, stopped: float, asleep: float, refuses: bool
) -> None:
    spent = Spent(idle + busy + waited + stopped, asleep, stopped, busy + waited, waited, waited if refuses else 0.0)
    found = judge_silence(spent, 100, WHO)
    real = {Cause.BUSY: busy, Cause.SHARE: waited, Cause.STOPPED: stopped, Cause.ASLEEP: asleep}
    most = max(real.values())
    if most < LEAST_S:
        assert found.cause is Cause.UNKNOWN or real[found.cause] + 1e-6 >= LEAST_S
    elif most > LEAST_S + 1e-6:
        assert real[found.cause] >= most - 1e-6
        assert ("the share" in found.text) <= (real[Cause.SHARE] >= max(LEAST_S, ALSO * most) - 1e-6)


def test_of_equal_parts_the_share_is_blamed_last() -> None:
    assert judge_silence(Spent(20, stepping_s=20, waited_s=10), 20, WHO).cause is Cause.BUSY
