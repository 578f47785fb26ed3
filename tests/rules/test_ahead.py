"""How many tasks are claimed before a slot is free for them."""

from __future__ import annotations

import pytest

from spoold.rules.ahead import DEPTH, LATELY, PATIENCE_S, ahead


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
