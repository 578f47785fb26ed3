"""Several threads wait for the disk: each item is written once, and what failed is told from what did not."""

from __future__ import annotations

import threading

import pytest

from spoold.worker.attempts.settling import Writers


@pytest.mark.parametrize("slots", [1, 2, 3, 64])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_each_is_written_once_however_many_hands_there_are(slots: int, count: int) -> None:
    tried: list[int] = []

    def write(item: int) -> bool:
        tried.append(item)
        return item % 3 != 1

    writers = Writers(slots)
    written = writers.write(write, list(range(count)))
    writers.close()
    assert sorted(tried) == list(range(count))
    assert sorted(written) == [item for item in range(count) if item % 3 != 1]


def test_as_many_write_at_once_as_there_are_slots() -> None:
    together = threading.Barrier(4, timeout=30)
    writers = Writers(4)
    assert len(writers.write(lambda _: together.wait() >= 0, [1, 2, 3, 4])) == 4
    writers.close()


def test_an_error_of_ours_is_not_lost_in_a_thread() -> None:
    def write(item: int) -> bool:
        if item == 2:
            raise ValueError("a bug")
        return True

    writers = Writers(3)
    with pytest.raises(ValueError, match="a bug"):
        writers.write(write, [1, 2, 3])
    writers.close()
