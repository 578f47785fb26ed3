"""Who leads: one token, and a rename of exactly the name that was seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.names import NOBODY, LeaseName
from spoold.rules.cluster.election import Decision, Keep, Missing, Stand, Swap, decide, resigned
from tests.protocol.strategies import lease_names

MINE, THEIRS = LeaseName(3, 7, "me-1"), LeaseName(3, 7, "other-1")


def ask(*tokens: LeaseName, silent_s: float = 0, renew: bool = False, gone: bool = False) -> Decision:
    return decide(list(tokens), "me-1", silent_s=silent_s, lease_s=15, renew=renew, gone=gone)


def test_without_a_token_nobody_leads() -> None:
    assert ask(renew=True, gone=True, silent_s=100) == Missing()


def test_my_token_is_renewed_when_it_is_due_and_kept_otherwise() -> None:
    assert ask(MINE) == Keep()
    assert ask(MINE, silent_s=1000, gone=True) == Keep()
    assert ask(MINE, renew=True) == Swap(LeaseName(3, 8, "me-1"))


@pytest.mark.parametrize(("silent_s", "gone"), [(15, False), (1000, False), (0, True)])
def test_a_silent_or_dead_holder_is_followed_in_a_new_epoch(silent_s: float, gone: bool) -> None:
    assert ask(THEIRS, silent_s=silent_s, gone=gone) == Swap(LeaseName(4, 0, "me-1"))


def test_a_living_holder_is_left_in_peace() -> None:
    assert ask(THEIRS, silent_s=14.9, renew=True) == Stand()


def test_a_token_that_nobody_holds_is_taken_at_once() -> None:
    assert ask(LeaseName(0, 0, NOBODY)) == Swap(LeaseName(1, 0, "me-1"))
    assert ask(resigned(THEIRS)) == Swap(LeaseName(4, 0, "me-1"))


def test_of_several_tokens_the_highest_counts() -> None:
    """There is one; a network that repeats a rename may show two for a moment."""
    assert ask(MINE, LeaseName(4, 0, "other-1")) == Stand()
    assert ask(LeaseName(2, 99, "other-1"), MINE) == Keep()


@given(lease_names, st.booleans(), st.booleans(), st.floats(0, 100))
def test_a_swap_is_always_to_a_higher_name_of_mine(
    token: LeaseName, renew: bool, gone: bool, silent_s: float
) -> None:
    found = ask(token, renew=renew, gone=gone, silent_s=silent_s)
    if isinstance(found, Swap):
        assert found.to > token
        assert found.to.holder == "me-1"
        assert found.to.epoch == token.epoch + (token.holder != "me-1")
    assert resigned(token) > token
    assert resigned(token).holder == NOBODY
