"""Sums over attempts, and what a dead worker's last beat says of one."""

import random
from typing import Any

import pytest

from spoold.protocol import codec
from spoold.protocol.amount import MOST
from spoold.protocol.heartbeat import Heartbeat, HostId, Running
from spoold.protocol.names import BeatName
from spoold.protocol.result import Result, Total
from spoold.rules.attempts.attempt_costs import Tree, last_seen, plus, spent_by, total_of, tree_of, trees

AT = "2026-02-02T09:01:20.000Z"


def record(attempt: int, **more: Any) -> Result:
    fields = {"task_id": "a", "worker_id": "w1", "status": "failure", "completed_at": AT, **more}
    return Result.model_validate({"attempt": attempt, **fields})


def test_all_attempts_count() -> None:
    records = [
        record(1, duration_s=1.5, tokens_used=500, cost_usd=0.1, cpu_s=0.1),
        record(2, duration_s=2, tokens_used=500, cost_usd=0.2),
        record(3, duration_s=1),
    ]
    expected = Total(attempts=3, duration_s=4.5, cpu_s=0.1, tokens_used=1000, cost_usd=0.3)
    assert total_of(records) == total_of(records[::-1]) == expected


def test_without_records_there_is_no_sum() -> None:
    assert total_of([]) is None


def test_a_record_with_a_sum_speaks_for_those_before_it() -> None:
    said = Total(attempts=40, duration_s=80.0, tokens_used=7)
    records = [
        record(41, duration_s=1, tokens_used=2),
        record(40, duration_s=2, total=said),
        record(39, duration_s=2),
    ]
    assert total_of(records) == Total(attempts=41, duration_s=81.0, tokens_used=9)


def test_of_two_records_of_one_attempt_both_ran() -> None:
    said = Total(attempts=2, duration_s=3.0)
    fenced = record(2, duration_s=10, total=said)
    assert total_of([fenced, record(2, duration_s=1), record(1, duration_s=2)]) == Total(attempts=3, duration_s=4.0)


def test_no_sum_is_more_than_an_amount() -> None:
    most = (1 << 64) - 1
    huge = Total(attempts=most, duration_s=1e308, cpu_s=1e308, tokens_used=most, cost_usd=1e308)
    both = plus(huge, huge)
    assert Total.model_validate(codec.load(codec.dump(both.model_dump()), "x")) == both
    assert (both.attempts, both.duration_s, both.cpu_s, both.tokens_used, both.cost_usd) == (MOST,) * 5


def test_what_workers_have_spent_is_added_up() -> None:
    silent, one = beat(AT), beat(AT).model_copy(update={"spent": Total(attempts=2, tokens_used=3)})
    assert spent_by([silent]) is None
    assert spent_by([silent, one, one]) == Total(attempts=4, tokens_used=6)


def beat(since: str, at: str = AT, frozen_s: float = 0) -> Heartbeat:
    return Heartbeat(
        node="w1",
        role="worker",
        beat=40,
        at=at,
        host=HostId(hostname="h"),
        pid=1,
        process_start=1,
        version="0",
        status="working",
        interval_s=6,
        running=(Running(id="A", attempt=2, type="command", since=since, frozen_s=frozen_s),),
    )


def test_the_last_beat_tells_how_long_an_attempt_ran_at_least() -> None:
    since = "2026-02-02T09:00:00.000Z"
    assert last_seen(beat(since), BeatName("w1", 40), "a", 2) == (since, 80.0, 0)
    # Renewed three times since it was written, each time after 4 s.
    assert last_seen(beat(since), BeatName("w1", 43, 40), "a", 2) == (since, 92.0, 0)


def test_the_time_for_which_an_attempt_was_frozen_is_no_part_of_how_long_it_ran() -> None:
    since = "2026-02-02T09:00:00.000Z"
    assert last_seen(beat(since, frozen_s=30.5), BeatName("w1", 40), "a", 2) == (since, 49.5, 30.5)
    assert last_seen(beat(since, frozen_s=90), BeatName("w1", 40), "a", 2) == (since, 0, 90)


def test_no_figure_of_a_beat_makes_a_record_that_cannot_be_read() -> None:
    said = beat(AT).model_copy(update={"interval_s": 1e308})
    ran = last_seen(said, BeatName("w1", 10**9, 40), "a", 2)
    assert ran is not None
    assert record(1, duration_s=ran.ran_s) == codec.load_model(
        Result, codec.dump(record(1, duration_s=ran.ran_s).model_dump()), "x"
    )


@pytest.mark.parametrize(("task", "attempt"), [("a", 1), ("b", 2)])
def test_a_beat_that_does_not_show_it_tells_nothing(task: str, attempt: int) -> None:
    assert last_seen(beat(AT), BeatName("w1", 40), task, attempt) is None


@pytest.mark.parametrize(("since", "ran"), [("gibberish", None), ("2026-02-02T09:00:00", None)])
def test_stamps_that_cannot_be_read_tell_nothing(since: str, ran: object) -> None:
    assert last_seen(beat(since), BeatName("w1", 40), "a", 2) is ran


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    later = "2026-02-02T10:00:00.000Z"
    assert last_seen(beat(later), BeatName("w1", 40), "a", 2) == (later, 0.0, 0)


@pytest.mark.parametrize("seed", range(30))
def test_a_tree_is_the_sum_of_its_tasks_each_once(seed: int) -> None:
    """Random forests, with parents that are not there, rings, and figures that nobody tells."""
    chance = random.Random(seed)
    own = {
        f"t{k}": Tree(1, chance.choice((None, float(chance.randrange(1000)))), chance.choice((None, 0.25, 1.5)))
        for k in range(chance.randint(1, 30))
    }
    parents = {name: f"t{chance.randrange(35)}" for name in own if chance.random() < 0.8} | {"gone": "t0"}
    found = trees(own, parents)
    assert set(found) == {parent for child, parent in parents.items() if child in own and parent in own}
    for root, whole in found.items():
        inside = {root}
        while more := {child for child, parent in parents.items() if parent in inside and child in own} - inside:
            inside |= more
        tokens = [own[one].tokens_used for one in inside if own[one].tokens_used is not None]
        cost = [own[one].cost_usd for one in inside if own[one].cost_usd is not None]
        assert whole.tasks == len(inside)
        assert whole.tokens_used == (sum(map(float, filter(None, tokens))) if tokens else None)
        assert whole.cost_usd == (sum(map(float, filter(None, cost))) if cost else None)


def test_a_branch_is_itself_with_what_is_below_it() -> None:
    child = Tree(3, 100.0, None)
    assert tree_of(Tree(1, None, 0.5), [child, child]) == Tree(7, 200.0, 0.5)
    assert tree_of(Tree(1, 5.0, None), []) == Tree(1, 5.0, None)
