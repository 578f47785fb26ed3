"""Messages for agents: brought to each attempt, noted when given, removed when the task has ended, and never lost."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest

from spoold.protocol.agent_messages import STANDING_MAX, TEXT_MAX, lines_of
from spoold.store.journal import Reader
from tests.master.test_approvals import result
from tests.master.test_holds import request
from tests.support.cluster import Cluster, Node

AGENT = {"handlers": {"coder": {"command": ["agent"]}}}
SETTINGS = "[retry]\nmax = 5\nbackoff_s = 0.001\n"
AT = "2026-02-02T09:00:00Z"


def cluster(*, worker: bool = True) -> Cluster:
    made = Cluster(SETTINGS)
    made.master("m1")
    if worker:
        made.worker("w1", slots=2, config=AGENT)
    made.settle()
    return made


def drop(made: Cluster, task_id: str = "t", **more: Any) -> None:
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "type": "coder", "input": {"prompt": "x"}, **more}))
    made.settle()


def tell(made: Cluster, text: str, unique: str = "1", task_id: str = "t") -> None:
    request(made, "tell", task_id, unique, by="ada@desk", at=AT, tell=text)


def brought(made: Cluster, run: str = "t.1", on: str = "w1") -> list[str]:
    return [one.text for one in lines_of(scratch(made.nodes[on]).read(run, "told.jsonl", 0, 1 << 20))]


def scratch(node: Node) -> Any:
    assert node.scratch is not None
    return node.scratch


def say(made: Cluster, run: str, file: str, said: Any, on: str = "w1") -> None:
    scratch(made.nodes[on]).write(run, file, json.dumps(said).encode())


def had(*names: str) -> dict[str, Any]:
    return {"told": [{"name": name, "by": "ada@desk", "at": AT, "text": "Use v2."} for name in names]}


def noted(made: Cluster, event: str) -> list[tuple[int | None, dict[str, Any]]]:
    return [(one.attempt, dict(one.detail)) for one in Reader(made.fs).read() if one.event == event]


def test_a_message_reaches_the_running_attempt_and_is_noted_and_gone_in_the_end() -> None:
    made = cluster()
    drop(made)
    assert brought(made) == []
    tell(made, "Use v2.")
    made.advance(3)
    assert brought(made) == ["Use v2."]
    asked = [detail for _, detail in noted(made, "ASKED")]
    assert [(one["request"], one["by"], one["tell"]) for one in asked] == [("tell", "ada@desk", "Use v2.")]
    assert noted(made, "TOLD") == []
    say(made, "t.1", "progress.json", {"told": ["1", "unknown", 5]})
    made.advance(12)
    assert noted(made, "TOLD") == [(1, {"by": "ada@desk", "at": AT, "tell": "Use v2.", "name": "1"})]
    assert made.fs.list("control") == ["tell.t.1.json"], "the next attempt may need it"
    say(made, "t.1", "result.json", had("1"))
    made.finish("t")
    made.advance(3)
    assert made.state("t") == "completed"
    assert made.fs.list("control") == []
    assert len(noted(made, "TOLD")) == 1
    assert noted(made, "IGNORED") == []


def test_a_waiting_task_has_its_messages_when_it_starts_in_their_order() -> None:
    made = cluster(worker=False)
    drop(made)
    tell(made, "second", "2")
    tell(made, "first", "1")
    made.advance(1)
    assert made.state("t") == "ready", "no gate asks for a message"
    made.worker("w1", config=AGENT)
    made.settle()
    assert brought(made) == ["first", "second"]
    runner = made.nodes["w1"].runner
    assert runner is not None
    assert runner.started[0].own["SPOOL_TOLD_FILE"].endswith("/told.jsonl")


def test_each_attempt_gets_them_all_again_also_after_a_death_of_the_worker_and_of_the_leader() -> None:
    made = cluster()
    drop(made)
    tell(made, "Use v2.")
    made.advance(3)
    made.finish("t", exit_code=1)
    made.advance(3)
    assert brought(made, "t.2") == ["Use v2."]
    made.crash("w1")
    made.crash("m1")
    made.master("m2")
    made.worker("w2", config=AGENT)
    made.advance(60)
    assert brought(made, "t.3", "w2") == ["Use v2."]
    assert made.fs.list("control") == ["tell.t.1.json"]


@pytest.mark.parametrize("ended", [0, 64])
def test_a_message_that_the_end_left_over_is_noted(ended: int) -> None:
    made = cluster()
    drop(made)
    tell(made, "Use v2.", "1")
    tell(made, "And test.", "2")
    made.advance(3)
    say(made, "t.1", "result.json", had("1"))
    made.finish("t", exit_code=ended)
    made.advance(3)
    assert made.state("t") == ("completed" if ended == 0 else "failed")
    assert result(made, "t")["output"] == had("1")
    (left,) = noted(made, "IGNORED")
    assert left[1]["request"] == "tell"
    assert "does not say that its agent has had this message" in left[1]["why"]
    assert made.fs.list("control") == []


def test_a_message_for_an_unknown_task_and_for_one_that_has_ended_is_ignored() -> None:
    made = cluster()
    tell(made, "Use v2.", task_id="nowhere")
    made.advance(12)
    assert [detail["why"] for _, detail in noted(made, "IGNORED")] == ["there is no such task"]
    drop(made)
    made.finish("t")
    made.advance(3)
    tell(made, "too late")
    made.advance(3)
    assert len(noted(made, "IGNORED")) == 2
    assert made.fs.list("control") == []


@pytest.mark.parametrize("text", ["", " \n", "x" * (TEXT_MAX + 1)])
def test_what_is_no_message_is_ignored_and_not_brought(text: str) -> None:
    made = cluster()
    drop(made)
    tell(made, text)
    made.advance(3)
    assert brought(made) == []
    assert noted(made, "IGNORED")[0][1]["why"].startswith("the message ")
    assert made.fs.list("control") == []


def test_more_than_may_stand_are_ignored() -> None:
    made = cluster()
    drop(made)
    for number in range(STANDING_MAX + 2):
        tell(made, f"message {number}", f"{number:03}")
    made.advance(5)
    assert brought(made) == [f"message {number}" for number in range(STANDING_MAX)]
    assert len(made.fs.list("control")) == STANDING_MAX
    assert len(noted(made, "IGNORED")) == 2


def test_a_message_that_cannot_be_read_or_removed_for_a_while_comes_later_and_once() -> None:
    made = cluster()
    drop(made)
    worker = made.nodes["w1"]
    worker.fs.fail("read", "control/tell.t.1.json", errno.EIO, times=3)
    tell(made, "Use v2.")
    made.advance(30)
    assert brought(made) == ["Use v2."]
    made.nodes["m1"].fs.fail("unlink", "control/tell.t.1.json", errno.EBUSY, times=5)
    say(made, "t.1", "result.json", had("1"))
    made.finish("t")
    made.advance(40)
    assert made.state("t") == "completed"
    assert made.fs.list("control") == []
    assert noted(made, "IGNORED") == []


def test_a_command_gets_no_messages() -> None:
    made = cluster()
    made.submit("c.json", json.dumps({"id": "c", "command": ["work"]}))
    made.settle()
    tell(made, "Use v2.", task_id="c")
    made.advance(3)
    assert brought(made, "c.1") == []
    runner = made.nodes["w1"].runner
    assert runner is not None
    assert "SPOOL_TOLD_FILE" not in runner.started[0].own


def test_the_file_of_messages_only_grows() -> None:
    made = cluster()
    drop(made)
    tell(made, "b", "2")
    made.advance(3)
    before = scratch(made.nodes["w1"]).read("t.1", "told.jsonl", 0, 1000)
    tell(made, "a", "1")
    made.advance(3)
    after = scratch(made.nodes["w1"]).read("t.1", "told.jsonl", 0, 1000)
    assert after.startswith(before)
    assert brought(made) == ["b", "a"]
