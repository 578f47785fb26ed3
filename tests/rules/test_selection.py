"""What fits a selection, and what a wrong word was meant to be."""

import pytest

from spoold.protocol.errors import nearest
from spoold.protocol.lifecycle import State
from spoold.rules.answers.selection import Selection, suggestion


@pytest.mark.parametrize(
    ("selection", "fits"),
    [
        (Selection(), True),
        (Selection(types=("t",)), True),
        (Selection(types=("u", "t"), batches=("b",)), True),
        (Selection(types=("u",), batches=("b",)), False),
        (Selection(types=("t",), batches=("c",)), False),
        (Selection(batches=("B",)), True),
    ],
)
def test_each_option_that_is_said_must_hold(selection: Selection, fits: bool) -> None:
    assert selection.fits("t", "b") is fits


def test_a_batch_that_is_not_known_fits_none_that_is_given() -> None:
    assert not Selection(batches=("b",)).fits("t", "")
    assert Selection().fits("t", "")


def test_a_selection_is_said_as_the_options_that_state_it() -> None:
    selection = Selection((State.READY, State.FAILED), ("t",), ("b", "c"))
    assert list(selection.words()) == ["--state ready,failed", "--type t", "--batch b", "--batch c"]
    assert selection
    assert not Selection()
    assert list(Selection().words()) == []


def test_a_wrong_word_gets_the_nearest_or_the_first_few() -> None:
    assert nearest("reveiw", ["review", "test"]) == "review"
    assert nearest("zzz", ["review"]) == ""


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("cmd", ["cwd", "command", "batch"], "command"),
        ("text", ["timeout", "question"], ""),
        ("prio", ["priority", "parent"], "priority"),
        ("enviroment", ["env", "deadline"], "env"),
        ("depends_on", ["dependencies", "deadline"], "dependencies"),
        ("max_retry", ["max_retries", "meta"], "max_retries"),
        ("maks", ["max", "max_backoff_s"], "max"),
        ("nightyl", ["Nightly", "weekly"], "Nightly"),
    ],
)
def test_a_hint_does_not_mislead(word: str, known: list[str], meant: str) -> None:
    """N26: `cmd` was told to be 'cwd', and a question's `text` its 'timeout'."""
    assert nearest(word, known) == meant
    assert suggestion("reveiw", ["review", "test"]) == "did you mean 'review'?"
    assert suggestion("zzz", ["a", "b"]) == "use one of a, b."
    assert suggestion("zzz", ["a", "b", "c"], named=2) == "use one of a, b and 1 more."
    assert suggestion("zzz", []) == "there is none yet."
