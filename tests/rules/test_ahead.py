"""How many tasks are claimed before a slot is free for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.rules.workers.slots import DEPTH, LATELY, PATIENCE_S, ahead, has_room, preference


@pytest.mark.parametrize(
    ("longest", "many"),
    [
        (0.0, DEPTH),
        (PATIENCE_S / DEPTH, DEPTH),
        (PATIENCE_S / 4, 4),
        (PATIENCE_S / 4 + 0.0001, 3),
        (PATIENCE_S, 1),
        (PATIENCE_S + 0.001, 0),
        (60.0, 0),
    ],
)
def test_as_many_as_the_longest_of_late_allows(longest: float, many: int) -> None:
    lately = [0.0] * (LATELY - 1) + [longest]
    assert ahead(lately) == many


def test_a_worker_that_has_seen_little_claims_nothing_ahead() -> None:
    assert ahead([0.0] * (LATELY - 1)) == 0


SLOTS = st.lists(
    st.tuples(st.integers(0, DEPTH + 1), st.floats(0, 3 * PATIENCE_S, allow_nan=False), st.booleans()), min_size=1
)


@given(SLOTS)
def test_the_slot_that_takes_the_next_task_has_room_if_any_slot_has(slots: list[tuple[int, float, bool]]) -> None:
    chosen = min(slots, key=lambda slot: preference(*slot))
    assert has_room(chosen[0]) == any(has_room(held) for held, _, _ in slots)


@given(SLOTS)
def test_of_the_slots_with_room_one_with_short_tasks_and_the_fewest_is_chosen(
    slots: list[tuple[int, float, bool]],
) -> None:
    chosen = min(slots, key=lambda slot: preference(*slot))
    brisk = [slot for slot in slots if has_room(slot[0]) and slot[1] < PATIENCE_S]
    if brisk:
        assert chosen in brisk
        assert chosen[0] == min(held for held, _, _ in brisk)
