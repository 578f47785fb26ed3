"""What a leader makes of listings that follow each other."""

from itertools import permutations

import pytest

from spoold.master.state.tree_view import View, Wanted
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key, parse_task
from spoold.system.memory_filesystem import MemoryFileSystem

LANE = "type=mail,run=command"
FIRST, SECOND = "5000.hbv8ubtiz7-2.t7.a1f0c0.json", "5000.hbv8ubtiz7-2.t7.a2f1c0.json"


@pytest.mark.parametrize("order", [*permutations((FIRST, SECOND))])
def test_an_earlier_attempt_that_has_left_does_not_hide_that_the_task_has_left(order: tuple[str, str]) -> None:
    """It was claimed, handed back and made ready again between two listings of ready/; and then it was claimed."""
    fs, view = MemoryFileSystem(), View()
    fs.make_dirs(*layout.TREE, layout.join(layout.READY, LANE))
    for name in order:
        task = parse_task(name)
        assert task is not None
        view.stand_ready(task, name, LANE)
    view.settle("t7", State.READY, layout.join(layout.READY, LANE), SECOND)
    view.refresh(fs, Wanted(everything=False, ended=False))
    assert view.where[key("t7")].state is State.CLAIMED, "an unknown worker has it"
    assert [*view.claimed.values()] == [{SECOND: parse_task(SECOND)}]
