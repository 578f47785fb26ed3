"""A new leader learns the whole tree, and what to do with what should not be there."""

import errno
import json

import pytest

from spoold.protocol import layout
from spoold.protocol.names import TaskName
from tests.support.cluster import Cluster

LANE = "type=command,run=command"


def cluster(settings: str = "") -> Cluster:
    """A spool that nobody has led yet."""
    return Cluster(settings)


def put(made: Cluster, path: str, task_id: str, **fields: object) -> None:
    """A task file, as a leader before would have left it."""
    made.fs.make_dirs(path.rpartition("/")[0])
    made.fs.write(path, json.dumps({"id": task_id, "command": ["work"], **fields}).encode(), durable=False)


def name(task_id: str, micros: int = 1, **fields: object) -> str:
    """The name of a task file."""
    return TaskName(5000, f"{micros:010d}-1", task_id, **fields).encode()  # type: ignore[arg-type]


def test_a_new_leader_goes_on_from_any_state() -> None:
    made = cluster()
    put(made, f"waiting/{LANE}/{name('rests', delay_ms=3000)}", "rests")
    put(made, f"waiting/{LANE}/{name('child', conditional=True)}", "child", after="done")
    put(made, f"waiting/{LANE}/{name('orphan', conditional=True)}", "orphan", after="lost")
    put(made, f"returned/{name('back', attempt=2).removesuffix('.json')}.w9.json", "back")
    put(made, f"ready/{LANE}/{name('ready')}", "ready")
    put(made, f"claimed/w9/{name('claimed')}", "claimed")
    for state, task_id in (("completed", "done"), ("failed", "lost")):
        put(made, f"{state}/{task_id}.1.w9.json", task_id)
        body = {"task_id": task_id, "attempt": 1, "worker_id": "w9", "status": "success", "completed_at": "x"}
        made.fs.write(f"results/{task_id}.1.w9.json", json.dumps(body).encode(), durable=False)
    made.master("m1")
    made.settle()
    states = {task_id: made.state(task_id) for task_id in ("rests", "child", "orphan", "back", "ready", "claimed")}
    assert states == {
        "rests": "waiting",
        "child": "ready",
        "orphan": "failed",
        "back": "ready",
        "ready": "ready",
        "claimed": "claimed",
    }
    made.advance(4)
    assert made.state("rests") == "ready"
    made.advance(15)
    assert made.state("claimed") in ("waiting", "ready")  # w9 has never been seen to live
    assert made.fs.list("claimed") == []


CONDITIONAL = f"waiting/{LANE}/{name('a', conditional=True)}"


@pytest.mark.parametrize(
    ("token", "verb", "unseen"),
    [
        (f"waiting/{LANE}/{name('a')}", "list", f"waiting/{LANE}"),
        (CONDITIONAL, "read", CONDITIONAL),
        (f"{layout.bucket('a')}/a.1.w9.completed.json", "list", layout.bucket("a")),
        (f"admitting/1.m9.1/{name('a')}", "list", "admitting/1.m9.1"),
        (f"admitting/1.m9.1/{name('a')}", "rmdir", "admitting/1.m9.1"),
    ],
)
def test_what_did_not_show_itself_for_a_moment_is_not_forgotten(token: str, verb: str, unseen: str) -> None:
    """The share is away while a new leader reads the tree, and there again at its next look."""
    made = cluster()
    put(made, token, "a", not_before="2099-01-01T00:00:00Z")
    body = {"task_id": "a", "attempt": 1, "worker_id": "w9", "status": "success", "completed_at": "x"}
    if token.startswith("archive/"):
        made.fs.write(token.replace("completed", "result"), json.dumps(body).encode(), durable=False)
    made.submit("b.json", '{"id": "a", "command": ["other"]}')
    leader = made.master("m1")
    leader.fs.fail(verb, unseen, errno.ENOENT)
    made.settle()
    assert json.loads(made.fs.read(made.find("a").path))["command"] == ["work"]
    assert "b.json" in made.fs.list("rejected")
    assert [door.split(".")[1] for door in made.fs.list("admitting")] == ["m1"]


def test_what_is_claimed_counts_for_its_type_though_its_lane_is_only_in_the_file() -> None:
    made = cluster("[types.mail]\nmax_concurrent = 1\n")
    put(made, f"claimed/w1/{name('running')}", "running", type="mail")
    made.worker("w1")
    made.advance(8)  # first the worker looks whether a twin has made that claim
    made.master("m1")
    made.submit("next.json", '{"id": "next", "type": "mail", "command": ["work"]}')
    made.settle()
    assert made.state("next") == "waiting"
    made.finish("running")
    made.settle()
    assert made.state("next") == "claimed"


