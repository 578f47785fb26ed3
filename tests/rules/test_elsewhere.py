"""An attempt that its worker cannot run charges nothing while another worker, that could run it, has not tried."""

from __future__ import annotations

from typing import Any

import pytest

from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName
from spoold.rules.attempts import attempt_outcome
from spoold.rules.attempts.attempt_outcome import Charge
from spoold.rules.workers.matching import able, passed_on, pause_s, shuns, surely_untried, unfit

REVIEW = Lane("review")


def beat(node: str, status: str = "idle", **can: Any) -> Heartbeat:
    """A worker that has a handler for reviews, unless it says otherwise."""
    capabilities = None if can.pop("unsaid", False) else {"cpus": 4, "mem_mb": 1000, "handlers": ("review",), **can}
    fields = {"node": node, "role": "worker", "beat": 1, "at": "", "host": {"hostname": node}, "pid": 1}
    fields |= {"process_start": 1, "version": "", "status": status, "capabilities": capabilities}
    return Heartbeat.model_validate(fields)


@pytest.mark.parametrize(
    ("other", "could"),
    [
        (beat("w2"), True),
        (beat("w2", "working"), True),
        (beat("w2", "halted"), True),
        (beat("w2", "draining"), False),
        (beat("w2", "asleep"), False),
        (beat("w2", handlers=()), False),
        (beat("w2", handlers=(), lacks={"review": "it lacks the program codex"}), False),
        (beat("w2", shuns={"review": "it could not run the last one"}), True),
        (beat("w2", unsaid=True), True),
        (None, True),
    ],
)
def test_who_could_run_it(other: Heartbeat | None, could: bool) -> None:
    beats = {"w1": beat("w1"), "m1": beat("m1")} | ({"w2": other} if other is not None else {})
    assert able("w1", REVIEW, ["w1", "w2"], beats) == ({"w2"} if could else set())


@pytest.mark.parametrize(
    ("attempt", "failures", "crashes", "others", "untried"),
    [(1, 0, 0, 1, True), (2, 0, 0, 1, False), (2, 1, 0, 1, True), (3, 1, 1, 1, True), (3, 0, 0, 3, True)],
)
def test_too_few_attempts_for_all_to_have_tried(
    attempt: int, failures: int, crashes: int, others: int, untried: bool
) -> None:
    name = TaskName(5000, "hff58yhhc0-3", "t", attempt, failures, crashes)
    assert surely_untried(name, [f"w{number}" for number in range(others)]) is untried


def test_what_is_passed_on_charges_nothing_and_is_never_final() -> None:
    lost = attempt_outcome.of_exit(127, frozenset({3}), frozenset())
    assert (lost.elsewhere, lost.final, lost.charge) == (True, True, Charge.FAILURE)
    found = passed_on(lost, {"w2", "w3"})
    assert (found.final, found.charge, found.code) == (False, Charge.NOTHING, lost.code)
    assert found.message == "exit code 127 (program not found); left to w2, w3"


def test_a_code_that_the_task_names_as_final_is_not_passed_on() -> None:
    assert not attempt_outcome.of_exit(127, frozenset(), frozenset({127})).elsewhere
    assert not attempt_outcome.of_exit(1, frozenset(), frozenset()).elsewhere
    assert attempt_outcome.unable("no").elsewhere
    here = attempt_outcome.unable_here("no")
    assert (here.elsewhere, here.charge) == (True, Charge.NOTHING)


def test_a_worker_keeps_away_for_longer_each_time() -> None:
    assert [pause_s(failed) for failed in range(-1, 5)] == [0, 0, 5, 10, 20, 40]
    assert pause_s(10**6) == 600


def test_what_a_worker_lacks_or_shuns_is_said_in_its_words() -> None:
    lacking = Capabilities(cpus=1, mem_mb=1, lacks={"review": "it lacks the program codex"})
    assert unfit(REVIEW, lacking) == "it lacks the program codex"
    shy = Capabilities(cpus=1, mem_mb=1, handlers=("review",), allow_command=True, shuns={"review": "why"})
    assert (unfit(REVIEW, shy), shuns(REVIEW, shy)) == (None, "why")
    assert shuns(Lane("review", run="command"), shy) is None, "each command is another program"
    shy = Capabilities(cpus=1, mem_mb=1, python=("m",), shuns={"py=m.jobs": "why"})
    assert shuns(Lane("python", run="python", module="M.jobs"), shy) == "why"
    assert [shuns(Lane(*of), shy) for of in (("m.jobs",), ("python", "python", "", 0, 0, 0, (), "m"))] == [None, None]
