"""What each verb prints and returns, over a spool in which nobody works."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol import layout
from spoold.protocol.names import EndedName
from spoold.protocol.request import parse_request
from tests.cli.command import make
from tests.cli.commands import Done, spool

Run = Callable[..., Done]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "s")


@pytest.fixture
def run(root: Path) -> Run:
    def call(*words: str, stdin: bytes = b"") -> Done:
        return spool(*words, stdin=stdin, root=root)

    return call


def pending(root: Path) -> list[Any]:
    files = sorted((root / "pending").iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def put(root: Path, path: str, value: Any) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(json.dumps(value))


def end(root: Path, task_id: str, state: str = "completed", **more: Any) -> None:
    name = EndedName(task_id, 1, "w-aaaaa").encode()
    result = {"task_id": task_id, "attempt": 1, "worker_id": "w-aaaaa", "completed_at": "2026-01-01T00:00:00Z"}
    result |= {"status": "success", "duration_s": 1.5, **more}
    if state == "failed":
        error = {"code": "EXIT_NONZERO", "message": "exit code 3"}
        result = {**result, "status": "failure", "error": error, "exit_code": 3, **more}
    put(root, f"results/{name}", result)
    put(root, f"{state}/{name}", {"id": task_id, "type": "t", "batch": "b1"})


def requests(root: Path) -> list[tuple[str, str]]:
    parsed = map(parse_request, sorted(path.name for path in (root / layout.CONTROL).iterdir()))
    return sorted((request.verb.value, request.target) for request in parsed if request)


def test_init_makes_a_spool_once(tmp_path: Path) -> None:
    first = spool("init", str(tmp_path / "new" / "s"), "--json")
    assert json.loads(first.out)["directory"] == str(tmp_path / "new" / "s")
    assert {path.name for path in (tmp_path / "new" / "s").iterdir()} == {*layout.TREE, "spool.json", "spool.toml"}
    again = spool("init", str(tmp_path / "new" / "s"))
    assert (again.code, "is a spool already" in again.err) == (69, True)


def test_a_directory_without_a_spool_is_refused_and_not_made_one(tmp_path: Path) -> None:
    done = spool("ls", root=tmp_path)
    assert done.code == 69
    assert "Is the share mounted?" in done.err
    assert len(done.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_no_spool_at_all_is_a_mistake_of_configuration() -> None:
    done = spool("ls")
    assert (done.code, "--spool DIR" in done.err) == (2, True)


def test_the_global_option_may_stand_on_either_side(root: Path) -> None:
    assert spool("--spool", str(root), "ls").code == 0
    assert spool("ls", "--spool", str(root)).code == 0
    assert spool("ls", f"--spool={root}").code == 0


def test_submit_prints_ids_and_writes_what_was_said(root: Path, run: Run) -> None:
    words = "--type review --name N --priority high --after x --after y --timeout 5m --retries 2 --batch B --cwd /d"
    rest = ["--input", '{"a": [1]}', "--requires", "cpu=2,mem=4G", "--requires", "gpu=1,label=a+b", "--env", "K=V=W"]
    done = run("submit", *words.split(), *rest)
    assert done.code == 0, done.err
    (task,) = pending(root)
    assert done.lines == [task["id"]]
    del task["created_at"], task["id"]
    assert task == {
        "type": "review",
        "name": "N",
        "priority": "high",
        "dependencies": ["x", "y"],
        "timeout": 300.0,
        "max_retries": 2,
        "batch": "B",
        "cwd": "/d",
        "input": {"a": [1]},
        "requires": {"cpu": 2, "mem": "4G", "gpu": 1, "labels": ["a", "b"]},
        "env": {"K": "V=W"},
    }


def test_submit_says_what_a_task_uses_locks_and_waits_for(root: Path, run: Run) -> None:
    settings = "[limits.api]\nmax = 1\n[limits.gpu]\nmax = 2\n[classes.critical]\nslots = 1\n"
    (root / "spool.toml").write_text(f"{settings}[budgets.nightly]\ncost_usd = 1\n[budgets.repo]\ntokens = 1\n")
    words = "--uses api --uses gpu=2 --class critical --budget nightly --budget repo --lock src/** --lock-read docs/"
    done = run("submit", "--type", "t", *words.split(), "--hold", "not yet")
    assert done.code == 0, done.err
    (task,) = pending(root)
    del task["created_at"], task["id"]
    assert task == {
        "type": "t",
        "uses": {"api": 1, "gpu": 2},
        "class": "critical",
        "budgets": ["nightly", "repo"],
        "locks": {"write": ["src/**"], "read": ["docs/"]},
        "hold": "not yet",
    }


@pytest.mark.parametrize(
    ("said", "approval"),
    [
        ("Deploy?", {"ask": "Deploy?"}),
        ('{"ask": "Where?", "choices": ["a", "b"]}', {"ask": "Where?", "choices": ["a", "b"]}),
    ],
)
def test_submit_asks_people_before_a_task_starts(root: Path, run: Run, said: str, approval: dict[str, Any]) -> None:
    assert run("submit", "--id", "d", "--approval", said, "--", "true").code == 0
    assert pending(root) == [{"id": "d", "command": ["true"], "approval": approval}]


def test_a_directory_that_begins_where_the_caller_stands_is_sent_from_the_root(
    root: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (".", "below/here", "/link/../there"):
        assert run("submit", "--cwd", path, "--", "x").code == 0
    assert {task["cwd"] for task in pending(root)} == {str(tmp_path), f"{tmp_path}/below/here", "/link/../there"}


def test_a_file_whose_directory_is_relative_is_not_submitted(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"type": "t", "cwd": "src"}')
    done = run("submit", str(tmp_path / "one.json"))
    assert (done.code, pending(root)) == (2, [])
    assert "cwd: not an absolute path. Given: 'src'. Fix: begin it with /" in done.err


def test_a_command_is_what_follows_the_dashes_whatever_it_looks_like(root: Path, run: Run) -> None:
    assert run("submit", "--id", "c", "--", "make", "--spool", "x", "--help", "--", "-j").code == 0
    assert pending(root) == [{"id": "c", "command": ["make", "--spool", "x", "--help", "--", "-j"]}]


def test_input_may_be_null_or_a_file(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"from": "file"}')
    assert run("submit", "--type", "t", "--id", "a", "--input", "null").code == 0
    assert run("submit", "--type", "t", "--id", "b", "--input", f"@{tmp_path / 'in.json'}").code == 0
    assert [task["input"] for task in pending(root)] == [None, {"from": "file"}]


def test_files_of_both_kinds_and_options_over_them(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"type": "t"}')
    (tmp_path / "two.json").write_text('{"id": "two", "type": "t"}')
    (tmp_path / "many.jsonl").write_text('{"id": "a", "type": "t"}\n\n{"type": "t", "after": "a"}\n')
    done = run("submit", *(str(tmp_path / name) for name in ("one.json", "two.json", "many.jsonl")), "--batch", "B")
    assert done.code == 0, done.err
    tasks = pending(root)
    assert done.lines == [task["id"] for task in tasks]
    assert done.lines[0].startswith("one-")
    assert done.lines[1:3] == ["two", "a"]
    assert {task["batch"] for task in tasks} == {"B"}


@pytest.mark.parametrize(
    ("stdin", "count"),
    [
        (b'{"type": "t"}', 1),
        (b'{\n "type": "t",\n "input": {}\n}\n', 1),
        (b'{"type": "t"}\n{"type": "t"}\n', 2),
    ],
)
def test_stdin_is_one_task_or_a_line_each(root: Path, run: Run, stdin: bytes, count: int) -> None:
    done = run("submit", "-", stdin=stdin)
    assert (done.code, len(done.lines), len(pending(root))) == (0, count, count)


@pytest.mark.parametrize(
    ("words", "stdin", "why"),
    [
        (["submit"], b"", "says nothing to run"),
        (["submit", "--"], b"", "nothing after '--'"),
        (["submit", "-", "--", "make"], b"{}", "files and a command"),
        (["submit", "-"], b'{"type": "t", "prioritty": 1}', "did you mean 'priority'"),
        (["submit", "-"], b'{"type": "t"', "stdin: is not JSON"),
        (["submit", "-"], b'{"type": "t"}\n{"tpye": "t"}\n', "- line 2: tpye"),
        (["submit", "-"], b"[1]", "is an array"),
        (["submit", "/nope.json"], b"", "/nope.json: cannot be read: No such file"),
        (["submit", "--type", "t", "--input", "{a}"], b"", "--input: is not JSON"),
        (["submit", "--type", "t", "--timeout", "soon"], b"", "--timeout: 'soon' is no time"),
        (["submit", "--type", "t", "--env", "K"], b"", "--env: 'K' has no name before"),
        (["submit", "--type", "t", "--requires", "cpus=many"], b"", "--requires: cpus"),
        (["submit", "--type", "t", "--priority", "asap"], b"", "not a priority"),
        (["submit", "--type", "t", "--uses", "api=many"], b"", "--uses: api: not a whole number. Given: 'many'"),
        (["submit", "--type", "t", "--lock", "a/../b"], b"", "--lock: write.0: the pattern 'a/../b' goes up"),
        (["submit", "--type", "t", "--hold", ""], b"", "--hold: empty"),
        (["submit", "--type", "t", "--approval", ""], b"", "--approval: ask: "),
        (["submit", "--type", "t", "--approval", "{ask}"], b"", "--approval: is not JSON"),
        (["submit", "--type", "t", "--approval", '{"ask": "x", "choice": []}'], b"", "did you mean 'choices'"),
        (["submit", "-", "--id", "x"], b'{"type":"t"}\n{"type":"t"}\n', "--id: is for one task"),
        (["submit", "--nope"], b"", "No such option"),
        (["run", "--type", ""], b"", "nothing after '--'"),
        (["ls", "--state", "gone"], b"", "'gone' is no state. Fix: use one of pending, waiting"),
        (["drain"], b"", "name workers or --all"),
        (["wait", "x", "--timeout", "-3"], b"", "is no time"),
        (["pause", "no such"], b"", "'no such' is not a type of tasks: not a plain word; use 1 to 48 of"),
        (["pause", "+all"], b"", "or name none, to mean all"),
        (["resume", ""], b"", "or name none, to mean all"),
    ],
)
def test_a_mistake_is_exit_2_and_a_sentence(root: Path, run: Run, words: list[str], stdin: bytes, why: str) -> None:
    done = run(*words, stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert why in done.err
    assert "Traceback" not in done.err
    assert pending(root) == []


def test_one_bad_file_of_several_submits_none(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('{"type": "t"}')
    (tmp_path / "good.jsonl").write_text('{"type": "t"}\n')
    for name, text in (("a.json", "{"), ("b.json", '{"type": "t", "timeout": -1}'), ("c.jsonl", '{"tpye": "t"}\n')):
        (tmp_path / name).write_text(text)
        done = run("submit", *(str(tmp_path / file) for file in ("good.json", "good.jsonl", name)))
        assert (done.code, done.out, pending(root)) == (2, "", [])
        assert name in done.err


def test_lines_in_a_file_for_one_task_are_told_the_name_for_several(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "many.json").write_text('{"type": "t"}\n{"type": "t"}\n')
    done = run("submit", str(tmp_path / "many.json"))
    assert (done.code, pending(root)) == (2, [])
    assert "many.json: is not JSON: " in done.err
    assert done.err.endswith("Fix: several tasks, one on a line: name it .jsonl.\n")


def test_ls_in_its_three_forms(root: Path, run: Run) -> None:
    end(root, "a")
    end(root, "b", "failed")
    put(root, "ready/type=t/5000.0000000001-1.c.a2f1c0.json", {"id": "c", "type": "t", "batch": "b2"})
    assert [line.split()[:3] for line in run("ls").lines] == [
        ["ID", "STATE", "TYPE"],
        ["c", "ready", "t"],
        ["a", "completed", "t"],
        ["b", "failed", "t"],
    ]
    assert run("ls", "-q", "--state", "failed,completed").lines == ["a", "b"]
    assert run("ls", "-q", "--batch", "b1", "--limit", "1").lines == ["a"]
    (row,) = json.loads(run("ls", "--json", "--batch", "b2").out)
    assert (row["id"], row["state"], row["attempt"], row["lane"]) == ("c", "ready", 2, "type=t")


def test_show_has_what_scripts_rely_on(root: Path, run: Run) -> None:
    end(root, "b", "failed")
    shown = json.loads(run("show", "b", "--json").out)
    assert (shown["state"], shown["attempt"], shown["reason"]) == ("failed", 1, "EXIT_NONZERO: exit code 3")
    assert shown["attempts"][0]["exit_code"] == 3
    assert shown["task"]["batch"] == "b1"
    text = run("show", "b").out
    assert "EXIT_NONZERO: exit code 3" in text
    assert "w-aaaaa" in text


def test_the_reason_that_an_agent_gives_is_where_people_look(root: Path, run: Run) -> None:
    end(root, "b", "failed", output={"code": "NOT_ACCEPTED", "reasons": ["make test: exit code 2", "more"]})
    said = "EXIT_NONZERO: exit code 3 (NOT_ACCEPTED: make test: exit code 2)"
    assert json.loads(run("show", "b", "--json").out)["reason"] == said
    for words in (("show", "b"), ("explain", "b")):
        assert said in " ".join(run(*words).out.split())
    assert said in " ".join(run("wait", "b").err.split())


@pytest.mark.parametrize("count", [5.7, 7, 10**12])
def test_a_result_tells_any_number_that_an_attempt_may_have_cost(root: Path, run: Run, count: float) -> None:
    end(root, "a", tokens_used=count, cost_usd=count)
    done = run("result", "a", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["tokens_used"] == json.loads(done.out)["cost_usd"] == count


@pytest.mark.parametrize(("count", "shown"), [(1e308, 10**12), ("1" * 309, 10**12), ((1 << 64) - 1, 10**12), (-1, 0)])
def test_a_record_of_an_old_release_shows_the_nearest_amount(root: Path, run: Run, count: Any, shown: int) -> None:
    """G33: a cost of 1e300 was shown."""
    end(root, "a", tokens_used=count, cost_usd=count)
    done = run("result", "a", "--json")
    assert (done.code, json.loads(done.out)["cost_usd"]) == (0, shown), done.err


def test_an_output_that_is_no_json_is_shown_with_what_was_wrong(root: Path, run: Run) -> None:
    """N14"""
    problem = "SPOOL_RESULT_FILE: is not JSON: x (column 3). Fix: fix it there."
    end(root, "a", output='{"loss": NaN}', output_format="text", output_problem=problem)
    done = run("result", "a")
    assert (done.code, done.out) == (0, '{"loss": NaN}\n')
    assert f"its output is kept as text: {problem}" in " ".join(done.err.split())
    assert json.loads(run("result", "a", "--json").out)["output_format"] == "text"
    for words in (("show", "a"), ("explain", "a")):
        assert "is kept as text: SPOOL_RESULT_FILE: is not JSON" in " ".join(run(*words).out.split())
    assert "fix it there" in run("explain", "a").out


@pytest.mark.parametrize("said", [None, "half"])
def test_a_progress_report_that_does_not_count_is_shown_with_why(root: Path, run: Run, said: str | None) -> None:
    put(root, "claimed/w-aaaaa/5000.hw1y7k2m82-1.a.a1f0c0.json", {"id": "a", "command": ["x"]})
    problem = "SPOOL_PROGRESS_FILE: is a directory."
    running = {"id": "a", "attempt": 1, "progress": said, "progress_problem": problem}
    beat = {"node": "w-aaaaa", "role": "worker", "beat": 4, "status": "working", "running": [running]}
    put(root, "heartbeats/w-aaaaa.4.json", beat)
    shown = next(line for line in run("show", "a").out.splitlines() if line.startswith("progress"))
    assert shown.removeprefix("progress").strip() == (f"{said}; {problem}" if said else problem)
    assert problem in run("explain", "a").out
    assert json.loads(run("show", "a", "--json").out)["progress_problem"] == problem


def test_a_report_of_an_agent_is_shown_in_words_and_a_retry_says_how_the_last_attempt_ended(
    root: Path, run: Run
) -> None:
    """`show` printed the object of Python, with what the agent's program reports for spoold itself."""
    put(root, "claimed/w-aaaaa/5000.hw1y7k2m82-1.a.a2f1c0.json", {"id": "a", "command": ["x"]})
    progress = {"text": "writes a.py", "tokens_used": 7, "judged": True, "served": True}
    beat = {"node": "w-aaaaa", "role": "worker", "beat": 4, "status": "working"}
    beat["running"] = [{"id": "a", "attempt": 2, "progress": progress}]
    put(root, "heartbeats/w-aaaaa.4.json", beat)
    ended = {"task_id": "a", "attempt": 1, "worker_id": "w-aaaaa", "status": "failure", "exit_code": 2}
    error = {"code": "EXIT_NONZERO", "message": "exit code 2"}
    put(root, "results/a.1.w-aaaaa.json", {**ended, "completed_at": "2026-01-01T00:00:00Z", "error": error})
    assert "progress     text writes a.py, tokens_used 7" in run("show", "a").out.splitlines()
    said = run("explain", "a").out
    assert "retry: attempt 1 ended as EXIT_NONZERO: exit code 2" in said
    assert "True" not in said


