"""The clock that most share is right; the server's where none has more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.rules.cluster.pool_clock import NAME_MAX, agreed, correction, is_fresh, machine, warnings

HOUR = 3600.0


@pytest.mark.parametrize(
    ("ahead", "right"),
    [
        ([], 0.0),
        ([HOUR], 0.0),  # a leader alone with its server
        ([HOUR, 0.3], 0.0),
        ([HOUR, HOUR], HOUR),  # two machines agree against the server
        ([HOUR, HOUR - 1.5, 0.1], 0.0),  # two against two: the server decides
        ([HOUR, HOUR + 1, HOUR - 1, 0.1], HOUR),
        ([-9000.0, 5000.0, 3000.0, 100.0], 0.0),  # nobody agrees with anybody
        ([HOUR, HOUR, -60.0, -60.0], -60.0),  # of two equal groups the nearer one
        ([1.9, 1.9], 0.0),  # within what counts as equal
    ],
)
def test_what_most_share_is_right(ahead: list[float], right: float) -> None:
    assert agreed(ahead) == right
    assert agreed(ahead[::-1]) == right


def test_only_a_wrong_clock_is_corrected() -> None:
    assert correction(HOUR, 0.0) == -HOUR
    assert correction(HOUR, HOUR) == 0.0
    assert correction(1.9, 0.0) == 0.0
    assert correction(-2.0, 0.0) == 2.0


@pytest.mark.parametrize("theirs", [0.0, HOUR, -HOUR, 10.0])
@pytest.mark.parametrize("mine", [0.0, HOUR, -10.0])
@pytest.mark.parametrize("ago", [-3600.0, -10.0, -1.0, 0.0, 14.0, 16.0, 3600.0, 3610.0])
def test_how_old_a_stamp_is_does_not_hang_on_clocks_that_are_known_to_be_wrong(
    theirs: float, mine: float, ago: float
) -> None:
    age_s = ago + mine - theirs
    assert is_fresh(age_s, theirs_s=theirs, mine_s=mine, patience_s=15.0) == (-2.0 < ago < 15.0)


def test_a_wrong_clock_is_named_with_the_fix() -> None:
    assert warnings({"desk": 0.4, "lap": -0.9}) == []
    (told,) = warnings({"desk": HOUR, "lap": 0.0})
    assert told.startswith("the clock of desk is 3,600 s ahead of the other machines'; deadlines do not follow it.")
    assert "On desk, set it by NTP (`timedatectl set-ntp true`, or chrony)" in told
    (told,) = warnings({"desk": -2.0})
    assert told.startswith("the clock of desk is 2 s behind the file server's;")


def test_a_wrong_server_is_named_too() -> None:
    first, second = warnings({"a": HOUR, "b": HOUR, "c": 0.0})[0:1] + warnings({"a": HOUR, "b": HOUR})[-1:]
    assert first.startswith("the clock of a is")  # two against two
    assert second.startswith("the file server's clock is 3,600 s behind the other machines'")


@given(st.text() | st.text("\n\t \0\x1b\u2028x", max_size=5) | st.just("x" * 3000), st.floats(-1e11, 1e11))
def test_whatever_a_node_calls_its_host_a_warning_names_a_machine_in_one_line(hostname: str, ahead: float) -> None:
    name = machine(hostname, "w-1")
    assert name.strip()
    assert name.isprintable()
    assert len(name) <= NAME_MAX
    for told in warnings({name: ahead}):
        assert told.startswith(f"the clock of {name} is ")
        assert f" On {name}, set it" in told
