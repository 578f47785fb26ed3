"""Verbs that take many tasks: by ids, or by batch, type and state."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spoold.faces.cli.terminal import output
from tests.cli.command import leader, make
from tests.cli.commands import Done, spool
from tests.cli.test_verbs import end, put, requests

Run = Callable[..., Done]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    end(root, "good")
    end(root, "bad", "failed")
    put(root, "ready/type=t/5000.0000000001-1.open.a1f0c0.json", {"id": "open", "type": "t", "batch": "b1"})
    put(root, "waiting/type=u/5000.0000000001-1.late.a1f0c0.json", {"id": "late", "type": "u", "batch": "b2"})
    put(root, "claimed/w-aaaaa/5000.0000000001-1.runs.a1f0c0.json", {"id": "runs", "type": "u", "batch": "b1"})
    return root


@pytest.fixture
def run(root: Path) -> Run:
    def call(*words: str, stdin: bytes = b"") -> Done:
        return spool(*words, stdin=stdin, root=root)

    return call


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("--batch b1", ["open", "runs"]),
        ("--type u", ["late", "runs"]),
        ("--type u --batch b1", ["runs"]),
        ("--type t,u --state ready,waiting", ["late", "open"]),
        ("--batch b1 --batch b2", ["late", "open", "runs"]),
        ("--state claimed", ["runs"]),
    ],
)
def test_a_selection_is_all_that_fits_and_has_not_ended(root: Path, run: Run, words: str, meant: list[str]) -> None:
    done = run("cancel", *words.split())
    assert (done.code, sorted(done.lines)) == (0, meant), done.err
    assert requests(root) == [("cancel", task_id) for task_id in meant]
    assert f"{len(meant)} task{'s' if len(meant) > 1 else ''} will be cancelled" in done.err


def test_only_failed_tasks_are_tried_again(root: Path, run: Run) -> None:
    assert run("retry", "--batch", "b1").lines == ["bad"]
    refused = run("retry", "--batch", "b1", "--state", "ready,failed")
    assert (refused.code, refused.lines) == (2, ["bad"])
    assert "open is ready; only a failed task can be retried" in refused.err


def test_an_unknown_id_does_not_keep_the_others(root: Path, run: Run) -> None:
    done = run("cancel", "nope", "open", "late")
    assert (done.code, done.lines) == (4, ["open", "late"])
    assert "no task 'nope'" in done.err
    assert requests(root) == [("cancel", "late"), ("cancel", "open")]
    told = json.loads(run("retry", "bad", "nope", "--json").out)
    assert (told["retry"], list(told["errors"])) == (["bad"], ["nope"])


def test_what_ended_is_not_asked_for_again(root: Path, run: Run) -> None:
    done = run("cancel", "good")
    assert (done.code, done.out, requests(root)) == (0, "", [])
    assert "good has completed already: there is nothing to cancel" in done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("cancel --state redy", 2, "'redy' is no state. Fix: did you mean 'ready'?"),
        ("cancel --type uu", 2, "no task and no worker is of type 'uu'"),
        ("retry --type u", 4, "no task fits --state failed --type u"),
        ("cancel --batch b11", 4, "Did you mean --batch b1?"),
        ("ls --type uuu", 2, "no task and no worker is of type 'uuu'"),
        ("wait --batch none", 4, "--batch none. `spool ls` shows those there are."),
        ("cancel", 2, "names no task"),
        ("cancel open --batch b1", 2, "has ids and a selection"),
    ],
)
def test_what_fits_nothing_says_so(root: Path, run: Run, words: str, code: int, said: str) -> None:
    done = run(*words.split())
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert requests(root) == []


def test_a_type_without_tasks_that_a_lane_a_worker_or_the_settings_name_is_known(root: Path, run: Run) -> None:
    (root / "ready" / "type=empty").mkdir()
    put(root, "heartbeats/w-aaaaa.1.json", {"capabilities": {"handlers": ["served"]}})
    for kind in ("empty", "served"):
        assert "no task fits" in run("cancel", "--type", kind).err
    end(root, "old", "failed")
    assert "no task fits" in run("cancel", "--type", "t", "--state", "waiting").err


def test_a_batch_that_nobody_has_admitted_yet_is_its_lines(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_text('{"id": "l1", "type": "t"}\n{"id": "l2", "type": "new"}\n')
    assert run("submit", str(tmp_path / "many.jsonl"), "--batch", "b3").code == 0
    assert run("ls", "-q", "--batch", "b3").lines == ["l1", "l2"]
    assert run("cancel", "--batch", "b3", "--type", "new").lines == ["l2"]
    leader(root).step()
    assert sorted(run("ls", "-q", "--batch", "b3").lines) == ["l1", "l2"]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "may_ask", lambda: True)


@pytest.mark.parametrize(
    ("count", "answer", "asks", "code"),
    [
        (10, b"", False, 0),
        (11, b"y\n", True, 0),
        (11, b"\n", True, 130),
        (11, b"", True, 130),
        (11, b"no\n", True, 130),
    ],
)
@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_many_tasks_are_asked_about(
    root: Path, run: Run, count: int, answer: bytes, asks: bool, code: int
) -> None:
    for number in range(count):
        put(root, f"ready/type=m/5000.0000000001-1.m{number}.a1f0c0.json", {"type": "m"})
    done = run("cancel", "--type", "m", stdin=answer)
    assert (done.code, "cancel 11 tasks? [y/N]" in done.err) == (code, asks)
    assert len(requests(root)) == (count if code == 0 else 0)
    if asks:
        assert run("cancel", "--type", "m", "--yes").code == 0


def test_without_a_terminal_nobody_is_asked(root: Path, run: Run) -> None:
    assert not sys.stdin.isatty()
    for number in range(20):
        put(root, f"ready/type=m/5000.0000000001-1.m{number}.a1f0c0.json", {"type": "m"})
    assert len(run("cancel", "--type", "m").lines) == 20


def test_wait_and_show_take_many(root: Path, run: Run) -> None:
    assert run("wait", "--batch", "b1", "--state", "completed").code == 0
    assert run("wait", "--batch", "b1", "--state", "completed,failed").code == 1
    assert run("wait", "good", "nope").code == 4
    told = json.loads(run("wait", "bad", "nope", "--json").out)
    assert list(told) == ["bad"]
    both = run("show", "good", "nope", "bad")
    assert (both.code, [line.split()[-1] for line in both.lines if line.startswith("id ")]) == (4, ["good", "bad"])
    assert [one["id"] for one in json.loads(run("show", "--batch", "b1", "--state", "failed", "--json").out)] == [
        "bad"
    ]
    assert json.loads(run("show", "bad", "--json").out)["id"] == "bad"


def test_workers_are_drained_together(root: Path, run: Run) -> None:
    put(root, "heartbeats/lap1-aaaaa.3.json", {})
    put(root, "heartbeats/lap2-bbbbb.3.json", {})
    done = run("drain", "lap1", "nobody", "lap2")
    assert (done.code, "no worker 'nobody'" in done.err) == (4, True)
    assert "2 workers will drain: lap1-aaaaa, lap2-bbbbb" in done.err
    assert requests(root) == [("drain", "lap1-aaaaa"), ("drain", "lap2-bbbbb")]
    assert run("drain", "lap1", "--all").code == 2


def test_logs_of_many_are_whole_lines_with_their_task(root: Path, run: Run) -> None:
    (root / "logs" / "good.1.w-aaaaa.log").write_bytes(b"one\ntwo\x1b[2J\r\nno end")
    (root / "logs" / "bad.1.w-aaaaa.log").write_bytes(b"three\n")
    lines = ["good | one", "good | two\\x1b[2J", "good | no end", "bad  | three"]
    assert run("logs", "good", "bad").lines == lines
    followed = run("logs", "-f", "--batch", "b1", "--state", "completed,failed")
    assert (followed.code, sorted(followed.lines)) == (0, sorted(lines))
    missing = run("logs", "good", "nope")
    assert (missing.code, missing.lines) == (4, [line for line in lines if line.startswith("good")])
    assert run("logs", "--batch", "b1", "--attempt", "2").out == ""


@pytest.mark.parametrize(("workers", "answer", "code"), [(10, b"", 0), (11, b"y\n", 0), (11, b"no\n", 130)])
@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_many_workers_are_asked_about(
    root: Path, run: Run, workers: int, answer: bytes, code: int
) -> None:
    for number in range(workers):
        put(root, f"heartbeats/w-aaa{number:02}.1.json", {"role": "worker"})
    put(root, "heartbeats/m-bbbbb.1.json", {"role": "master"})
    done = run("drain", "--all", stdin=answer)
    assert (done.code, "drain 11 workers? [y/N]" in done.err) == (code, workers > 10)
    assert requests(root) == ([("drain", "+all")] if code == 0 else [])
    assert run("drain", "--all", "--yes").code == 0
    assert run("drain", "--all", "--undo").code == 0
    named = [f"w-aaa{number:02}" for number in range(workers)]
    done = run("drain", *named, stdin=answer)
    assert (done.code, "drain 11 workers? [y/N]" in done.err) == (code, workers > 10)
