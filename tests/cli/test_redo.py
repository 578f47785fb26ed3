"""`spool reject --redo`: what it asks for, and what it says of tasks that cannot run again."""

import json
from pathlib import Path
from typing import Any

import pytest

from spoold.client.read import preconditions
from spoold.client.read.task_info import read_content
from spoold.store.store import Store
from spoold.store.task_location import Located
from tests.cli.test_approvals import ORDER, Run, contents, root, run, task
from tests.cli.test_verbs import end, put, requests

__all__ = ["root", "run"]


def ended(root: Path, task_id: str, attempt: int = 1, **more: Any) -> None:
    end(root, task_id)
    for place in ("completed", "results"):
        (root / place / f"{task_id}.1.w-aaaaa.json").rename(root / place / f"{task_id}.{attempt}.w-aaaaa.json")
    put(root, f"completed/{task_id}.{attempt}.w-aaaaa.json", {"id": task_id, "type": "t", **more})


@pytest.fixture
def graph(root: Path) -> Path:
    """up → mid → deploy, up → side → deploy, and `other` beside them."""
    ended(root, "up", 2)
    ended(root, "mid", after=["up"])
    ended(root, "side", dependencies=["up"])
    ended(root, "other", after=["up"])
    task(root, "deploy", approval={"ask": "Deploy?"}, after=["mid"], after_any=["side"])
    return root


def test_all_tasks_on_the_way_run_again_each_as_it_has_ended(graph: Path, run: Run) -> None:
    done = run("reject", "deploy", "--reason", "why", "--redo", "Up")
    assert (done.code, done.err) == (0, "deploy was rejected, and Up runs again\n")
    (posted,) = contents(graph, "reject")
    assert (posted["reason"], posted["order"]) == ("why", ORDER)
    assert posted["redo"][0] == ["up", 2]
    assert sorted(posted["redo"][1:]) == [["mid", 1], ["side", 1]]
    again = run("reject", "deploy", "--reason", "why", "--redo", "up")
    assert (again.code, "was answered already" in again.err) == (2, True)
    assert requests(graph) == [("reject", "deploy")]


def test_only_what_is_after_the_named_task_runs_again(graph: Path, run: Run) -> None:
    assert run("reject", "deploy", "--reason", "why", "--redo", "side").code == 0
    assert contents(graph, "reject")[0]["redo"] == [["side", 1]]


@pytest.mark.parametrize("name", ["other", "nobody", "deploy"])
def test_a_task_that_is_not_upstream_is_refused_and_those_that_are_are_named(
    graph: Path, run: Run, name: str
) -> None:
    done = run("reject", "deploy", "--reason", "why", "--redo", name)
    assert (done.code, f"{name} is not upstream of deploy. Upstream of it: mid, side, up." in done.err) == (2, True)
    assert requests(graph) == []


@pytest.mark.parametrize(("misses", "code"), [(1, 0), (100, 2)])
def test_a_task_that_moves_while_it_is_read_is_looked_for_again(
    graph: Path, run: Run, monkeypatch: pytest.MonkeyPatch, misses: int, code: int
) -> None:
    """What could not be read counted as a task with nothing before it, so that nothing was upstream."""
    read, missed = read_content, list[str]()

    def reading(store: Store, located: Located) -> dict[str, Any]:
        if located.id != "mid" or missed.count("mid") >= misses:
            return read(store, located)
        missed.append(located.id)
        return {}

    monkeypatch.setattr(preconditions, "read_content", reading)
    done = run("reject", "deploy", "--reason", "why", "--redo", "up")
    assert (done.code, "task mid keeps moving or cannot be read" in done.err) == (code, code == 2)
    assert len(requests(graph)) == (code == 0)


def test_a_task_with_nothing_before_it_says_so(root: Path, run: Run) -> None:
    task(root, "alone", approval={"ask": "Deploy?"})
    done = run("reject", "alone", "--reason", "why", "--redo", "up")
    assert (done.code, "up is not upstream of alone, which comes after no task." in done.err) == (2, True)