def test_the_deadline_of_what_others_admitted_is_known_again() -> None:
    made = cluster()
    put(made, f"ready/{LANE}/{name('late', conditional=True)}", "late", deadline="2025-10-09T08:53:30Z")
    made.master("m1")
    made.advance(8)
    assert made.state("late") == "ready"
    made.advance(4)
    assert made.state("late") == "failed"


def test_a_takeover_that_fails_half_way_begins_anew() -> None:
    made = cluster()
    put(made, f"waiting/{LANE}/{name('a')}", "a")
    node = made.master("m1")
    calls = 0
    while True:
        node.fs.fail("", "", errno.EIO, after=calls)
        made.step("m1")
        if node.fs.faults[0].times:
            break  # the step had no such call
        node.fs.faults.clear()
        calls += 1
        assert calls < 100
    node.fs.faults.clear()
    made.settle()
    assert made.state("a") == "ready"
    assert calls >= 10


def test_of_two_tokens_with_one_id_the_older_stays() -> None:
    """Two leaders at once admitted two drops."""
    made = cluster()
    made.witness.twins_allowed = True
    put(made, f"waiting/{LANE}/{name('twin', 1)}", "twin", meta={"which": "older"})
    put(made, f"waiting/{LANE}/{name('TWIN', 2)}", "TWIN", meta={"which": "younger"})
    made.master("m1")
    made.settle()
    made.witness.twins_allowed = False
    made.step("m1")
    assert made.find("twin").state == "ready"
    (rejected,) = [n for n in made.fs.list("rejected") if not n.endswith(".reason.json")]
    assert b"younger" in made.fs.read(f"rejected/{rejected}")
    assert "is taken" in json.loads(made.fs.read(f"rejected/{rejected}.reason.json"))["problem"]


def test_a_twin_of_what_has_moved_on_is_rejected_whatever_its_age() -> None:
    for state in (f"ready/{LANE}", "claimed/w1", "completed", "failed", "archive"):
        made = cluster()
        made.witness.twins_allowed = True
        bucket = layout.bucket("twin")
        path = {
            "completed": "completed/twin.1.w1.json",
            "failed": "failed/twin.1.w1.json",
            "archive": f"{bucket}/twin.1.w1.completed.json",
        }.get(state, f"{state}/{name('twin', 5)}")
        put(made, path, "twin")
        body = b'{"task_id": "twin", "attempt": 1}'
        made.fs.make_dirs(bucket)
        for result in ("results/twin.1.w1.json", f"{bucket}/twin.1.w1.result.json"):
            made.fs.write(result, body, durable=False)
        put(made, f"waiting/{LANE}/{name('twin', 9)}", "twin", meta={"which": "second"})
        made.master("m1")
        made.step("m1")
        assert any(n.endswith(".reason.json") for n in made.fs.list("rejected")), state
        assert made.fs.read(path), state


def test_a_waiting_file_that_is_no_task_fails_with_the_reason() -> None:
    made = cluster()
    path = f"waiting/{LANE}/{name('broken', conditional=True)}"
    put(made, path, "broken")
    made.fs.write(path, b"{", durable=False)
    made.master("m1")
    made.settle()
    token = made.find("broken")
    assert token.state == "failed"
    assert token.result is not None
    assert token.result["error"]["code"] == "INVALID_TASK"


def test_a_move_by_the_leader_before_is_seen_once_its_lease_is_over() -> None:
    made = cluster()
    made.master("m1")
    made.settle()
    put(made, f"waiting/{LANE}/{name('late')}", "late")
    made.advance(20)
    assert made.state("late") == "ready"


def test_orders_never_go_back_whatever_the_clock_says() -> None:
    made = cluster()
    put(made, f"waiting/{LANE}/{TaskName(5000, 'z000000000-1', 'future').encode()}", "future")
    made.master("m1")
    made.settle()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    orders = {token.id: token.name.order for token in map(made.find, ("future", "a")) if hasattr(token.name, "order")}
    assert orders["future"] < orders["a"]


def test_a_twin_made_by_hand_and_taken_away_again_does_not_stop_the_leader() -> None:
    """The id is then nowhere, as far as the leader believes, and its other token still claimed."""
    made = Cluster()
    made.master("m1")
    made.worker("w1")
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    claim = made.find("a").path
    lane, name = made.fs.list("ready")[0], claim.rpartition("/")[2]
    made.fs.write(f"ready/{lane}/{name}", made.fs.read(claim), durable=False)
    made.nodes["m1"].master.step()
    made.fs.unlink(f"ready/{lane}/{name}")
    for _ in range(6):
        made.nodes["m1"].master.step()
    made.finish("a")
    made.settle()
    assert made.state("a") == "completed"
