"""The order in which a worker takes what is ready: by age, and nobody is passed over for ever."""

from __future__ import annotations

from spoold.rules.workers.passing import Passing


def offers(*files: str) -> list[tuple[str, str]]:
    return [(file, "type=a") for file in files]


def test_where_tasks_come_by_age_that_is_the_order() -> None:
    passing = Passing(1)
    for number in range(50):
        standing = offers(*(f"5000.{n:03d}" for n in range(number, number + 10)))
        passing.order(listed := list(reversed(standing)))
        assert listed == standing
        passing.claimed(standing[0][0], standing[1:])


def test_older_ones_that_come_later_pass_a_task_so_often_and_no_more() -> None:
    passing, taken = Passing(4), list[str]()
    standing = {"5000.900"}
    for number in range(12):
        standing |= {f"5000.{number:03d}"}
        passing.order(listed := offers(*standing))
        file = listed.pop(0)[0]
        passing.claimed(file, listed)
        standing.remove(file)
        taken.append(file)
    assert taken.index("5000.900") == 5, "one was there as early; then four that came later"


def test_more_urgent_ones_pass_as_many_as_there_are() -> None:
    passing = Passing(2)
    for number in range(20):
        passing.order(listed := offers("5000.900", f"4990.{number:03d}"))
        assert listed[0][0].startswith("4990")
        passing.claimed(listed[0][0], listed[1:])
