"""The fault of one input sets that input aside, is told once, and rests; an error of the share passes."""

from __future__ import annotations

import errno
import logging
from typing import Any

import pytest

from spoold.protocol.errors import BadFile, ShutOut
from spoold.store.contained_faults import REST_MOST_S, REST_S, TOLD_S, TRIES, Faults, Handling, told_of
from spoold.store.existence import reading
from spoold.system.clock import ManualClock
from tests.support.injected import KINDS, Injected, Memory, Recursion, as_shipped


class Notes(list[tuple[Any, ...]]):
    """The events that were noted."""

    def __call__(self, *event: Any, **detail: Any) -> None:
        self.append((*event, detail))


def made() -> tuple[Faults, ManualClock, Notes]:
    clock, notes = ManualClock(), Notes()
    faults = Faults(clock)
    faults.note = notes
    return faults, clock, notes


def fail(faults: Faults, error: BaseException, name: str = "a.json", task: str | None = None) -> Handling:
    with faults.handling("drop", name, task) as handling:
        raise error
    return handling


@pytest.mark.parametrize("kind", KINDS)
def test_any_exception_is_contained_and_names_its_input(kind: type[Injected]) -> None:
    faults, _, notes = made()
    fault = fail(faults, kind("injected"), task="a").fault
    assert fault is not None
    assert (fault.kind, fault.name, fault.task, fault.tries) == ("drop", "a.json", "a", 1)
    assert [event[:2] for event in notes] == [("FAULT", "a")]
    assert kind.__name__ in faults.notes[0]
    assert "drop a.json of task a" in faults.notes[0]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "gone"), ShutOut("gone"), KeyboardInterrupt(), SystemExit(1)])
def test_an_error_of_the_share_and_an_order_to_end_pass(error: BaseException) -> None:
    faults, _, notes = made()
    with as_shipped(), pytest.raises(type(error)):
        fail(faults, error)
    assert (faults.count, faults.notes, notes) == (0, (), [])


def test_every_exception_of_the_product_is_contained_for_users_and_none_that_is_not_injected_in_tests() -> None:
    faults, _, _ = made()
    with pytest.raises(ZeroDivisionError):
        fail(faults, ZeroDivisionError())
    with as_shipped():
        assert fail(faults, ZeroDivisionError()).fault is not None


def test_one_traceback_and_one_event_however_often_it_comes(caplog: pytest.LogCaptureFixture) -> None:
    faults, clock, notes = made()
    with caplog.at_level(logging.ERROR, "spoold"):
        for _ in range(5):
            fail(faults, Recursion("deep"))
            clock.advance(REST_MOST_S)
    assert (faults.count, len(notes), len(faults.notes)) == (5, 1, 1)
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is not None
    fail(faults, Memory("short"))
    assert len(notes) == 2  # another fault of the same input is news


def test_an_input_rests_longer_each_time_and_no_other_rests_with_it() -> None:
    faults, clock, _ = made()
    rest_s = REST_S
    for _ in range(12):
        fail(faults, Recursion("deep"))
        assert faults.rests("drop", "a.json")
        assert not faults.rests("drop", "b.json")
        clock.advance(rest_s - 0.1)
        assert faults.rests("drop", "a.json")
        clock.advance(0.2)
        assert not faults.rests("drop", "a.json")
        rest_s = min(REST_MOST_S, 2 * rest_s)


def test_an_input_that_is_handled_after_all_is_told_no_more() -> None:
    faults, _, _ = made()
    fail(faults, Memory("short"))
    with faults.handling("drop", "a.json") as handling:
        pass
    assert handling.fault is None
    assert faults.notes == ()


def test_a_fault_that_does_not_come_again_is_forgotten() -> None:
    faults, clock, _ = made()
    fail(faults, Recursion("deep"))
    clock.advance(TOLD_S + 1)
    assert faults.notes == ()


def test_only_short_memory_may_pass_and_not_for_ever() -> None:
    faults, _, _ = made()
    fault = fail(faults, Recursion("deep")).fault
    assert fault is not None
    assert fault.lasts
    lasting = [fault.lasts for _ in range(TRIES) if (fault := fail(faults, Memory("short"), "b.json").fault)]
    assert lasting == [False] * (TRIES - 1) + [True]


def test_reading_makes_a_fault_the_error_of_the_file_and_leaves_what_is_one_already() -> None:
    faults, _, notes = made()
    with (
        pytest.raises(BadFile, match=r"x\.json.*made spoold itself fail.*please report"),
        faults.reading("record", "results/x.json"),
    ):
        raise Recursion("deep")
    with pytest.raises(BadFile, match="is empty"), faults.reading("record", "results/y.json"):
        raise BadFile("y", "", "is empty.", "fill it.")
    assert len(notes) == 1


def test_reading_knows_the_node_whose_step_runs_and_is_loud_without_one() -> None:
    faults, _, _ = made()
    with pytest.raises(Recursion), reading("record", "x"):
        raise Recursion("deep")
    with faults.current(), pytest.raises(BadFile), reading("record", "x"):
        raise Recursion("deep")
    assert faults.count == 1


def test_explain_finds_the_fault_of_a_task() -> None:
    faults, _, _ = made()
    with faults.handling("waiting task", "a", "a", 1):
        raise Recursion("deep")
    with faults.handling("record", "results/b.1.w.json", "b", 1):
        raise Recursion("deep")
    notes = ["its battery is low", *faults.notes]
    assert "waiting task a made spoold" in told_of("a", notes)
    assert "record results/b.1.w.json of task b" in told_of("b", notes)
    assert told_of("c", notes) == ""