@pytest.mark.parametrize("count", ["many", [], True])
def test_a_result_whose_cost_is_no_number_is_a_bad_file(root: Path, run: Run, count: Any) -> None:
    end(root, "a", tokens_used=count)
    done = run("result", "a")
    assert (done.code, "tokens_used" in done.err) == (2, True)


def test_result_prints_output_and_tells_how_it_ended(root: Path, run: Run) -> None:
    end(root, "text", output="two\nlines\n")
    end(root, "value", output={"n": 1})
    end(root, "bad", "failed", output="partial")
    put(root, "ready/type=t/5000.0000000001-1.c.a1f0c0.json", {})
    assert run("result", "text").out == "two\nlines\n"
    assert json.loads(run("result", "value").out) == {"n": 1}
    assert json.loads(run("result", "value", "--json").out)["duration_s"] == 1.5
    bad = run("result", "bad")
    assert (bad.code, bad.out) == (1, "partial\n")
    assert "EXIT_NONZERO" in bad.err
    early = run("result", "c")
    assert (early.code, "not finished yet" in early.err) == (4, True)


def test_logs_are_the_bytes_that_were_written(root: Path, run: Run) -> None:
    end(root, "a")
    (root / "logs" / "a.1.w-aaaaa.log").write_bytes(b"caf\xc3\xa9\n")
    assert run("logs", "a").out == "café\n"
    assert run("logs", "a", "-f").out == "café\n"
    assert run("logs", "a", "--attempt", "2").code == 4


