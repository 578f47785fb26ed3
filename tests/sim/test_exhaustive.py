"""A part of the exhaustive mode in every run of the tests; and that it would notice."""

from __future__ import annotations

import pytest

from spoold.worker.attempts.settling import Settling
from tests.sim import exhaustive
from tests.sim.schedules import number_of_schedules


def test_some_crash_points_of_every_story_and_the_schedules_with_one_preemption(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exhaustive.main(["--quick"]) == 0, capsys.readouterr().out


def test_a_commit_without_its_result_is_noticed_and_can_be_replayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Settling, "_write_result", lambda *_, **__: None)
    assert exhaustive.main(["--replay", "crash/first task/w1:1:before:there"]) == 1
    assert exhaustive.main(["--replay", "schedule/a commit and its child/0:w1"]) == 1
    assert "result before commit" in capsys.readouterr().out


def test_schedules_are_counted() -> None:
    # Two processes of two calls: ab in two orders; with one preemption aba and bab too; with two abab and baba.
    assert [number_of_schedules([2, 2], n) for n in range(4)] == [2, 4, 6, 6]