def test_what_has_not_ended_is_archived_or_gone_cannot_run_again(graph: Path, run: Run) -> None:
    (graph / "completed" / "side.1.w-aaaaa.json").unlink()
    done = run("reject", "deploy", "--reason", "why", "--redo", "side")
    assert "there is no task side any more, so it cannot run again." in done.err
    task(graph, "side", after=["up"])
    done = run("reject", "deploy", "--reason", "why", "--redo", "up")
    assert "task side is waiting and has not ended; wait for its end, then reject." in done.err
    (graph / "completed" / "mid.1.w-aaaaa.json").unlink()
    put(graph, "archive/94/mid.1.w-aaaaa.completed.json", {"id": "mid", "type": "t", "after": ["up"]})
    done = run("reject", "deploy", "--reason", "why", "--redo", "mid")
    assert "task mid is archived, so it cannot run again; submit its work as a new task." in done.err
    assert requests(graph) == []


def test_a_question_of_a_running_task_sends_nothing_back(root: Path, run: Run) -> None:
    task(root, "runs", "claimed/w-aaaaa")
    put(root, "control/ask.runs.q1.json", {"ask": "Which?", "attempt": 1})
    done = run("reject", "runs", "--reason", "why", "--redo", "up")
    assert "task runs runs, and only a task that waits for its approval sends work back." in done.err


def test_a_task_that_is_not_admitted_yet_sends_nothing_back(root: Path, run: Run) -> None:
    put(root, "pending/late.json", {"id": "late", "command": ["work"], "approval": {"ask": "Deploy?"}})
    done = run("reject", "late", "--reason", "why", "--redo", "up")
    assert "task late is not admitted yet; wait a moment, and reject again." in done.err


def test_a_task_sends_nothing_back(graph: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOOL_TASK_ID", "agent")
    done = run("reject", "deploy", "--reason", "why", "--redo", "up")
    assert (done.code, "a task cannot answer" in done.err) == (2, True)
    assert requests(graph) == []


def test_what_was_sent_back_says_so_where_people_look(root: Path, run: Run) -> None:
    """After a redo nothing but the feedback file and the journal said why the work is done again."""
    task(root, "up")
    (waiting,) = (root / "waiting").glob("*/*.up.*")
    waiting.rename(waiting.with_name(waiting.name.replace("a1", "a2")))
    task(root, "deploy", approval={"ask": "Deploy?"}, after=["up"])
    body = {"by": "ada", "reason": "no tests", "order": "0000000000-1", "redo": [["up", 1]]}
    put(root, "control/reject.deploy.k3j2-1.json", body)
    for verb in ("explain", "show", "tree"):
        assert "sent back, round 1, by ada: no tests" in " ".join(run(verb, "deploy").out.split()), verb
        assert "sent back from deploy, round 1, by ada: no tests" in " ".join(run(verb, "up").out.split()), verb
    assert json.loads(run("show", "deploy", "--json").out)["sent_back"] == "sent back, round 1, by ada: no tests"
    assert json.loads(run("tree", "deploy", "--json").out)["sent_back"] == "sent back, round 1, by ada: no tests"
    assert "sent back, round 1" in run("ls", "--long").out
    put(root, "control/reject.deploy.k3j2-1.json", {**body, "order": ORDER})
    assert "sent back" not in run("show", "deploy").out, "its own round is not over"


def test_a_question_that_was_asked_is_told_with_the_time_in_lists_too(root: Path, run: Run) -> None:
    """`tree` and `ls --long` said "not asked yet", since they did not read the question."""
    task(root, "deploy", approval={"ask": "Deploy?"})
    assert "not asked yet" in run("tree", "deploy").out
    put(root, "control/ask.deploy.q1.json", {"ask": "Deploy?", "order": ORDER, "at": "2026-02-02T09:00:00Z"})
    assert "asked at 2026-02-02T09:00:00Z" in run("tree", "deploy").out
    assert "'Deploy?', asked at 2026" in json.loads(run("ls", "--long", "--json").out)[0]["reason"]