def test_logs_of_a_task_that_did_not_begin_say_so(root: Path, run: Run) -> None:
    put(root, "ready/type=t/5000.0000000001-1.open.a1f0c0.json", {})
    done = run("logs", "open")
    assert (done.code, done.out, done.err) == (0, "", "spool: open has not begun; `spool explain open` says why\n")
    end(root, "child", "failed", error={"code": "DEPENDENCY_FAILED", "message": "dependency bad failed"})
    never = "spool: it never started: DEPENDENCY_FAILED: dependency bad failed\n"
    for words in (("logs", "child"), ("logs", "child", "-f")):
        done = run(*words)
        assert (done.code, done.out, done.err) == (0, "", never)
    end(root, "mute")
    assert run("logs", "mute").err == ""


def test_a_list_of_a_batch_that_has_no_task_says_so(root: Path, run: Run) -> None:
    end(root, "a")
    done = run("ls", "--batch", "nosuch")
    assert (done.code, len(done.lines)) == (0, 1)
    nothing = "spool: no task fits --batch nosuch. `spool ls` shows those there are."
    assert done.err == f"{nothing} With --all, the archive is looked at, too.\n"
    near = run("ls", "--batch", "bb1", "--all", "-q").err
    assert near == "spool: no task fits --batch bb1. Did you mean --batch b1?\n"
    assert run("ls", "--batch", "b1").err == ""


