"""A scene has all that the spool says of a batch, and costs as many reads as there are files to read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from spoold.client.read import graph_data, selecting
from spoold.client.read.graph_data import TAIL_BYTES, scene_of
from spoold.client.read.task_groups import Batch
from spoold.client.read.task_info import describe
from spoold.pictures import picture_data
from spoold.pictures.picture_data import RUNNING, UNKNOWN, Bond, Need, Scene, Task
from spoold.protocol import codec, layout
from spoold.protocol.errors import NotFound
from spoold.protocol.heartbeat import Capabilities, Heartbeat, Running
from spoold.protocol.names import BeatName
from spoold.protocol.result import Code, Status
from spoold.protocol.timestamps import moment
from tests.client.trees import WORKER, Tree

TIMES: dict[str, Any] = {"started_at": "2026-01-01T00:00:01Z", "completed_at": "2026-01-01T00:00:05Z"}
# Of a record, and not of a task.
FIELDS = ("output", "tokens_used", "cost_usd", "total", "error")
BEGAN = 1_767_225_601.0


def put(tree: Tree, path: str, **task: Any) -> None:
    """The content of a task that is there already."""
    tree.fs.write(path, codec.dump({"type": "t", "batch": "b", **task}), durable=False)


def ended(tree: Tree, task_id: str, *, attempt: int = 1, code: Code | None = None, **task: Any) -> None:
    more: dict[str, Any] = {**TIMES}
    more |= {name: task.pop(name) for name in FIELDS if name in task}
    tree.ends(task_id, attempt, code=code, duration_s=4.0, **more)
    state = layout.COMPLETED if code is None else layout.FAILED
    put(tree, layout.join(state, f"{task_id}.{attempt}.{WORKER}.json"), **task)


def beats(tree: Tree, *running: Running, **more: Any) -> None:
    beat = Heartbeat(node=WORKER, beat=7, at="2026-01-01T00:01:00Z", running=running, **more)
    tree.put(layout.join(layout.HEARTBEATS, BeatName(WORKER, 7).encode()), codec.dump(beat))


def seen(tree: Tree, batch: str | None = "b", **more: Any) -> Scene:
    with tree.spool() as spool:
        return spool.scene(batch, **more)


def by_id(scene: Scene) -> dict[str, Task]:
    return {task.id: task for task in scene.tasks}


def test_only_the_batch_is_in_it_in_the_order_of_a_list() -> None:
    tree = Tree()
    put(tree, tree.waits("later"))
    ended(tree, "done")
    put(tree, tree.ready("other"), batch="c")
    put(tree, tree.ready("soon"), name="Soon", type="build")
    scene = seen(tree)
    assert scene.title == "batch b"
    assert [(task.id, task.state, task.type, task.name) for task in scene.tasks] == [
        ("later", "waiting", "t", ""),
        ("soon", "ready", "build", "Soon"),
        ("done", "completed", "t", ""),
    ]
    assert {task.id for task in seen(tree, None).tasks} == {"later", "done", "other", "soon"}


def test_a_batch_without_a_task_is_an_error_that_guesses() -> None:
    tree = Tree()
    put(tree, tree.waits("a"), batch="nightly")
    with pytest.raises(NotFound, match="nightly"):
        seen(tree, "nightli")
    assert seen(Tree(), None).tasks == ()


def test_all_attempts_are_told_and_the_record_counts_for_those_that_ended() -> None:
    tree = Tree()
    tree.result("a", 1, code=Code.EXIT_NONZERO, exit_code=3, duration_s=4.0, **TIMES)
    put(tree, tree.claimed("a", attempt=2))
    beats(tree, Running(id="A", attempt=2, since="2026-01-01T00:00:30Z", progress={"tokens_used": 9}))
    first, second = seen(tree).tasks[0].attempts
    assert (first.number, first.worker, first.status, first.code, first.exit_code) == (
        1,
        WORKER,
        Status.FAILURE,
        "EXIT_NONZERO",
        3,
    )
    assert (first.begin, first.end, first.duration_s, first.message) == (BEGAN, BEGAN + 4, 4.0, "it broke")
    assert (second.number, second.status, second.begin, second.end, second.tokens) == (
        2,
        RUNNING,
        BEGAN + 29,
        None,
        9,
    )


def test_an_attempt_that_ended_while_it_was_looked_at_is_told_once() -> None:
    tree = Tree()
    put(tree, tree.claimed("a"))
    tree.result("a", 1, **TIMES)
    assert [one.status for one in seen(tree).tasks[0].attempts] == [Status.SUCCESS]


def test_a_running_task_of_which_no_heartbeat_tells_has_no_begin() -> None:
    tree = Tree()
    put(tree, tree.claimed("a"))
    beats(tree, Running(id="a", attempt=9, since="2026-01-01T00:00:30Z"), Running(id="b", attempt=1))
    (one,) = seen(tree).tasks[0].attempts
    assert (one.status, one.worker, one.begin) == (RUNNING, WORKER, None)


def test_a_stamp_that_is_none_is_no_begin() -> None:
    assert moment("yesterday") is None
    assert moment("2026-01-01T00:00:01Z") == BEGAN


def test_what_a_task_waits_for_is_told_with_the_bond_and_outside_tasks_with_their_state() -> None:
    tree = Tree()
    ended(tree, "first")
    ended(tree, "Elsewhere", batch="c")
    content = {"after": "FIRST", "after_any": ["elsewhere"], "after_failed": ["nowhere"], "after_batch": "C"}
    put(tree, tree.waits("a"), **content)
    tasks = by_id(seen(tree))
    assert tasks["a"].needs == (
        Need("first"),
        Need("elsewhere", Bond.END),
        Need("nowhere", Bond.FAILURE),
        Need("batch c", Bond.BATCH),
    )
    outside = {task.id: task.state for task in tasks.values() if task.outside}
    assert outside == {"Elsewhere": "completed", "nowhere": UNKNOWN, "batch c": UNKNOWN}


def test_a_task_whose_content_is_wrong_waits_for_nothing() -> None:
    tree = Tree()
    put(tree, tree.waits("a"), nonsense=True, after="b")
    assert seen(tree).tasks[0].needs == ()


def test_archived_tasks_are_there_with_their_records_unless_they_are_not_wanted() -> None:
    tree = Tree()
    ended(tree, "old", tokens_used=5)
    tree.archives("old")
    put(tree, layout.join(layout.bucket("old"), f"old.1.{WORKER}.completed.json"))
    ended(tree, "new")
    (new, old) = sorted(seen(tree).tasks, key=lambda task: task.id)
    assert (old.archived, [one.tokens for one in old.attempts]) == (True, [5])
    assert not new.archived
    assert [task.id for task in seen(tree, archived=False).tasks] == ["new"]


def test_a_rejected_drop_is_a_task_of_its_own_with_its_reason() -> None:
    tree = Tree()
    ended(tree, "a")
    tree.rejects("a.json", "a")
    put(tree, layout.join(layout.REJECTED, "a.json"), tpye="t")
    scene = seen(tree)
    assert [(task.state, task.id) for task in scene.tasks] == [("completed", "a"), ("rejected", "a")]
    assert len({task.key for task in scene.tasks}) == 2
    assert scene.tasks[1].cause is not None
    assert scene.tasks[1].cause[0] == "rejected"
    assert "unknown field" in scene.tasks[1].reason


def varied() -> Tree:
    """Successes, failures of two kinds, retries, a waiting and a running task, with figures."""
    tree = Tree()
    for number in range(5):
        ended(tree, f"ok-{number}", tokens_used=100 + number, cost_usd=0.01 * number)
    tree.result("tried", 1, code=Code.WORKER_DIED, duration_s=2.0, tokens_used=7, **TIMES)
    ended(tree, "tried", attempt=2, tokens_used=8, total={"attempts": 2, "duration_s": 6.0, "tokens_used": 15})
    # A record without the sum of all attempts, as a leader of an earlier release wrote it.
    tree.result("short", 1, code=Code.WORKER_DIED, duration_s=2.0, tokens_used=7, **TIMES)
    ended(tree, "short", attempt=2, tokens_used=8)
    ended(tree, "spent", code=Code.MAX_RETRIES, error={"code": "MAX_RETRIES", "message": "late", "cause": "TIMEOUT"})
    ended(tree, "bad-1", code=Code.EXIT_NONZERO)
    ended(tree, "bad-2", code=Code.EXIT_NONZERO)
    ended(tree, "bad-3", code=Code.TIMEOUT)
    tree.rejects("r.json", "r")
    put(tree, layout.join(layout.REJECTED, "r.json"))
    put(tree, tree.waits("later"))
    put(tree, tree.claimed("runs"))
    return tree


def test_its_figures_are_those_of_status_and_of_show() -> None:
    tree = varied()
    scene = seen(tree)
    with tree.spool() as spool:
        progress = Batch(spool.store, "b").look()
        assert picture_data.counts(scene) == progress.tasks
        assert (len(scene.inside), picture_data.ended(scene)) == (progress.total, progress.ended)
        assert scene.spent == progress.spent
        causes = [
            (one.code, one.message, len(one.tasks), tuple(task.id for task in one.tasks[: picture_data.IDS_NAMED]))
            for one in picture_data.causes(scene)
        ]
        assert causes == [(one.code, one.message, one.count, one.ids) for one in progress.causes]
        for task in scene.inside:
            if task.state != "rejected":
                info = describe(spool.store, task.id)
                assert (task.total, task.reason, task.type) == (info.total, info.reason, info.type)
                ends = [one.number for one in task.attempts if one.status != RUNNING]
                assert ends == [one.attempt for one in info.attempts]


def test_a_result_that_cannot_be_read_is_left_out() -> None:
    tree = Tree()
    ended(tree, "a", code=Code.TIMEOUT)
    tree.fs.write(layout.join(layout.RESULTS, f"a.1.{WORKER}.json"), b"{", durable=False)
    task = seen(tree).tasks[0]
    assert (task.attempts, task.total, task.cause) == ((), None, None)
    assert picture_data.causes(seen(tree))[0].code == "unknown"


def test_failed_tasks_have_the_end_of_their_last_log() -> None:
    tree = Tree()
    ended(tree, "short", code=Code.TIMEOUT)
    tree.log("short", b"\x1b[31mred\x1b[0m\n")
    ended(tree, "long", code=Code.TIMEOUT)
    tree.log("long", b"x" * TAIL_BYTES + b"\nthe end\n")
    ended(tree, "mute", code=Code.TIMEOUT)
    ended(tree, "fine")
    tree.log("fine", b"never read")
    tasks = by_id(seen(tree, tails=9))
    assert {name: task.wrote for name, task in tasks.items()} == {
        "short": "red",
        "long": "…\nthe end",
        "mute": "",
        "fine": "",
    }
    assert not any(task.wrote for task in seen(tree).tasks)
    assert sum(bool(task.wrote) for task in seen(tree, tails=1).tasks) <= 1


def test_the_model_is_what_the_record_says_else_the_task_else_the_profile() -> None:
    tree = Tree(b'[types.coder]\nmodel = "of-the-type"\n')
    beats(tree, capabilities=Capabilities(about={"coder": {"agent": "claude", "model": "of-the-profile"}}))
    ended(tree, "said", output={"model": "of-the-record"}, agent="coder", type="")
    ended(tree, "asked", agent="coder", type="", input={"model": "of-the-task"})
    ended(tree, "profile", agent="coder", type="")
    ended(tree, "plain", type="build")
    models = {task.id: task.attempts[0].model for task in seen(tree).tasks}
    assert models == {"said": "of-the-record", "asked": "of-the-task", "profile": "of-the-profile", "plain": ""}
    tree.fs.unlink(layout.join(layout.HEARTBEATS, BeatName(WORKER, 7).encode()))
    assert by_id(seen(tree))["profile"].attempts[0].model == "of-the-type"


def test_a_task_that_moves_while_it_is_read_is_found_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree()
    path = tree.ready("a")
    put(tree, path)
    real = selecting.candidates

    def moving(*args: Any, **more: Any) -> Any:
        for located, content in real(*args, **more):
            if located.path == path:
                tree.fs.rename(path, layout.claimed(WORKER, path.rpartition("/")[2]))
            yield located, content

    tree.put(layout.claimed(WORKER, "x"))
    monkeypatch.setattr(graph_data, "candidates", moving)
    assert [(task.id, task.state) for task in seen(tree).tasks] == [("a", "claimed")]


class Counting:
    """A file system that counts what is asked of it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        def counted(*args: Any, **more: Any) -> Any:
            self.asked[name] += 1
            return value(*args, **more)

        return counted


