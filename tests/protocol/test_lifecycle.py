"""The table of moves: every state can be reached and left, and nothing moves that is not in it."""

import pytest

from spoold.protocol import layout
from spoold.protocol.errors import LawBroken
from spoold.protocol.lifecycle import DIRECTORIES, ENDED, MOVES, TABLE, Mover, insist

LIVING = [move for move in MOVES if move.mover is not Mover.FSCK]


def test_every_place_in_the_table_is_a_directory_of_the_tree() -> None:
    assert {move.source for move in MOVES} | {move.target for move in MOVES} <= set(layout.TREE)
    assert set(layout.TREE) >= set(DIRECTORIES)


def test_no_line_stands_twice() -> None:
    lines = [(move.source, move.target, move.mover, move.event) for move in MOVES]
    assert len(lines) == len(set(lines))


def test_the_lines_between_two_directories_are_found() -> None:
    assert [move.mover for move in TABLE["claimed", "failed"]] == [Mover.WORKER, Mover.LEADER, Mover.FSCK]
    assert sum(map(len, TABLE.values())) == len(MOVES)
    for move in MOVES:
        insist(move.mover, move.event, f"{move.source}/a", f"{move.target}/b/c")


@pytest.mark.parametrize(
    ("mover", "event", "src", "dst"),
    [
        (Mover.LEADER, "READY", "completed/a", "ready/l/a"),
        (Mover.WORKER, "CLAIMED", "waiting/l/a", "claimed/w/a"),
        (Mover.LEADER, "CLAIMED", "ready/l/a", "claimed/w/a"),
        (Mover.WORKER, "HELD", "ready/l/a", "claimed/w/a"),
        (Mover.FSCK, "FAILED", "claimed/w/a", "failed/a"),
        (Mover.LEADER, "", "", ""),
    ],
)
def test_what_the_table_does_not_say_of_that_mover_and_event_may_not_be_moved(
    mover: Mover, event: str, src: str, dst: str
) -> None:
    with pytest.raises(LawBroken, match=f"by the {mover} as {event}"):
        insist(mover, event, src, dst)


def test_every_state_is_reached_from_a_drop() -> None:
    reached = {"tmp"}
    for _ in MOVES:
        reached |= {move.target for move in MOVES if move.source in reached}
    assert reached >= set(DIRECTORIES)


def test_every_state_that_is_no_end_leads_to_an_end() -> None:
    for state in set(DIRECTORIES) - ENDED:
        reached = {state.value}
        for _ in MOVES:
            reached |= {move.target for move in MOVES if move.source in reached}
        assert reached & ENDED, state


def test_a_claimed_task_leaves_only_by_its_worker_or_by_a_leader_that_takes_it_for_dead() -> None:
    leaving = [move for move in LIVING if move.source == "claimed"]
    assert {move.mover for move in leaving} == {Mover.WORKER, Mover.LEADER}
    assert all("dead" in move.when for move in leaving if move.mover is Mover.LEADER)


def test_workers_only_claim_and_give_back() -> None:
    moves = {(move.source, move.target) for move in MOVES if move.mover is Mover.WORKER}
    after = ("claimed", "completed", "failed", "returned")
    assert moves == {("ready", "claimed")} | {("claimed", target) for target in after}


def test_success_is_for_ever_but_for_a_person_who_sends_it_back() -> None:
    """Else only the archive takes a completed task; from there only a failed one comes back, which its name tells."""
    back = [move for move in LIVING if move.source == "completed" and move.target != "archive"]
    assert [(move.target, move.mover, move.event) for move in back] == [("waiting", Mover.LEADER, "REDONE")]
    assert {move.target for move in MOVES if move.source == "rejected"} == {"pending"}, "and is judged anew there"


def test_repairs_are_told_apart_in_the_journal_and_throw_nothing_away() -> None:
    repairs = [move for move in MOVES if move.mover is Mover.FSCK]
    assert repairs
    assert {move.event for move in repairs} == {"REPAIRED"}
    assert {move.target for move in repairs} == {"waiting", "rejected", "failed"}
    assert all(move.event != "REPAIRED" for move in LIVING)
