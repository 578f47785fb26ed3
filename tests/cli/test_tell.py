"""`spool tell`: what it leaves in control/, whom it refuses, and what `show`, `explain` and `history` say then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol.agent_messages import STANDING_MAX, TEXT_MAX
from tests.cli.command import leader
from tests.cli.commands import Done, spool
from tests.cli.test_agents import ABOUT, root, worker
from tests.cli.test_approvals import ORDER, contents
from tests.cli.test_verbs import end, put

__all__ = ["root"]
Run = Callable[..., Done]


@pytest.fixture
def run(root: Path) -> Run:
    return lambda *words, **more: spool(*words, root=root, **more)


def task(root: Path, task_id: str = "edit", state: str = "waiting/type=coder", **more: Any) -> None:
    content = {"id": task_id, "type": "coder", "input": {"prompt": "x"}, **more}
    put(root, f"{state}/5000.{ORDER}.{task_id}.a1f0c0.json", content)


def test_a_message_is_a_request_with_its_sender_its_time_and_its_words(root: Path, run: Run) -> None:
    task(root)
    done = run("tell", "edit", "Use the v2 API, not v1.")
    assert (done.code, done.out) == (0, "")
    assert "the agent of edit is given it with the prompt of its next attempt" in done.err
    (said,) = contents(root, "tell")
    assert (said["tell"], "@" in said["by"], said["at"] > "2020") == ("Use the v2 API, not v1.", True, True)
    told = json.loads(run("tell", "edit", "-", "--json", stdin=b"From a file.\n").out)
    assert told["task"] == "edit"
    assert (root / f"control/tell.edit.{told['message']}.json").exists()
    assert [one["tell"] for one in contents(root, "tell")] == ["Use the v2 API, not v1.", "From a file.\n"]


def test_within_a_task_it_is_a_message_of_that_task(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    task(root)
    monkeypatch.setenv("SPOOL_TASK_ID", "boss")
    monkeypatch.setenv("SPOOL_ROOT", str(root))
    assert run("tell", "edit", "Use v2.").code == 0
    assert contents(root, "tell")[0]["by"] == "task boss"


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "the message: is empty."), (" \n", "is empty"), ("x" * (TEXT_MAX + 1), "has 16,385 bytes, and 16,384 are")],
)
def test_a_text_that_is_none_or_too_long_is_refused(root: Path, run: Run, text: str, words: str) -> None:
    task(root)
    done = run("tell", "edit", text)
    assert (done.code, contents(root, "tell")) == (2, [])
    assert words in " ".join(done.err.split())


def test_bytes_that_are_no_text_are_refused(root: Path, run: Run) -> None:
    task(root)
    done = run("tell", "edit", "-", stdin=b"\xff\xfe")
    assert (done.code, "is no UTF-8 text" in done.err) == (2, True)


def test_who_cannot_be_told_is_refused_with_a_way_out(root: Path, run: Run) -> None:
    end(root, "done")
    end(root, "broken", "failed")
    task(root, "c", "ready/type=command,run=command", type=None, command=["make"])
    task(root, "m", "ready/type=merge", type="merge")
    worker(root, coder=ABOUT, merge={})
    done = run("tell", "done", "Use v2.")
    assert (done.code, "task done has completed, and its agent is gone." in done.err) == (2, True)
    assert "`spool agent t 'PROMPT' --after done`" in " ".join(done.err.split())
    assert "`spool retry broken` runs it again, and then it can be told." in " ".join(
        run("tell", "broken", "x").err.split()
    )
    assert "task c runs no agent, but a command, so nobody reads a message." in " ".join(
        run("tell", "c", "x").err.split()
    )
    assert "task m is of the type merge, whose handler is no agent" in " ".join(run("tell", "m", "x").err.split())
    assert run("tell", "nowhere", "x").code == 4
    task(root)
    assert run("tell", "edi", "x").code == 4, "the beginning of an id may fit another task"
    assert contents(root, "tell") == []
    assert run("tell", "edit", "x").code == 0


def test_no_more_than_may_stand(root: Path, run: Run) -> None:
    task(root)
    for number in range(STANDING_MAX):
        put(root, f"control/tell.EDIT.{number}.json", {"tell": "x"})
    done = run("tell", "edit", "x")
    assert (done.code, f"task edit has {STANDING_MAX} messages, and no more are kept" in done.err) == (2, True)


def test_show_and_explain_say_who_told_what_and_who_has_it(root: Path, run: Run) -> None:
    at = "2026-02-02T09:00:00Z"
    task(root)
    leader(root)
    put(root, "control/tell.edit.1.json", {"by": "ada@desk", "at": at, "tell": "Use v2.\x1b[2J\nAnd test."})
    put(root, "control/tell.edit.2.json", {"by": "bob@desk", "at": at, "tell": "Be quick."})
    said = {"name": "1", "by": "ada@desk", "at": at, "text": "Use v2.\x1b[2J\nAnd test."}
    result = {
        "task_id": "edit",
        "attempt": 1,
        "worker_id": "w-aaaaa",
        "status": "failure",
        "output": {"told": [said]},
    }
    put(root, "results/edit.1.w-aaaaa.json", {**result, "completed_at": at, "duration_s": 1})
    shown = run("show", "edit").out
    assert f"told         ada@desk at {at}, given to attempt 1: Use v2. [2J And test.\n" in shown
    assert f"told         bob@desk at {at}, not given yet: Be quick.\n" in shown
    told = json.loads(run("show", "edit", "--json").out)["told"]
    assert [(one["by"], one["attempts"]) for one in told] == [("ada@desk", [1]), ("bob@desk", [])]
    explained = run("explain", "edit").out
    assert f"told: bob@desk told its agent at {at}: Be quick." in explained
    assert "what would change it (told): its agent is given that with the prompt of its next attempt" in explained


def test_an_ended_task_shows_what_it_had(root: Path, run: Run) -> None:
    said = {"name": "1", "by": "ada@desk", "at": "x", "text": "Use v2."}
    end(root, "done", output={"told": [said, "strange"]})
    assert "told         ada@desk at x, given to attempt 1: Use v2." in run("show", "done").out


def test_several_attempts_that_were_given_a_message_are_named_as_several(root: Path, run: Run) -> None:
    said = [{"name": "1", "by": "ada@desk", "at": "x", "text": "Use v2."}]
    task(root)
    result = {"task_id": "edit", "worker_id": "w-aaaaa", "status": "failure", "completed_at": "x", "duration_s": 1}
    for attempt, session in ((1, "one"), (2, "two"), (3, "two")):
        output = {"told": said, "session": session}
        put(root, f"results/edit.{attempt}.w-aaaaa.json", {**result, "attempt": attempt, "output": output})
    assert "told         ada@desk at x, given to attempts 1 and 2: Use v2." in run("show", "edit").out


def test_history_tells_it(root: Path, run: Run) -> None:
    end(root, "done")
    detail = {"by": "ada@desk", "tell": "Use v2."}
    lines: list[dict[str, Any]] = [
        {"event": "ASKED", "task": "done", "detail": {"request": "tell", "target": "done", **detail}},
        {"event": "TOLD", "task": "done", "attempt": 1, "detail": {**detail, "name": "1"}},
    ]
    path = root / "events" / "m-1.0.jsonl"
    stamped = [{"at": f"2026-02-02T09:00:0{n}Z", "writer": "m-1", "seq": n, **one} for n, one in enumerate(lines)]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in stamped))
    told = run("history", "done").out
    assert "its agent was told something by ada@desk: Use v2." in told
    assert "its agent was given a message of ada@desk: Use v2." in told
