"""Whatever call of the file system goes wrong, the story ends as it should.

One node's n-th call is struck, for many n: the process is gone before it, or gone and the call carried out much
later, or the call fails and was not, was, or will be done. Every twelfth call is struck here, by turn (`SPOOLD_TURN`,
which CI counts by commits), and every one with `SPOOLD_EVERY_CALL=1`, which takes a quarter of an hour.
"""

import errno
import os

import pytest

from tests.support.faults import FaultyFileSystem
from tests.support.story import Story

STRIDE = 1 if os.environ.get("SPOOLD_EVERY_CALL") == "1" else 12
TURN = int(os.environ.get("SPOOLD_TURN", "0"))
LATE_ROUNDS = {"crash, late": 9, "late": 3}
NODES = ("m1", "w1", "w2")


def strike(fs: FaultyFileSystem, number: int, how: str) -> None:
    """Let the call with this number, counted from now, go wrong."""
    if how.startswith("crash"):
        fs.crash_after, fs.last_words = number, how == "crash, late"
    elif how == "full":
        fs.fail("", "", errno.ENOSPC, after=number)
    elif how in ("refused", "done", "late"):
        fs.fail("", "", errno.EIO, how, after=number)  # type: ignore[arg-type]


def play(who: str, number: int, how: str) -> bool:
    """One story with one blow; False when it ended before the blow fell. Errors: AssertionError."""
    story = Story()
    fs = story.node(who).fs
    before = fs.calls
    strike(fs, number, how)
    delivery: list[int] = []

    def later(round_: int) -> None:
        if fs.waiting and not delivery:
            delivery.append(round_ + LATE_ROUNDS[how])
        if delivery == [round_]:
            fs.deliver()

    try:
        story.play(later)
    except AssertionError as error:
        raise AssertionError(f"{who}, call {number} {how}: {error}") from error
    return who in story.cluster.gone or fs.calls - before > number


@pytest.mark.parametrize("how", ["crash", "crash, late", "refused", "done", "late", "full"])
def test_one_blow(how: str) -> None:
    struck = 0
    offset = (len(how) + TURN) % STRIDE
    for who in NODES:
        number = offset
        while play(who, number, how):
            struck += 1
            number += STRIDE
    assert struck > 300 / STRIDE


def test_the_story_itself() -> None:
    assert Story().play() < 20