def test_wait_tells_by_its_exit_code(root: Path, run: Run) -> None:
    end(root, "good")
    end(root, "bad", "failed")
    put(root, "ready/type=t/5000.0000000001-1.open.a1f0c0.json", {})
    assert run("wait", "good").code == 0
    failed = run("wait", "good", "bad")
    assert (failed.code, "bad failed: EXIT_NONZERO: exit code 3" in failed.err) == (1, True)
    assert json.loads(run("wait", "bad", "--json").out)["bad"]["exit_code"] == 3
    late = run("wait", "open", "--timeout", "50ms")
    assert (late.code, "1 of 1 task has not ended after 0.05 s: open" in late.err) == (124, True)
    put(root, "ready/type=t/5000.0000000002-1.more.a1f0c0.json", {})
    assert "2 of 3 tasks have not ended" in run("wait", "good", "open", "more", "--timeout", "50ms").err
    unknown = run("wait", "good", "unknown")
    assert (unknown.code, "no task 'unknown' in this spool. `spool ls` shows those there are." in unknown.err) == (
        4,
        True,
    )


def test_requests_go_to_control(root: Path, run: Run) -> None:
    end(root, "bad", "failed")
    put(root, "ready/type=t/5000.0000000001-1.open.a1f0c0.json", {})
    put(root, "heartbeats/lap-aaaaa.3.json", {})
    assert run("cancel", "open", "--reason", "r").lines == ["open"]
    assert json.loads(run("retry", "bad", "--json").out) == {"retry": ["bad"]}
    for words in ("pause T", "pause", "resume", "drain lap", "drain --all --undo", "halt", "gc"):
        assert run(*words.split()).code == 0, words
    assert requests(root) == [
        ("cancel", "open"),
        ("drain", "lap-aaaaa"),
        ("gc", "+all"),
        ("halt", "+all"),
        ("pause", "+all"),
        ("pause", "t"),
        ("resume", "+all"),
        ("retry", "bad"),
        ("undrain", "+all"),
    ]


