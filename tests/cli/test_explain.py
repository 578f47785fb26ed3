"""Goal: `spool explain` prints the verdict, each reason with what would change it, and the same as JSON."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import leader, make, spool, told


def test_a_task_that_waits_for_nobody(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    task = '{"id": "a", "type": "review", "dependencies": ["ghost"]}'
    (directory / "pending" / "a.json").write_text(task)
    leader(directory)
    result = spool(directory, "explain", "a")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "a (waiting, attempt 1): it waits for ghost, not submitted yet",
        "  what would change it (dependencies): submit ghost, or cancel this task and submit it without",
        "  workers: no worker is alive",
        "  what would change it (workers): start one that can run type=review",
    ]
    answer = told(directory, "explain", "a")
    assert answer == {
        "id": "a",
        "state": "waiting",
        "attempt": 1,
        "verdict": "it waits for ghost, not submitted yet",
        "reasons": [
            {
                "gate": "dependencies",
                "reason": "it waits for ghost, not submitted yet",
                "change": "submit ghost, or cancel this task and submit it without",
                "until": None,
            },
            {
                "gate": "workers",
                "reason": "no worker is alive",
                "change": "start one that can run type=review",
                "until": None,
            },
        ],
    }


def test_an_unknown_task_has_its_own_exit_code(tmp_path: Path) -> None:
    result = spool(make(tmp_path / "s"), "explain", "nobody")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "'nobody'" in result.stderr


def test_a_drop_that_wanted_the_id_of_another_task_is_told_with_that_task(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    (directory / "pending" / "case.json").write_text('{"id": "case", "type": "review"}')
    master = leader(directory)
    assert "rejected" not in spool(directory, "explain", "case").stdout
    assert spool(directory, "submit", "--id", "Case", "--", "true").exit_code == 0
    master.step()
    for task_id in ("case", "Case"):
        said = spool(directory, "explain", task_id).stdout
        assert "another drop with this id was rejected: " in said
        assert "'Case' is taken by a task with other content (ids that differ by case alone count as one)." in said
        assert "choose another id" in said
    master.close()
    assert (
        "1 drop was rejected" in spool(directory, "status").stdout or told(directory, "status")["tasks"]["rejected"]
    )