def asked(count: int) -> Counter[str]:
    """What a scene of so many tasks of each kind asks of the share."""
    tree = Tree()
    for number in range(count):
        ended(tree, f"ok-{number}")
        ended(tree, f"bad-{number}", code=Code.TIMEOUT)
        put(tree, tree.waits(f"later-{number}"), after=[f"ok-{number}", f"other-{number}"])
        ended(tree, f"other-{number}", batch="c")
        put(tree, tree.claimed(f"runs-{number}"))
    beats(tree)
    counting = Counting(tree.fs)
    tree.fs = counting  # type: ignore[assignment]
    with tree.spool() as spool:
        counting.asked.clear()
        assert len(scene_of(spool.store, "b").inside) == 4 * count
        return counting.asked.copy()


def test_more_tasks_cost_reads_and_not_listings_and_nothing_is_written() -> None:
    few, many = asked(5), asked(50)
    assert many["list"] == few["list"]
    assert many["read"] - few["read"] == 45 * (5 + 2)  # each task once, and two records for each five tasks
    assert set(many) <= {"list", "read", "stat"}


def test_a_task_with_children_has_what_all_of_them_came_to() -> None:
    tree = Tree()
    ended(tree, "plan", tokens_used=1, cost_usd=0.5)
    ended(tree, "a", parent="Plan", tokens_used=10)
    ended(tree, "b", parent="a", cost_usd=0.25)
    ended(tree, "alone", parent="elsewhere", tokens_used=5)
    scene = seen(tree)
    assert {task.id: task.tree for task in scene.tasks if task.tree} == {"plan": (3, 11, 0.75), "a": (2, 10, 0.25)}
    assert [task.id for task in picture_data.dearest(scene)] == ["plan", "a", "b", "alone"]
