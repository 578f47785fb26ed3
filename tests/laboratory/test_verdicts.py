"""What the laboratory takes for a right answer of the doctor."""

import json
from typing import Any

import pytest

from tools.laboratory.channel import Done
from tools.laboratory.verdicts import Case, problems

CASE = Case("nfs4.2", "soft", "not safe", "hard")
REPORT = {"verdict": "not safe", "reason": "soft", "machines": 2, "remarks": [{"mend": "mount with hard"}]}


def answer(code: int = 1, **changed: Any) -> Done:
    """A machine's answer."""
    return Done(code, json.dumps({**REPORT, **changed}), "")


def test_a_right_answer_has_no_problems() -> None:
    assert list(problems(CASE, answer())) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (answer(verdict="safe with rename"), "it should be 'not safe'"),
        (answer(code=0), "exit code 0"),
        (answer(machines=1), "1 machines took part"),
        (answer(remarks=[]), "nothing advises 'hard'"),
        (Done(70, "", "it broke"), "no report: it broke"),
        (None, "the laptop did not answer"),
    ],
)
def test_whatever_is_wrong_with_an_answer_is_told(given: Done | None, words: str) -> None:
    assert words in "; ".join(problems(CASE, given))
