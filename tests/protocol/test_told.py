"""What can be told to an agent."""

from __future__ import annotations

import pytest

from spoold.protocol.agent_messages import TEXT_MAX, fault_in


def test_a_text_of_the_largest_size_can_be_told() -> None:
    assert fault_in("é" * (TEXT_MAX // 2)) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" \n", "is empty."),
        ("a word of bytes \udcff", "is no UTF-8 text."),  # as Python hands on an argument that is none
        ("é" * (TEXT_MAX // 2) + "a", f"has {TEXT_MAX + 1:,} bytes, and {TEXT_MAX:,} are the most."),
    ],
)
def test_what_cannot_be_told_says_why_and_how_to_mend_it(text: str, why: str) -> None:
    fault = fault_in(text)
    assert fault is not None
    assert fault[0] == why
    assert fault[1]
