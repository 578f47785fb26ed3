"""Tokens of known shapes are found in every text, and what only looks a little like one is not."""

from __future__ import annotations

import re
import uuid
from re import _parser  # type: ignore[attr-defined]

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spoold.rules.redaction.masking import Mask
from spoold.rules.redaction.token_shapes import MOST, SHAPES, WORD, Shape

BY_INDEX = [pytest.param(shape, id=f"{shape.name}-{number}") for number, shape in enumerate(SHAPES)]
MASK = Mask({}, tokens=True)
AROUND = st.sampled_from(
    ["", " ", "\n", '"', "\\n", "token=", "Bearer ", "\x1b[32m", "https://x:", "%3D", "/", "é", "x" * 5000 + " "]
)


@pytest.mark.parametrize("shape", BY_INDEX)
@given(st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_each_token_that_has_a_shape_is_masked_wherever_it_stands(shape: Shape, data: st.DataObject) -> None:
    token = data.draw(st.from_regex(re.compile(shape.pattern, re.ASCII), fullmatch=True))
    before, after = data.draw(AROUND), data.draw(st.sampled_from(["", " ", "\n", '"', "\\n", "@host", ";", "é"]))
    left = MASK.text(before + token + after)
    assert f"[redacted:{shape.name}]" in left
    assert token not in left
    if before != "/":
        assert left == f"{before}[redacted:{shape.name}]{after}"


@pytest.mark.parametrize("shape", BY_INDEX)
def test_a_shape_keeps_the_law_of_shapes(shape: Shape) -> None:
    _, most = _parser.parse(shape.pattern).getwidth()
    assert most < MOST
    assert not set("".join(shape.starts).encode()) - set(WORD)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]+", shape.name) for shape in SHAPES)


@pytest.mark.parametrize(
    "text",
    [
        "a task-runner is a disk-based thing, and ask-ant-colonies-about-it-when-you-can is a word",
        "npm_config_registry=https://registry.npmjs.org/ npm_lifecycle_event",
        "ghp_short sk-proj-x xoxb-1-2 eyJhbGciOiJIUzI1NiJ9 eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0 hf_transfer",
        "AKIA ASIA AKIABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGH in a row of capitals",
        f"{uuid.UUID(int=2**127 + 7)} 3f786850e387550fdab836ed7e6dc881de23001b -------------------------- ________",
        "/usr/lib/python3/dist-packages/spoold/worker/attempts/redacting.py:120",
        "",
    ],
)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert MASK.text(text) == text
    assert MASK.text(f"{text}\n") == f"{text}\n"


def test_a_token_among_many_long_words_is_found() -> None:
    token, words = "npm_" + "aB3d" * 9, "a-long-word-of-letters " * 2000
    assert MASK.text(f"{words}{token} {words}") == f"{words}[redacted:npm-token] {words}"
    assert MASK.text(words) == words


def test_a_token_in_a_long_word_is_found() -> None:
    token = "npm_" + "aB3d" * 9
    assert MASK.text("=" * 70_000 + token + "." * 70_000) == "=" * 70_000 + "[redacted:npm-token]" + "." * 70_000
    assert MASK.text("A" * 70_000 + token).endswith("A[redacted:npm-token]")
