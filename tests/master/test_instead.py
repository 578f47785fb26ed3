"""Another account when one is out: tasks whose limit is closed run as another type, and every limit holds."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from typing import Any

import pytest

from spoold.client.read.explanation import explain
from spoold.client.read.long_listing import describe
from spoold.protocol.lanes import Lane
from spoold.protocol.request import Verb
from spoold.rules.tree.audit import audit
from spoold.store.journal import Reader
from spoold.store.store import open_store
from spoold.store.task_location import locate
from spoold.store.tree_repair import survey
from tests.support.cluster import Cluster, Node

SETTINGS = """
[limits.a]
quota_max_s = 600
[limits.b]
max = 1
quota_max_s = 600
[limits.c]
rate = {count = 2, per_s = 30}
[types.coder]
uses = ["a"]
max_retries = 5
[types.coder-b]
uses = ["b"]
timeout = 77
max_retries = 0
[types.coder-c]
uses = ["c"]
"""
LISTS: Mapping[str, tuple[str, ...]] = {"coder": ("coder-b", "coder-c"), "coder-b": ("coder",)}
ON_B, ON_C = "type=coder-b,for=coder", "type=coder-c,for=coder"
SPENT = {"quota": {"limit": "a", "retry_after_s": 60}}


def cluster(settings: str = SETTINGS, slots: int = 8, instead: Mapping[str, tuple[str, ...]] = LISTS) -> Cluster:
    made = Cluster(settings)
    made.master("m1")
    worker(made, "w1", slots, instead)
    made.settle()
    made.advance(6)
    return made


def worker(made: Cluster, name: str, slots: int = 8, instead: Mapping[str, tuple[str, ...]] = LISTS) -> Node:
    handlers = {kind: {"command": ["work", kind]} for kind in ("coder", "coder-b", "coder-c")}
    return made.worker(name, slots, config={"handlers": handlers}, instead=instead)


def submit(made: Cluster, *names: str, **fields: object) -> None:
    for name in names:
        made.submit(f"{name}.json", json.dumps({"id": name, "type": "coder", "input": {}, **fields}))
    made.settle()


def ask(made: Cluster, verb: Verb, target: str) -> None:
    """A person asks for something."""
    number = sum(1 for _ in Reader(made.fs).read())
    made.fs.write(f"control/{verb}.{target}.p{number}.json", b'{"by": "ada"}', durable=False)
    made.settle()


def close(made: Cluster, limit: str = "a") -> None:
    """A person closes a limit."""
    ask(made, Verb.CLOSE, limit)


def reopen(made: Cluster, limit: str = "a") -> None:
    """A person opens it again."""
    ask(made, Verb.OPEN, limit)


def use_up(made: Cluster, task: str, report: object = SPENT) -> None:
    """The attempt finds its quota used up."""
    for node in made.nodes.values():
        for key in list(node.runner.live) if node.runner else []:
            if key.rpartition(".")[0] == task:
                assert node.scratch is not None
                node.scratch.write(key, "result.json", json.dumps(report).encode())
    made.finish(task, exit_code=75)
    made.settle()


def runs_as(made: Cluster) -> dict[str, str]:
    """The type as which each task runs, by the command of its handler."""
    found = {}
    for node in made.nodes.values():
        for key, live in node.runner.live.items() if node.runner else ():
            found[key.rpartition(".")[0]] = live.job.run.argv[-1]  # type: ignore[union-attr]
    return found


def result(made: Cluster, task: str, attempt: int) -> dict[str, Any]:
    (path,) = [path for path in made.fs.files() if path.startswith(f"results/{task}.{attempt}.")]
    said: dict[str, Any] = json.loads(made.fs.files()[path])
    return said


def told(made: Cluster, event: str) -> list[dict[str, object]]:
    return [said.detail for said in Reader(made.fs).read() if said.event == event and said.detail]


def words(made: Cluster, task: str) -> str:
    store = open_store(made.fs, made.clock, "reader", "/spool")
    made.advance(6)  # until the next snapshot
    answer = explain(store, made.nodes["m1"].host, made.clock, task, sleep=made.clock.advance)
    return f"{answer.verdict} | " + " ".join(f"{reason.reason} {reason.change}" for reason in answer.reasons)


def test_a_spent_quota_sends_tasks_to_the_next_account_also_those_that_have_not_begun() -> None:
    made = cluster(SETTINGS.replace("max = 1", "max = 4"), slots=2)
    submit(made, "t0", "t1", "t2")
    assert runs_as(made) == {"t0": "coder", "t1": "coder"}
    use_up(made, "t0")
    assert runs_as(made) == {"t0": "coder-b", "t1": "coder"}
    made.finish("t1")
    made.settle()
    assert runs_as(made) == {"t0": "coder-b", "t2": "coder-b"}, "one that has begun, and one that has not"
    job = next(live.job for node in made.nodes.values() if node.runner for live in node.runner.live.values())
    assert job.own["SPOOL_TASK_TYPE"] == "coder-b"
    assert (job.timeout_s, job.own["SPOOL_MAX_ATTEMPTS"]) == (77, "6"), "the timeout is that of coder-b"
    made.advance(4)
    assert "it runs on w1 as coder-b" in words(made, "t0")
    made.finish("t0")
    made.settle()
    said = result(made, "t0", 2)
    assert (said["type"], said["instead_of"], said["uses"]) == ("coder-b", "coder", {"b": 1})
    assert (result(made, "t0", 1)["type"], result(made, "t0", 1)["instead_of"]) == ("coder", None)
    assert {"lane": ON_B, "type": "coder-b", "instead_of": "coder"} in told(made, "READY")
    assert {"type": "coder-b", "instead_of": "coder"} in told(made, "STARTED")
    assert made.state("t0") == "completed"


def test_when_the_first_limit_opens_again_later_attempts_use_it() -> None:
    made = cluster()
    submit(made, "t0", retry={"backoff_s": 100})
    use_up(made, "t0")
    assert runs_as(made) == {"t0": "coder-b"}
    made.finish("t0", exit_code=1)
    made.settle()
    made.advance(130)  # beyond the quota, and its trial
    assert runs_as(made) == {"t0": "coder"}
    assert made.find("t0").path.startswith("claimed/")


def test_the_charges_are_those_of_its_own_type() -> None:
    made = cluster()
    submit(made, "t0")
    close(made)
    assert runs_as(made) == {"t0": "coder"}, "what runs goes on"
    submit(made, "t1")
    made.finish("t1", exit_code=1)
    made.settle()
    assert made.state("t1") in ("waiting", "returned", "claimed"), "coder may be tried again, coder-b would not"


def test_a_chain_is_tried_in_order_and_lists_do_not_chain() -> None:
    made = cluster()
    close(made)
    submit(made, "t0", "t1")
    assert runs_as(made) == {"t0": "coder-b", "t1": "coder-c"}, "b has room for one"
    submit(made, "b0", type="coder-b")
    assert made.state("b0") == "waiting", "the room of b is taken"
    close(made, "b")
    submit(made, "b1", type="coder-b")
    assert made.state("b1") == "waiting", "the list of coder-b leads to coder, and its limit is closed"
    close(made, "c")
    submit(made, "t2")
    assert made.state("t2") == "waiting"
    said = words(made, "t2")
    assert "limit a is closed" in said
    assert "as coder-b it would wait, too: limit b is closed" in said
    reopen(made, "c")
    assert runs_as(made)["t2"] == "coder-c"


@pytest.mark.parametrize("held", ["pause", "breaker", "uses", "class", "worker"])
def test_every_gate_of_the_other_type_must_be_open(held: str) -> None:
    settings = SETTINGS
    if held == "breaker":
        settings += "breaker = {failures = 1, open_s = 500}\n"
    if held == "class":
        settings = (
            settings.replace("[types.coder-b]", '[types.coder-b]\nclass = "rare"') + "[classes.rare]\nslots = 1\n"
        )
    lists = {"coder": ("coder-c" if held == "breaker" else "coder-b",)}
    made = cluster(settings, instead={"coder": ("nobody",)} if held == "worker" else lists)
    if held == "pause":
        ask(made, Verb.PAUSE, "coder-b")
    if held == "breaker":
        submit(made, "bad", type="coder-c", max_retries=0)
        made.finish("bad", exit_code=1)
        made.settle()
    if held == "class":
        submit(made, "rare", type="coder-b")
        assert runs_as(made) == {"rare": "coder-b"}
    close(made)
    submit(made, "t0", **({"uses": ["a"]} if held == "uses" else {}))
    assert made.state("t0") == "waiting"
    assert audit(survey(open_store(made.fs, made.clock, "fsck-1", "/spool"))) == []


def test_a_task_that_may_not_go_keeps_no_other_from_it_and_nothing_goes_before_the_limit_is_closed() -> None:
    made = cluster()
    submit(made, "t0", "t1", "t2")
    assert set(runs_as(made).values()) == {"coder"}
    close(made)
    submit(made, "own", uses=["a"])
    submit(made, "t3")
    assert runs_as(made)["t3"] == "coder-b"
    assert made.state("own") == "waiting"


def test_a_task_that_waits_for_a_lock_keeps_no_younger_one_from_going() -> None:
    made = cluster(SETTINGS.replace("max = 1", "max = 4"), instead={"coder": ("coder-b",)})
    submit(made, "first", type="coder-b", locks={"write": ["src/"]})
    close(made)
    submit(made, "behind", locks={"write": ["src/a"]})
    submit(made, "free", locks={"write": ["docs/"]})
    submit(made, "plain")
    assert runs_as(made) == {"first": "coder-b", "free": "coder-b", "plain": "coder-b"}
    made.finish("first")
    made.settle()
    assert runs_as(made)["behind"] == "coder-b"


def test_the_limits_of_the_other_type_hold_for_both_and_the_older_task_goes_first() -> None:
    made = cluster(instead={"coder": ("coder-b",)})
    close(made)
    submit(made, "b0", type="coder-b")
    submit(made, "t0", "t1")
    submit(made, "b1", type="coder-b")
    assert runs_as(made) == {"b0": "coder-b"}
    for done, begun in (("b0", "t0"), ("t0", "t1"), ("t1", "b1")):
        made.finish(done)
        made.settle()
        assert list(runs_as(made)) == [begun]


def test_a_new_task_of_the_other_type_does_not_overtake_an_older_one_that_waits_for_its_room() -> None:
    made = cluster(instead={"coder": ("coder-b",)})
    close(made)
    submit(made, "b0", type="coder-b")
    submit(made, "t0")
    made.finish("b0")
    made.step("w1")
    made.submit("b1.json", json.dumps({"id": "b1", "type": "coder-b", "input": {}}))
    made.settle()
    assert list(runs_as(made)) == ["t0"]


def test_ready_tasks_of_another_type_go_back_to_their_own_lane_when_the_first_limit_opens() -> None:
    made = cluster(SETTINGS.replace("max = 1", "max = 4"), slots=1)
    submit(made, "long")
    close(made)
    submit(made, "t0", "t1")
    assert [made.find(name).path.split("/")[1] for name in ("t0", "t1")] == [ON_B, ON_B]
    assert "it goes to coder-b, since limit a is closed" in words(made, "t0")
    store = open_store(made.fs, made.clock, "reader", "/spool")
    (row,) = describe(store, [locate(store, "t0")])
    assert (row.type, row.lane) == ("coder", ON_B)
    assert row.reason.startswith("it goes to coder-b, since limit a is closed")
    assert audit(survey(open_store(made.fs, made.clock, "fsck-1", "/spool"))) == []
    reopen(made)
    assert [made.find(name).path.split("/")[1] for name in ("t0", "t1")] == ["type=coder", "type=coder"]
    close(made)
    close(made, "b")
    assert made.find("t0").path.split("/")[1] == ON_C, "its first choice is closed, too"
    assert made.find("t1").path.split("/")[1] == ON_C
    close(made, "c")
    assert [made.find(name).path.split("/")[:2] for name in ("t0", "t1")] == [["waiting", "type=coder"]] * 2


def test_a_lane_of_another_type_in_waiting_is_a_fault_that_fsck_finds() -> None:
    made = cluster()
    close(made)
    close(made, "b")
    close(made, "c")
    submit(made, "t0")
    token = made.find("t0").path
    made.fs.mkdir(f"waiting/{ON_B}")
    made.fs.rename(token, f"waiting/{ON_B}/{token.rpartition('/')[2]}")
    found = audit(survey(open_store(made.fs, made.clock, "fsck-1", "/spool")))
    assert [finding.law for finding in found] == ["lane"]


@pytest.mark.parametrize("beats", [True, False])
def test_a_new_leader_counts_a_claim_as_what_it_runs_as_and_for_every_type_until_it_knows(beats: bool) -> None:
    made = cluster(instead={"coder": ("coder-b",)})
    close(made)
    submit(made, "t0")
    assert runs_as(made) == {"t0": "coder-b"}
    if beats:
        made.advance(6)
    made.crash("m1")
    made.submit("b0.json", json.dumps({"id": "b0", "type": "coder-b", "input": {}}))
    leader = made.master("m2")
    if not beats:
        leader.fs.fail("read", "heartbeats/w1", errno.EACCES, times=10**6)
    made.submit("free.json", json.dumps({"id": "free", "command": ["work"]}))
    made.advance(40)
    assert (made.state("t0"), made.state("b0"), made.state("free")) == ("claimed", "waiting", "claimed")
    made.finish("t0")
    made.advance(10)
    assert runs_as(made)["b0"] == "coder-b"


def test_the_lane_of_another_type_stays_while_a_claim_is_of_it_and_goes_afterwards() -> None:
    made = cluster()
    close(made)
    submit(made, "t0")
    made.advance(150)
    assert ON_B in made.fs.list("ready")
    made.finish("t0")
    made.advance(150)
    assert ON_B not in made.fs.list("ready")


def test_a_move_there_whose_end_is_unknown_counts_for_the_other_type() -> None:
    made = cluster(instead={"coder": ("coder-b",)})
    close(made)
    made.submit("t0.json", json.dumps({"id": "t0", "type": "coder", "input": {}}))
    made.fs.mkdir(f"ready/{ON_B}")
    leader = made.nodes["m1"]
    leader.fs.fail("rename", "waiting/type=coder/", errno.EIO, how="done")
    leader.fs.hang("list", "ready/", lambda: made.step("w1"))  # claimed before the leader looks
    made.step("m1")
    made.submit("b0.json", json.dumps({"id": "b0", "type": "coder-b", "input": {}}))
    for _ in range(4):
        made.step("m1")
        made.step("w1")
        assert len(runs_as(made)) <= 1
    made.settle()
    assert runs_as(made) == {"t0": "coder-b"}


def test_a_lost_claim_of_which_nobody_knows_how_it_ran_has_all_limits_in_its_record() -> None:
    made = cluster(instead={"coder": ("coder-b",)})
    close(made)
    made.submit("t0.json", json.dumps({"id": "t0", "type": "coder", "input": {}}))
    while not runs_as(made):
        made.step_all()
    made.crash("w1")
    made.crash("m1")
    made.master("m2")
    made.advance(40)
    assert result(made, "t0", 1)["uses"] == {"a": 1, "b": 1}
    assert made.find("t0").path.split("/")[:2] == ["waiting", "type=coder"]


def test_a_worker_that_is_not_sure_from_which_lane_it_claimed_hands_the_task_back() -> None:
    made = cluster()
    close(made)
    made.submit("t0.json", json.dumps({"id": "t0", "type": "coder", "input": {}}))
    while not made.fs.list(f"ready/{ON_B}") if ON_B in made.fs.list("ready") else True:
        made.step("m1")
    node = made.nodes["w1"]
    claims = node.worker._claims
    name = next(iter(made.nodes["m1"].master._desk.view.ready[ON_B].values()))  # type: ignore[union-attr]
    claims.order(name, Lane("coder-c", instead_of="coder"))  # an error hid what became of that
    node.fs.fail("rename", f"ready/{ON_B}", errno.EIO, how="done")
    made.step("w1")
    made.step("w1")
    assert runs_as(made) == {}
    made.settle()
    assert made.state("t0") in ("claimed", "waiting", "ready")
    assert result(made, "t0", 1)["status"] == "handed_back"


def test_a_claim_that_turns_up_late_runs_as_the_type_of_its_lane() -> None:
    made = cluster()
    close(made)
    node = made.nodes["w1"]
    node.fs.fail("rename", "ready/", errno.EIO, how="done")
    submit(made, "t0")
    made.advance(5)
    assert runs_as(made) == {"t0": "coder-b"}


def test_a_heartbeat_may_say_anything() -> None:
    wild: dict[str, tuple[str, ...]] = {
        "coder": ("../x", "coder", "", "nobody", "coder-b", "coder-b", "x" * 300),
        "no type": ("coder-b",),
        "": (),
    }
    made = cluster(instead=wild)
    close(made)
    submit(made, "t0")
    assert runs_as(made) == {"t0": "coder-b"}
    worker(made, "w0", instead={"coder": ("coder-c",)})
    made.advance(6)
    made.finish("t0")
    submit(made, "t1")
    assert runs_as(made) == {"t1": "coder-c"}, "the list of the first worker comes first"


def test_a_task_that_reserves_a_budget_draws_on_those_of_the_other_type() -> None:
    settings = SETTINGS.replace("[types.coder-b]", '[types.coder-b]\nbudgets = ["small"]')
    settings += "[budgets.small]\ncost_usd = 1\n"
    made = cluster(settings, instead={"coder": ("coder-b", "coder-c")})
    close(made)
    submit(made, "t0", budget={"cost_usd": 2})
    assert runs_as(made) == {"t0": "coder-c"}, "b may not spend so much"
    submit(made, "t1", budget={"cost_usd": 0.75})
    assert runs_as(made)["t1"] == "coder-b"
    submit(made, "t2", budget={"cost_usd": 0.75})
    assert runs_as(made)["t2"] == "coder-c"
