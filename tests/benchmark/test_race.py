"""Races are run turn by turn, and only runs of the same turn are compared."""

from collections.abc import Sequence
from pathlib import Path

from tools.benchmark.bench import SCALES, Bench
from tools.benchmark.figure import Target
from tools.benchmark.machine import Place
from tools.benchmark.order import Order, Outcome
from tools.benchmark.peers import Peers
from tools.benchmark.race import Entry, Goal, compared, flatness, race, rates

PLACE = Place("/nowhere", "ext4")
ENTRIES = (Entry("ours", "spoold"), Entry("theirs", "huey", deepest=1000))


class Told(Bench):
    """A bench whose contenders answer from a list, and which remembers who was asked."""

    asked: list[tuple[str, int]]
    answers: list[Outcome]

    def run(self, contender: str, place: Place, order: Order) -> Outcome:
        del place
        self.asked.append((contender, order.tasks))
        return self.answers.pop(0)


def told(answers: Sequence[Outcome]) -> Told:
    bench = Told(SCALES["quick"], (PLACE,), Peers(Path("/nowhere")))
    object.__setattr__(bench, "asked", [])
    object.__setattr__(bench, "answers", list(answers))
    return bench


def test_the_entries_take_turns() -> None:
    bench = told([Outcome(rate=1.0)] * 20)
    results = race(bench, "part", "call", PLACE, ENTRIES, (1000, 10_000))
    turn = [("spoold", 1000), ("huey", 1000), ("spoold", 10_000)]
    assert bench.asked == [*turn, *turn, ("spoold", 1000), ("huey", 1000)]
    assert {key: len(outcomes) for key, outcomes in results.items()} == {
        ("ours", 1000): 3,
        ("theirs", 1000): 3,
        ("ours", 10_000): 2,
    }


def test_a_backlog_of_chunks_is_counted_in_tasks_and_its_rate_in_calls() -> None:
    bench = told([Outcome(rate=300.0, done=100_000)] * 3)
    chunks = (Entry("ours", "spoold", chunk=100),)
    results = race(bench, "part", "call", PLACE, chunks, (1000,))
    assert bench.asked == [("spoold", 100_000)] * 3
    (figure,) = rates("part", "map", PLACE, chunks, results)
    assert (figure.key["backlog"], figure.value, figure.note) == (1000, 300.0, "")


def test_what_is_missing_is_a_figure_that_says_so() -> None:
    results = {
        ("ours", 1000): [Outcome(rate=10.0, lost=1, done=999)],
        ("theirs", 1000): [Outcome(missing="no such package")],
    }
    ours, theirs = rates("part", "call", PLACE, ENTRIES, results)
    assert (ours.value, ours.more["lost"], ours.key["backlog"]) == (10.0, 1, 1000)
    assert (theirs.value, theirs.note) == (None, "missing: no such package")
    (ratio,) = compared("part", "call", PLACE, [Goal("ours", "theirs", Target(2))], results)
    assert ratio.holds is False


def test_a_goal_counts_where_it_is_meant_to() -> None:
    results = {
        (name, tasks): [Outcome(rate=float(tasks))] for name in ("ours", "theirs") for tasks in (10, 100, 1000)
    }
    goals = [Goal("ours", "theirs", Target(1), least=100, most=100)]
    assert [figure.name for figure in compared("part", "call", PLACE, goals, results)] == ["ext4 100: ours / theirs"]


def test_flatness_is_the_rate_at_depth_over_the_rate_at_the_least() -> None:
    results = {
        ("ours", tasks): [Outcome(rate=rate)] for tasks, rate in ((1000, 50.0), (10_000, 45.0), (100_000, 30.0))
    }
    shallow, deep = flatness("part", PLACE, "ours", results, Target(0.8))
    assert (shallow.value, shallow.target) == (0.9, None)
    assert (deep.value, deep.holds) == (0.6, False)
