"""The table of moves: every state can be reached and left, and nothing moves that is not in it."""

from spoold.protocol import layout
from spoold.protocol.lifecycle import ENDED, MOVES, TABLE, Mover, State, allowed

LIVING = [move for move in MOVES if move.mover is not Mover.FSCK]


def test_every_place_in_the_table_is_a_directory_of_the_tree() -> None:
    assert {move.source for move in MOVES} | {move.target for move in MOVES} <= set(layout.TREE)
    assert set(State) <= set(layout.TREE)


def test_no_line_stands_twice() -> None:
    lines = [(move.source, move.target, move.mover) for move in MOVES]
    assert len(lines) == len(set(lines))


def test_the_lines_between_two_directories_are_found() -> None:
    assert allowed("ready", "waiting") == TABLE["ready", "waiting"]
    assert [move.mover for move in allowed("claimed", "failed")] == [Mover.WORKER, Mover.LEADER, Mover.FSCK]
    assert sum(map(len, TABLE.values())) == len(MOVES)


def test_what_is_not_in_the_table_may_not_be_moved() -> None:
    assert allowed("completed", "ready") == ()
    assert allowed("waiting", "claimed") == ()
    assert allowed("rejected", "pending") == ()
    assert allowed("", "") == ()


def test_every_state_is_reached_from_a_drop() -> None:
    reached = {"tmp"}
    for _ in MOVES:
        reached |= {move.target for move in MOVES if move.source in reached}
    assert set(State) <= reached


def test_every_state_that_is_no_end_leads_to_an_end() -> None:
    for state in set(State) - ENDED:
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
    assert moves == {("ready", "claimed")} | {("claimed", target) for target in ("completed", "failed", "returned")}


def test_success_is_for_ever() -> None:
    """Only the archive takes a completed task, and from there only a failed one comes back, which its name tells."""
    assert {move.target for move in LIVING if move.source == "completed"} == {"archive"}
    assert {move.target for move in MOVES if move.source == "rejected"} == set()


def test_repairs_are_told_apart_in_the_journal_and_throw_nothing_away() -> None:
    repairs = [move for move in MOVES if move.mover is Mover.FSCK]
    assert repairs
    assert {move.event for move in repairs} == {"REPAIRED"}
    assert {move.target for move in repairs} == {"waiting", "rejected", "failed"}
    assert all(move.event != "REPAIRED" for move in LIVING)
