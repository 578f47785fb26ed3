"""A later attempt goes on from the last step that is whole, on whatever machine, and nothing is replaced."""

from __future__ import annotations

from typing import Any

import pytest

from spoold import task
from spoold.client.context_and_steps import Steps
from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import SpoolError
from spoold.store.tree_repair import survey
from tests.client.cluster import Cluster


class Attempts:
    """The attempts of one task, each with a connection of its own, as on another machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = Cluster()
        self._patch = monkeypatch

    def steps(self, attempt: int, task_id: str = "Build") -> Steps:
        """The steps as this attempt sees them."""
        spool = SpoolClient("spool", filesystem=self.cluster.fs, clock=self.cluster.clock)
        for name, value in (("ROOT", spool.directory), ("TASK_ID", task_id), ("ATTEMPT", str(attempt))):
            self._patch.setenv(f"SPOOL_{name}", value)
        return Steps(spool)

    def files(self) -> list[str]:
        """The files of the steps."""
        return sorted(path.removeprefix("steps/build/") for path in self.cluster.fs.files("steps"))


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    return Attempts(monkeypatch)


def test_the_next_attempt_goes_on(attempts: Attempts) -> None:
    first = attempts.steps(1)
    assert first.last() is None
    assert [first.save({"done": number}) for number in range(5)] == [1, 2, 3, 4, 5]
    second = attempts.steps(2)
    assert second.last() == (5, {"done": 4})
    assert second.save("x") == 6
    assert second.last() == (6, "x")
    assert attempts.steps(1, "other").last() is None


def test_only_the_last_of_an_attempt_are_kept(attempts: Attempts) -> None:
    first = attempts.steps(1)
    for number in range(6):
        first.save(number)
    assert [name.split(".")[0] for name in attempts.files()] == ["4", "5", "6"]
    attempts.steps(2).save("x")
    assert [name.split(".")[:2] for name in attempts.files()] == [["4", "1"], ["5", "1"], ["6", "1"], ["7", "2"]]


@pytest.mark.parametrize("damage", [b"", b'{"sum": "x", "va', b'{"sum": "0", "value": 3}', b"\x00" * 100])
def test_a_step_that_is_not_whole_was_none(attempts: Attempts, damage: bytes) -> None:
    first = attempts.steps(1)
    for number in (1, 2, 3):
        first.save(number)
    for name in attempts.files()[1:]:
        attempts.cluster.fs.write(f"steps/build/{name}", damage, durable=False)
    second = attempts.steps(2)
    assert second.last() == (1, 1)
    assert second.save("on") == 4
    assert attempts.steps(3).last() == (4, "on")


def test_an_attempt_that_lives_on_elsewhere_is_not_gone_on_from(attempts: Attempts) -> None:
    old = attempts.steps(1)
    old.save("old")
    new = attempts.steps(2)
    new.save("new")
    old.save("late")
    assert new.last() == (2, "new")
    assert attempts.steps(3).last() == (2, "new")
    assert old.last() == (3, "late")


@pytest.mark.parametrize("value", [{1: "a"}, (1, 2), float("nan"), object(), "x" * (2 << 20), (1, {2})])
def test_what_does_not_come_back_the_same_is_refused(attempts: Attempts, value: Any) -> None:
    steps = attempts.steps(1)
    with pytest.raises(SpoolError, match="a step ha"):
        steps.save(value)
    assert attempts.files() == []


def test_a_spool_of_an_earlier_release(attempts: Attempts) -> None:
    attempts.cluster.fs.rmdir("steps")
    steps = attempts.steps(1)
    assert steps.last() is None
    assert steps.save(1) == 1


def test_an_audit_knows_them(attempts: Attempts) -> None:
    attempts.steps(1).save(1)
    attempts.cluster.fs.write("steps/build/strange", b"", durable=False)
    attempts.cluster.fs.mkdir("steps/No")
    found = [path for path in survey(attempts.cluster.store).foreign if path.startswith("steps/")]
    assert found == ["steps/No", "steps/build/strange"]


def test_outside_of_a_task_nothing_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert task.checkpoint(1) == 0
    assert task.restore("default") == "default"
    cluster = Cluster()
    with pytest.raises(SpoolError, match="no task of this spool"):
        Steps(SpoolClient("spool", filesystem=cluster.fs, clock=cluster.clock))
