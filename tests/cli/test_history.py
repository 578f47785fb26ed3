"""`spool history` and `spool events --since`: what happened, as a story and as it was noted."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import make
from tests.cli.commands import spool
from tests.cli.test_verbs import end

NOW = datetime.now(UTC).replace(microsecond=0)


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    end(root, "Bad", "failed")
    lines: list[dict[str, Any]] = [
        {"at": ago(7200), "writer": "m1", "event": "ADMITTED", "task": "Bad", "attempt": 1},
        {"at": ago(3000), "writer": "m1", "event": "ADMITTED", "task": "badly", "attempt": 1},
        {
            "at": ago(7000),
            "writer": "m1",
            "event": "FILES_CHANGED",
            "task": "Bad",
            "attempt": 1,
            "detail": {"began": 1795883703.75, "ended": 1795883704.5, "files": ["a.txt", "b.txt"]},
        },
        {"at": ago(60), "writer": "m1", "event": "IGNORED", "task": "Bad", "detail": {"why": "\x1b[2J no"}},
        {"at": "yesterday", "writer": "m1", "event": "LEADING", "detail": {"holder": "Bad"}},
        {"at": ago(30).removesuffix("Z"), "writer": "m1", "event": "ALERT_CLEARED"},
    ]
    (root / "events" / "m1.0.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return root


def test_a_task_has_its_story_with_what_only_its_result_says(root: Path) -> None:
    done = spool("history", "bad", root=root)
    head, header, *lines = done.lines
    assert head == "Bad (failed, attempt 1)"
    assert header.split() == ["AT", "AFTER", "ATTEMPT", "BY", "WHAT"]
    admitted, changed, ignored, ended = (" ".join(line.split()) for line in lines)
    assert admitted == f"{ago(7200)} 0.0 s 1 m1 admitted"
    assert changed.endswith("m1 changed 2 files: a.txt, b.txt"), "and no number of seconds since 1970"
    assert ended.endswith("ended without success after 1.5 s: exit code 3 (EXIT_NONZERO) (as its result says)")
    assert ignored == f"{ago(60)} 1 h 59 m - m1 a request about it was ignored: [2J no"
    assert "\x1b" not in done.out
    found = json.loads(spool("history", "bad", "--json", root=root).out)
    assert (found["id"], found["state"]) == ("Bad", "failed")
    assert [(one["event"], one["source"]) for one in found["history"] if one["source"] == "journal"] == [
        ("ADMITTED", "journal"),
        ("FILES_CHANGED", "journal"),
        ("IGNORED", "journal"),
    ]


def test_a_task_of_which_no_journal_tells_says_so(root: Path) -> None:
    (root / "events" / "m1.0.jsonl").unlink()
    (root / "pending" / "new.json").write_text('{"command": ["true"]}')
    done = spool("history", "new.json", root=root)
    assert (done.code, done.lines) == (0, ["new.json (pending, attempt 0)"])
    assert "no journal tells of it" in done.err
    assert spool("history", "nosuch", root=root).code == 4


def test_events_of_one_task_and_since_a_moment(root: Path) -> None:
    def seen(*words: str) -> list[str]:
        done = spool("events", "--json", *words, root=root)
        assert done.code == 0, done.err
        return [json.loads(line)["event"] for line in done.lines]

    assert sorted(seen("--task", "BAD")) == ["ADMITTED", "FILES_CHANGED", "IGNORED"]
    assert sorted(seen("--since", "30m")) == ["ALERT_CLEARED", "IGNORED", "LEADING"], "no stamp is no age"
    assert sorted(seen("--since", ago(3600), "--task", "badly")) == ["ADMITTED"]
    assert seen("--since", ago(3600), "--task", "Bad") == ["IGNORED"]


@pytest.mark.parametrize("word", ["yesterday", "2026-01-31", "999999999999d"])
def test_a_time_that_is_none_says_how_to_write_one(root: Path, word: str) -> None:
    done = spool("events", "--since", word, root=root)
    assert done.code == 2
    assert f"--since: {word!r} is no time. Fix: write how long ago" in done.err