def test_a_retry_without_a_failed_dependency_is_warned_of(root: Path, run: Run) -> None:
    end(root, "bad", "failed")
    end(root, "good")
    end(root, "child", "failed")
    name = EndedName("child", 1, "w-aaaaa").encode()
    put(root, f"failed/{name}", {"id": "child", "type": "t", "dependencies": ["bad", "good", "ghost"]})
    warning = "spool: its dependency bad is still failed: `spool retry bad` within 10 s, or child fails again\n"
    alone = run("retry", "child")
    assert (alone.code, alone.out, alone.err) == (0, "child\n", f"1 task will be tried again\n{warning}")
    assert run("retry", "child", "--json").err == warning
    assert "still failed" not in run("retry", "child", "bad").err
    assert "still failed" not in run("retry", "child").err  # the retry of bad stands
    (root / "failed" / name).write_text("{")
    assert run("retry", "child").code == 0


def test_of_a_retry_with_its_dependency_nobody_is_warned_however_many_come_before(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dependency stood behind the tasks that are read, and the leader had carried out its retry already."""
    monkeypatch.setattr("spoold.client.read.preconditions.LOOKED_INTO", 1)
    monkeypatch.setattr("spoold.store.control.list_requests", lambda fs: [])
    for task in ("a-child", "z-parent"):
        end(root, task, "failed")
    name = EndedName("a-child", 1, "w-aaaaa").encode()
    put(root, f"failed/{name}", {"id": "a-child", "type": "u", "dependencies": ["z-parent"]})
    assert "still failed" not in run("retry", "a-child", "z-parent").err


def test_only_some_warnings_of_a_retry_are_shown(root: Path, run: Run) -> None:
    end(root, "bad", "failed")
    for number in range(23):
        end(root, f"c{number}", "failed")
        name = EndedName(f"c{number}", 1, "w-aaaaa").encode()
        put(root, f"failed/{name}", {"id": f"c{number}", "type": "u", "dependencies": ["bad"]})
    warned = run("retry", "--type", "u").err.splitlines()
    assert (len([line for line in warned if "still failed" in line]), warned[-1]) == (20, "… and 3 more")


def test_what_is_not_there_is_exit_4(run: Run) -> None:
    for words in ("show x", "result x", "explain x", "logs x", "cancel x", "retry x", "wait x", "drain x"):
        done = run(*words.split())
        assert (done.code, done.out, len(done.err.splitlines())) == (4, "", 1), words
        odd = run(words.split()[0], "\udcff")
        assert (odd.code, odd.out, "Traceback" in odd.err) == (4, "", False), words


def test_events_are_lines_for_people_or_programs(root: Path, run: Run) -> None:
    event = {"at": "T1", "writer": "m-a-bbbbb", "seq": 1, "event": "ADMITTED", "task": "a", "attempt": 1}
    other = {"at": "T2", "writer": "m-a-bbbbb", "seq": 2, "event": "READY", "task": "b", "detail": {"lane": "type=t"}}
    (root / "events" / "m-a-bbbbb.0.jsonl").write_text(f"{json.dumps(event)}\n{json.dumps(other)}\n")
    assert [line.split() for line in run("events").lines] == [
        ["T1", "m-a-bbbbb", "ADMITTED", "a", "#1"],
        ["T2", "m-a-bbbbb", "READY", "b", "lane=type=t"],
    ]
    assert [json.loads(line) for line in run("events", "--json", "--task", "A").lines] == [event]


def test_units_are_printed_or_written(root: Path, run: Run, tmp_path: Path) -> None:
    printed = run("install-units", "--user", "--print", "--name", "lab")
    assert f"SPOOL_DIR={root}" in printed.out
    done = run("install-units", "--name", "../x")
    assert (done.code, "letters, digits" in done.err) == (2, True)


def test_a_worker_with_a_broken_configuration_says_which_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text("slotz = 3\n")
    done = run("worker", "--config", str(tmp_path / "w.toml"))
    assert (done.code, "did you mean 'slots'" in done.err) == (2, True)
    done = run("worker", "--types", "not a type")
    assert (done.code, "types" in done.err) == (2, True)


def test_debug_shows_where_an_error_came_from(run: Run) -> None:
    quiet, loud = run("show", "x"), run("--debug", "show", "x")
    assert (quiet.code, loud.code) == (4, 4)
    assert "Traceback" not in quiet.err
    assert "Traceback" in loud.err


def test_a_bug_of_ours_is_shown_and_is_no_failed_task(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("spoold.client.read.selecting.find_each", broken)
    done = run("show", "x")
    assert done.code == 70
    assert "ZeroDivisionError" in done.err
    assert "bug in spoold" in done.err
    wrong = run("show", "--nonsense")
    assert (wrong.code, "Traceback" in wrong.err) == (2, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("submit", "/dev/zero"), "/dev/zero: is a device, which may never end"),
        (("submit", "empty.jsonl"), "empty.jsonl: is empty. Fix: write one task"),
        (("submit", "-"), "stdin: is empty"),
        (("init", ""), "DIR: is empty"),
    ],
)
def test_what_says_nothing_or_never_ends_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").write_text("\n")
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_name_with_a_line_break_is_one_line_of_a_list(root: Path, run: Run) -> None:
    (root / "pending" / "two\nlines\x1b[31m.json").write_text("{")
    assert run("ls", "-q").lines == ["two lines [31m.json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--requires", "cpu=nan"), "--requires: cpu: 'nan' is no finite number"),
        (("--requires", "cpu=-1"), "--requires: cpu: too small"),
        (("--requires", "mem=lots"), "--requires: mem: not an amount of memory"),
        (("--requires", "gpu=100000000000000000000"), "--requires: gpu: 100000000000000000000 has more than 64 bits"),
        (("--priority", "100000000000000000000"), "--priority: 100000000000000000000 has more than 64 bits"),
        (("--priority", "foo"), "--priority: not a priority"),
        (("--timeout", "0"), "--timeout: too small"),
        (("--after", "a/b"), "--after: not an id"),
        (("--id", "a/b"), "--id: not an id"),
        (("--batch", "a/b"), "--batch: not an id"),
        (("--type", "-x"), "--type: not a plain word"),
        (("--name", "x" * 501), "--name: longer than 500 characters"),
    ],
)
@pytest.mark.parametrize("verb", ["submit", "run"])
def test_a_wrong_option_is_called_by_its_name(run: Run, verb: str, words: tuple[str, ...], said: str) -> None:
    done = run(verb, *words, "--", "true")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"spool: {said}")


def test_a_wrong_field_of_a_file_is_not_called_an_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"type": "x", "timeout": -1}')
    done = run("submit", "--priority", "high", str(tmp_path / "t.json"))
    assert (done.code, "--" in done.err.split("Mend")[0], "timeout: too small" in done.err) == (2, False, True)


def test_a_tree_says_what_each_task_and_all_below_it_came_to(root: Path, run: Run) -> None:
    for task, parent, more in (
        ("plan", None, {"cost_usd": 0.25}),
        ("a", "plan", {"tokens_used": 1000, "cost_usd": 0.5}),
        ("b", "a", {"tokens_used": 200}),
        ("c", "plan", {}),
    ):
        end(root, task, **more)
        put(root, f"completed/{EndedName(task, 1, 'w-aaaaa').encode()}", {"id": task, "type": "t", "parent": parent})
    assert run("tree", "plan").out.splitlines() == [
        "plan (completed on w-aaaaa): 0.2500 USD; with 3 below it: 1,200 tokens, 0.7500 USD",
        "  a (completed on w-aaaaa): 1,000 tokens, 0.5000 USD; with 1 below it: 1,200 tokens, 0.5000 USD",
        "    b (completed on w-aaaaa): 200 tokens",
        "  c (completed on w-aaaaa)",
    ]
    said = json.loads(run("tree", "plan", "--json").out)
    assert (said["tokens_used"], said["cost_usd"]) == (None, 0.25)
    assert said["tree"] == {"tasks": 4, "tokens_used": 1200, "cost_usd": 0.75}
    assert "\ntree          4 tasks, 1,200 tokens, 0.7500 USD\n" in run("show", "plan", "--tree").out
    assert "tree  " not in run("show", "plan").out
    assert json.loads(run("show", "plan", "--tree", "--json").out)["tree"] == said["tree"]
    assert json.loads(run("show", "plan", "--json").out)["tree"] is None
    put(root, "rejected/plan.json", {"id": "plan"})
    put(root, "rejected/plan.json.reason.json", {"error": {"code": "INVALID_TASK", "message": "no"}})
    shown = json.loads(run("show", "--state", "rejected", "--tree", "--json").out)
    assert [one["tree"] for one in shown] == [None]
