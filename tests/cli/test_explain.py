"""Goal: `spool explain` prints the verdict, each reason with what would change it, and the same as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import leader, make, spool, told
from tests.cli.test_verbs import end

START = (
    'start a worker: `spool worker --config worker.toml`, with `[handlers.review]` and its `command = ["PROGRAM"]` '
    "(of an agent `[agents.review]` and its `cli`) in worker.toml"
)


def test_a_task_that_waits_for_nobody(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    task = '{"id": "a", "type": "review", "dependencies": ["ghost"]}'
    (directory / "pending" / "a.json").write_text(task)
    leader(directory)
    result = spool(directory, "explain", "a")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "a (waiting, attempt 1): it waits for ghost, which this spool does not know",
        "  what would change it (dependencies): submit ghost, or cancel this task and submit it without",
        "  workers: no worker is alive",
        f"  what would change it (workers): {START}",
    ]
    answer = told(directory, "explain", "a")
    assert answer == {
        "id": "a",
        "state": "waiting",
        "attempt": 1,
        "verdict": "it waits for ghost, which this spool does not know",
        "reasons": [
            {
                "gate": "dependencies",
                "reason": "it waits for ghost, which this spool does not know",
                "change": "submit ghost, or cancel this task and submit it without",
                "until": None,
            },
            {
                "gate": "workers",
                "reason": "no worker is alive",
                "change": START,
                "until": None,
            },
        ],
        "last_line": "",
    }


def fails(directory: Path, task_id: str, log: str, code: str = "MAX_RETRIES") -> None:
    """A task that failed, with what it wrote."""
    name = f"{task_id}.1.w-aaaaa.log"
    (directory / "logs" / name).write_text(log)
    end(directory, task_id, "failed", error={"code": code, "message": "exited with code 2"}, log=name)


def test_a_task_that_failed_by_itself_says_what_it_wrote_last(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    fails(directory, "bad", "hello\ncause: \x1b[31mno file\x1b[0m\n\n")
    leader(directory)
    verdict, *more = spool(directory, "explain", "bad").stdout.splitlines()
    assert verdict.endswith("MAX_RETRIES: exited with code 2")
    assert more == [
        "  the last line of its output: cause: \\x1b[31mno file\\x1b[0m",
        "  what would change it (failed): `spool logs bad` has all it wrote; fix the cause, then `spool retry bad`",
    ]
    assert told(directory, "explain", "bad")["last_line"] == "cause: \x1b[31mno file\x1b[0m"


def test_a_last_line_of_any_length_is_cut(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    fails(directory, "long", "x" * 100_000)
    line = spool(directory, "explain", "long").stdout.splitlines()[1]
    assert line == f"  the last line of its output: {'x' * 199}…"


@pytest.mark.parametrize("log", ["other.1.w-aaaaa.log", "../spool.toml", "gone.1.w-aaaaa.log", ""])
def test_a_name_that_is_no_log_of_the_task_is_not_opened(tmp_path: Path, log: str) -> None:
    directory = make(tmp_path / "s")
    fails(directory, "other", "secret\n")
    end(directory, "gone", "failed", log=log)
    assert "output" not in spool(directory, "explain", "gone").stdout
    assert spool(directory, "wait", "gone").stderr == "gone failed: EXIT_NONZERO: exit code 3\n"


def test_a_wait_for_a_task_that_failed_says_what_it_wrote_last(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    fails(directory, "bad", "hello\ncause:\x07 no file\n")
    result = spool(directory, "wait", "bad")
    assert result.exit_code == 1
    assert result.stderr == (
        "bad failed: MAX_RETRIES: exited with code 2; its last line: cause:\\x07 no file "
        "(`spool logs bad` has all it wrote)\n"
    )
    fails(directory, "gone", "hello\n", "CANCELLED")
    assert "hello" not in spool(directory, "wait", "gone").stderr


def test_the_work_of_an_agent_is_named_where_people_look(tmp_path: Path) -> None:
    """A newcomer saw only that it had completed: files, reference and merge were in `spool result` alone."""
    directory = make(tmp_path / "s")
    place = {"repo": "/srv/git/app.git", "base": "b", "ref": "refs/spool/a/1", "commit": "c"}
    output = {"outcome": "done", "changed_files": ["x", "y"], "workspace": place, "merge": "a-merge"}
    end(directory, "a", output=output)
    work = "done, 2 changed files, in refs/spool/a/1 of /srv/git/app.git; a-merge merges it"
    assert f"work         {work}" in spool(directory, "show", "a").stdout.splitlines()
    said = spool(directory, "explain", "a").stdout
    assert said == f"a (completed, attempt 1): it completed on w-aaaaa at 2026-01-01T00:00:00Z, attempt 1: {work}\n"
    end(directory, "a-merge", output={"into": "main", "landed": [{"task": "a", "merge": "c0ffee"}], "refused": []})
    merged = work.replace("a-merge merges it", "merged as c0ffee into main")
    assert f"work         {merged}" in spool(directory, "show", "a").stdout.splitlines(), (
        "not that it is to be merged"
    )
    assert spool(directory, "explain", "a").stdout.endswith(f"attempt 1: {merged}\n")
    assert "work         merged as c0ffee into main" in spool(directory, "show", "a-merge").stdout.splitlines()
    end(directory, "b", output={**output, "merge": "b-merge"})
    end(directory, "b-merge", "failed", output={"into": "main", "landed": [], "reasons": ["b: tests failed"]})
    assert "; its merge failed: exit code 3 (b: tests failed)" in spool(directory, "show", "b").stdout.replace(
        "\n" + " " * 13, " "
    )
    end(directory, "plain", output={"outcome": "done"})
    assert "work  " not in spool(directory, "show", "plain").stdout


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
