"""Limits, rates and quotas over whole clusters: who may start, who waits, and what a new leader knows of it."""

from __future__ import annotations

import errno
import json

import pytest

from spoold.client.read.explanation import explain
from spoold.client.read.long_listing import describe
from spoold.client.spool.limits_and_budgets import list_limits
from spoold.protocol.names import TaskName
from spoold.rules.gates.limit_gates import RAMP_END_S
from spoold.store.journal import Reader
from spoold.store.store import open_store, stamp
from spoold.store.task_location import locate
from tests.support.cluster import Cluster
from tests.support.faults import Hang

LIMITS = """
[limits.llm]
max = 3
quota_max_s = 600
[limits.own]
per = "worker"
max = 2
rate = {count = 3, per_s = 10}
[limits.api]
rate = {count = 3, per_s = 10}
[types.typed]
uses = ["llm"]
"""
TASK = {"command": ["work"], "uses": ["llm"]}
REPORT = {"quota": {"limit": "llm", "retry_after_s": 60}}


def cluster(workers: int = 1, slots: int = 8) -> Cluster:
    made = Cluster(LIMITS)
    made.master("m1")
    for number in range(workers):
        made.worker(f"w{number + 1}", slots)
    made.settle()
    return made


def submit(made: Cluster, count: int, first: int = 0, **fields: object) -> None:
    for number in range(first, first + count):
        task = {**TASK, "id": f"t{number}", **fields}
        made.submit(f"{number:04}.json", json.dumps(task))
    made.settle()


def states(made: Cluster, count: int) -> list[str]:
    return [made.state(f"t{number}") for number in range(count)]


def running(made: Cluster) -> list[str]:
    return sorted(key.rpartition(".")[0] for keys in made.running().values() for key in keys)


def use_up(made: Cluster, task: str, report: object = REPORT) -> None:
    """The attempt finds its quota used up."""
    for node in made.nodes.values():
        for key in list(node.runner.live) if node.runner else []:
            if key.rpartition(".")[0] == task:
                assert node.scratch is not None
                node.scratch.write(key, "result.json", json.dumps(report).encode())
    made.finish(task, exit_code=75)
    made.settle()


def told(made: Cluster, event: str) -> list[dict[str, object]]:
    return [said.detail for said in Reader(made.fs).read() if said.event == event]


def quotas(made: Cluster) -> list[str]:
    return [name for name in made.fs.list("control") if name.startswith("quota.")]


def words(made: Cluster, task: str) -> str:
    store = open_store(made.fs, made.clock, "reader", "/spool")
    made.advance(6)  # until the next snapshot
    answer = explain(store, made.nodes["m1"].host, made.clock, task, sleep=made.clock.advance)
    return " ".join(f"{reason.reason} {reason.change}" for reason in answer.reasons)


def test_units_are_shared_by_all_types_and_the_oldest_goes_first() -> None:
    made = cluster()
    submit(made, 2)
    submit(made, 1, 2, type="typed", uses=[])
    submit(made, 1, 3, uses={"llm": 2})
    submit(made, 2, 4)
    submit(made, 1, 6, uses=[])
    assert states(made, 7) == ["claimed"] * 3 + ["waiting"] * 3 + ["claimed"]
    made.finish("t0")
    made.settle()
    assert states(made, 6)[3:] == ["waiting"] * 3, "later ones do not take the unit for which t3 waits"
    assert "limit llm runs at its limit: 2 of [limits.llm] max = 3, and the task uses 2" in words(made, "t3")
    made.finish("t1")
    made.settle()
    assert states(made, 6)[2:] == ["claimed", "claimed", "waiting", "waiting"]


def test_a_new_leader_counts_what_runs() -> None:
    made = cluster()
    submit(made, 5)
    made.crash("m1")
    made.master("m2")
    made.advance(30)
    assert running(made) == ["t0", "t1", "t2"]


def test_a_rate_holds_over_a_change_of_leader_and_counts_only_what_used_it() -> None:
    made = cluster()
    submit(made, 5, uses=["api"])
    submit(made, 5, 10, uses=[])
    assert states(made, 5) == ["claimed"] * 3 + ["waiting"] * 2
    assert "limit api is at its rate: 3 of [limits.api] rate.count = 3" in words(made, "t3")
    for task in running(made):
        made.finish(task)
    made.settle()
    made.nodes["m1"].actor.close()
    made.crash("m1")
    made.master("m2")
    made.settle()
    assert states(made, 5)[3:] == ["waiting"] * 2, "the three started a moment ago"
    made.advance(12)
    assert states(made, 5)[3:] == ["claimed"] * 2


def test_a_record_tells_the_units_and_plain_ones_fill_no_window() -> None:
    made = cluster()
    submit(made, 1, uses={"api": 2})
    submit(made, 6, 10, uses=[])
    for task in running(made):
        made.finish(task)
    made.settle()
    made.nodes["m1"].actor.close()
    made.crash("m1")
    made.master("m2")
    submit(made, 2, 1, uses=["api"])
    assert states(made, 3)[1:] == ["claimed", "waiting"], "two units of three are known"
    result = json.loads(made.fs.read(f"results/{next(n for n in made.fs.list('results') if n.startswith('t0.'))}"))
    assert result["uses"] == {"api": 2}


def test_a_record_that_cannot_be_read_counts_for_the_whole_rate() -> None:
    made = cluster()
    submit(made, 1, uses=[])
    made.finish("t0")
    made.settle()
    made.nodes["m1"].actor.close()
    made.crash("m1")
    made.master("m2").fs.fail("read", "results/t0", errno.EIO, times=10_000)
    submit(made, 1, 1, uses=["api"])
    made.advance(2)
    assert made.state("t1") == "waiting"
    made.advance(12)
    assert made.state("t1") == "claimed"


def test_a_used_up_quota_closes_the_limit_for_all_and_charges_nothing() -> None:
    made = cluster()
    submit(made, 5)
    use_up(made, "t0")
    assert (states(made, 5), running(made)) == (["waiting", "claimed", "claimed", "waiting", "waiting"], ["t1", "t2"])
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    assert (name.attempt, name.failures, name.crashes, name.delay_ms) == (2, 0, 0, 0)
    made.finish("t1")
    made.settle()
    assert running(made) == ["t2"], "what runs goes on, and nothing new starts"
    assert "quota of llm: 54 s more, until" in words(made, "t3")
    assert "`spool limits open llm`" in words(made, "t3")
    store = open_store(made.fs, made.clock, "reader", "/spool")
    row = next(limit for limit in list_limits(store) if limit.name == "llm")
    assert (row.closed, bool(row.until)) == (True, True)
    assert "quota of llm" in describe(store, [locate(store, "t3")])[0].reason
    made.clock.set_wall(made.clock.wall() + 3600)  # the clock of whoever asks is an hour ahead
    assert next(limit for limit in list_limits(store) if limit.name == "llm") == row
    assert "quota of llm" in describe(store, [locate(store, "t3")])[0].reason
    made.clock.set_wall(made.clock.wall() - 3600)
    assert told(made, "LIMIT_CLOSED") == [{"limit": "llm", "by": "quota", "why": "task t0, attempt 1"}]


def test_one_task_tries_and_then_the_others_follow() -> None:
    made = cluster()
    submit(made, 5)
    for task in ("t0", "t1", "t2"):
        use_up(made, task)
    assert len(quotas(made)) == 3
    made.advance(61)
    made.settle()
    assert running(made) == ["t0"], "one goes first"
    assert "few tasks at a time try it again" in words(made, "t1")
    store = open_store(made.fs, made.clock, "reader", "/spool")
    assert next(limit for limit in list_limits(store) if limit.name == "llm").trying == "t0"
    made.advance(5)
    assert running(made) == ["t0"]
    made.finish("t0")
    made.settle()
    assert quotas(made) == []
    assert len(running(made)) == 2, "two at once after it"
    made.advance(1)
    assert len(running(made)) == 3
    assert told(made, "LIMIT_OPENED") == [{"limit": "llm"}]
    made.advance(RAMP_END_S)
    assert made.nodes["m1"].master.desk is not None
    assert made.nodes["m1"].master.desk.starts.trials == {}


def test_a_claim_that_turns_up_late_counts_what_has_begun_meanwhile() -> None:
    """Its file could not be read at first; then it started beside others, which used all that its worker may."""
    made = cluster()
    for after in (0, 1):  # the second try is the one before t2 is claimed
        made.nodes["w1"].fs.fail("read", "claimed/w1", errno.EIO, after=after)
    for number in range(3):
        made.submit(f"{number:04}.json", json.dumps({**TASK, "id": f"t{number}", "uses": ["own"]}))
    made.settle()
    assert len(running(made)) == 2
    made.advance(5)
    assert running(made) == ["t1", "t2"]
    made.finish("t1")
    made.settle()
    made.advance(12)
    assert running(made) == ["t0", "t2"]


def with_a_busy_worker(slots: int = 8) -> Cluster:
    """A cluster of two workers, whose limit llm is to be tried again; the only one with the label gpu is busy."""
    made = cluster(slots=slots)
    made.worker("b", 1, labels=("gpu",))
    made.settle()
    submit(made, 1, uses=[], requires={"labels": ["gpu"]})
    submit(made, 1, 1)
    use_up(made, "t1", {"quota": {"limit": "llm", "retry_after_s": 30}})
    submit(made, 1, 2, priority="high", requires={"labels": ["gpu"]})
    submit(made, 1, 3)
    submit(made, slots == 1, 4, uses=[])
    made.advance(31)
    made.settle()
    assert ("t0" in running(made), made.state("t2")) == (True, "ready")
    return made


def test_a_task_that_no_worker_takes_keeps_no_other_from_trying() -> None:
    made = with_a_busy_worker()
    store = open_store(made.fs, made.clock, "reader", "/spool")
    assert "few tasks at a time try it again" in words(made, "t3")
    assert next(limit for limit in list_limits(store) if limit.name == "llm").trying == "t2"
    made.advance(10)
    made.settle()
    assert (running(made), made.state("t2")) == (["t0", "t1"], "waiting")
    assert "few tasks at a time try it again" in words(made, "t2")
    made.advance(60)
    assert running(made) == ["t0", "t1"], "one tries at a time"
    made.finish("t1")
    made.settle()
    made.advance(RAMP_END_S)
    assert (running(made), made.state("t2")) == (["t0", "t3"], "ready")


def test_each_lane_is_asked_in_turn_and_ever_longer() -> None:
    made = with_a_busy_worker(slots=1)
    assert running(made) == ["t0", "t4"], "nobody has room"
    seen = [made.state("t2")]
    for _ in range(240):
        made.advance(1)
        seen.append(made.state("t2"))
    turns = [state for before, state in zip(["", *seen], seen, strict=False) if state != before]
    assert turns[:3] == ["ready", "waiting", "ready"]
    assert len(turns) < 12


def test_a_trial_that_went_well_but_cannot_be_noted_goes_on_one_at_a_time() -> None:
    """A request that a client holds open cannot be removed; while it stood, all the others went."""
    made = cluster()
    submit(made, 5)
    use_up(made, "t0")
    for task in ("t1", "t2"):
        made.finish(task)
    made.settle()
    made.advance(61)
    made.settle()
    assert running(made) == ["t0"]
    made.nodes["m1"].fs.fail("unlink", "control/quota.", errno.EBUSY, times=1)
    made.finish("t0")
    made.settle()
    assert (len(quotas(made)), running(made)) == (1, ["t3"])
    made.finish("t3")
    made.settle()
    assert (quotas(made), running(made)) == ([], ["t4"])


def test_the_task_that_is_to_try_stays_ready_until_a_worker_has_room_for_it() -> None:
    """It was taken back and made ready again in every step, which the journal told for as long as all were busy."""
    made = cluster(slots=1)
    submit(made, 1)
    use_up(made, "t0")
    submit(made, 1, 1, uses=[])
    assert running(made) == ["t1"]
    made.advance(61)
    made.settle()
    assert made.state("t0") == "ready"
    made.advance(5)
    events = [(event.event, event.task) for event in Reader(made.fs).read()]
    assert events.count(("READY", "t0")) == 1
    assert ("HELD", "t0") not in events
    made.finish("t1")
    made.settle()
    assert running(made) == ["t0"]


def test_the_others_follow_from_the_end_of_a_look_that_took_long() -> None:
    made = cluster()
    submit(made, 6)
    for task in ("t0", "t1", "t2"):
        use_up(made, task)
    made.advance(61)
    made.settle()
    mount, clock = made.nodes["m1"].fs, made.nodes["m1"].clock
    looks: list[str] = []

    def look() -> None:
        looks.append("slow")
        clock.advance(3.0)

    made.finish("t0")
    made.step("w1")
    mount.hangs.append(Hang("list", "control", look, 2))
    made.settle()
    assert (looks, quotas(made)) == (["slow"], [])
    assert len(running(made)) == 2, "the three seconds of the look are none in which tasks could have told"


def serve(made: Cluster, task: str, progress: object) -> None:
    """The attempt says how far it is, and its worker beats."""
    for node in made.nodes.values():
        for key in list(node.runner.live) if node.runner else []:
            if key.rpartition(".")[0] == task:
                assert node.scratch is not None
                node.scratch.write(key, "progress.json", json.dumps(progress).encode())
    made.advance(12)
    made.settle()


def on_trial() -> Cluster:
    """A cluster of whose tasks t0 tries the limit, and three others wait for it."""
    made = cluster()
    submit(made, 4)
    use_up(made, "t0")
    for task in ("t1", "t2"):
        made.finish(task)
    made.settle()
    submit(made, 2, 4)
    made.advance(61)
    made.settle()
    assert running(made) == ["t0"]
    return made


def test_a_trial_that_is_served_lets_the_others_follow_before_it_has_ended() -> None:
    made = on_trial()
    serve(made, "t0", {"served": "yes", "text": "reads"})
    assert (len(quotas(made)), running(made)) == (1, ["t0"]), "only true counts"
    serve(made, "t0", {"served": True, "text": "reads"})
    assert quotas(made) == []
    made.advance(RAMP_END_S)
    assert len(running(made)) == 3
    assert told(made, "LIMIT_OPENED") == [{"limit": "llm"}]
    use_up(made, "t0")
    assert len(quotas(made)) == 1, "it may be used up later all the same"


def test_a_trial_that_is_served_opens_nothing_while_another_report_stands() -> None:
    made = on_trial()
    later = json.dumps({"until": stamp(made.clock.wall() + 300)}).encode()
    made.fs.write("control/quota.llm.other.json", later, durable=False)
    serve(made, "t0", {"served": True})
    assert len(quotas(made)) == 2
    assert running(made) == ["t0"]


def test_a_trial_that_is_served_and_cannot_be_noted_is_asked_again() -> None:
    made = on_trial()
    made.nodes["m1"].fs.fail("unlink", "control/quota.", errno.EBUSY, times=2)
    serve(made, "t0", {"served": True})
    made.advance(5)
    assert quotas(made) == []
    made.advance(RAMP_END_S)
    assert len(running(made)) == 3


def test_a_trial_that_reports_the_same_closes_again() -> None:
    made = cluster()
    submit(made, 3)
    for task in ("t0", "t1", "t2"):
        use_up(made, task)
    made.advance(61)
    use_up(made, "t0")
    assert running(made) == []
    made.advance(55)
    assert running(made) == []
    made.advance(7)
    assert running(made) == ["t0"]


def test_a_trial_that_says_nothing_lets_another_try() -> None:
    made = cluster()
    submit(made, 3, retry={"backoff_s": 30})
    for task in ("t0", "t1", "t2"):
        use_up(made, task)
    made.advance(61)
    made.finish("t0", exit_code=75)
    made.settle()
    assert running(made) == ["t1"]
    assert len(quotas(made)) == 3
    made.finish("t1", exit_code=1)
    made.settle()
    assert quotas(made) == [], "one that failed did not find it used up"


def test_a_new_leader_tries_with_one_task_at_a_time_from_its_first_step_on() -> None:
    made = cluster()
    submit(made, 4)
    for task in ("t0", "t1", "t2"):
        use_up(made, task)
    made.crash("m1")
    made.advance(100)
    made.master("m2")
    for _ in range(40):
        made.advance(0.5)
        assert len(running(made)) <= 1
    assert len(running(made)) == 1


@pytest.mark.parametrize("on_trial", [False, True])
def test_a_person_opens_a_closed_limit_and_one_on_trial(on_trial: bool) -> None:
    made = cluster()
    submit(made, 4)
    for task in ("t0", "t1", "t2"):
        use_up(made, task)
    made.advance(61 if on_trial else 1)
    made.fs.write("control/open.llm.x-1.json", b"{}", durable=False)
    made.settle()
    assert len(running(made)) == 3
    assert made.fs.list("control") == []


def test_a_limit_that_a_person_closed_stands_until_it_is_opened_or_its_time_has_come() -> None:
    made = cluster()
    made.fs.write("control/close.llm.x-1.json", b"", durable=False)
    submit(made, 1)
    made.advance(10_000)
    assert made.state("t0") == "waiting"
    assert "limit llm is closed" in words(made, "t0")
    made.fs.write("control/open.llm.x-2.json", b"", durable=False)
    made.settle()
    assert running(made) == ["t0"]


@pytest.mark.parametrize("body", [b'{"until": "2026-0', b"[]"])
def test_a_torn_report_closes_for_the_longest_time_and_not_for_ever(body: bytes) -> None:
    made = cluster()
    made.fs.write("control/quota.llm.x.json", body, durable=False)
    submit(made, 1)
    made.advance(590)
    assert made.state("t0") == "waiting"
    made.advance(30)
    assert made.state("t0") == "claimed", "the worker counts the same"


def test_a_report_of_another_date_closes_for_no_longer_than_it_may() -> None:
    made = cluster()
    made.fs.write("control/quota.llm.x.json", b'{"until": "2999-01-01T00:00:00Z"}', durable=False)
    submit(made, 1)
    made.advance(620)
    assert made.state("t0") == "claimed"


def test_a_report_that_may_not_be_read_is_told_and_read_again() -> None:
    made = cluster()
    made.nodes["m1"].fs.fail("read", "control/quota", errno.EACCES, times=3)
    made.fs.write("control/quota.llm.x.json", b'{"until": "2001-01-01T00:00:00Z"}', durable=False)
    submit(made, 2)
    assert running(made) == []
    desk = made.nodes["m1"].master.desk
    assert desk is not None
    assert any("spool limits open" in notice for notice in desk.report.notices)
    made.advance(60)
    assert running(made) != []


def test_a_worker_hands_back_at_a_limit_that_closed_behind_the_leader_and_charges_nothing() -> None:
    made = cluster(slots=1)
    made.nodes["w1"].frozen = True
    submit(made, 1)
    assert made.state("t0") == "ready"
    made.nodes["m1"].frozen, made.nodes["w1"].frozen = True, False
    node = made.nodes["w1"]
    node.fs.hang("rename", "ready/", lambda: made.fs.write("control/close.llm.x.json", b"", durable=False))
    made.settle()
    made.nodes["m1"].frozen = False
    made.settle()
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    assert (made.state("t0"), name.attempt, name.failures) == ("waiting", 2, 0)
    assert [said["code"] for said in told(made, "RETURNED")] == ["HANDED_BACK"]


def test_a_task_of_a_closed_limit_that_stands_ready_is_not_even_claimed() -> None:
    made = cluster()
    made.nodes["w1"].frozen = True
    submit(made, 1)
    made.nodes["m1"].frozen, made.nodes["w1"].frozen = True, False
    made.fs.write("control/close.llm.x.json", b"", durable=False)
    made.settle()
    assert (made.state("t0"), told(made, "RETURNED")) == ("ready", [])


def test_a_limit_that_is_taken_out_of_the_settings_holds_nothing() -> None:
    made = cluster()
    submit(made, 5)
    made.fs.write("control/close.llm.x.json", b"", durable=False)
    made.configure("")
    for name in ("m1", "w1"):
        made.stop(name)
    made.master("m2")
    made.worker("w2", 8)
    made.settle()
    assert states(made, 5) == ["claimed"] * 5


def test_a_report_for_a_limit_that_was_taken_out_is_removed_when_its_time_has_come() -> None:
    made = cluster()
    made.fs.write("control/quota.gone.x.json", b'{"until": "2001-01-01T00:00:00Z"}', durable=False)
    made.settle()
    made.advance(2)
    assert quotas(made) == []


def test_each_worker_keeps_its_own_max_and_rate() -> None:
    made = cluster(workers=2)
    submit(made, 10, uses=["own"])
    assert [len(keys) for keys in made.running().values() if keys] == [2, 2]
    for task in running(made):
        made.finish(task)
    made.settle()
    assert [len(keys) for keys in made.running().values() if keys] == [1, 1], "three starts within 10 s each"
    made.advance(12)
    assert [len(keys) for keys in made.running().values() if keys] == [2, 2]


def test_a_workers_own_quota_sends_its_tasks_to_another_worker_at_once() -> None:
    made = cluster(workers=2)
    submit(made, 2, uses=["own"])
    first = next(name for name, keys in made.running().items() if "t0.1" in keys)
    use_up(made, "t0", {"quota": {"limit": "own", "retry_after_s": 60}})
    made.advance(2)
    assert quotas(made) == []
    other = next(name for name, keys in made.running().items() if "t0.2" in keys)
    assert other != first
    store = open_store(made.fs, made.clock, "reader", "/spool")
    made.advance(6)
    assert list(next(limit for limit in list_limits(store) if limit.name == "own").closed_on) == [first]


def test_a_ready_task_that_every_worker_leaves_to_others_says_why_and_one_tries_in_time() -> None:
    made = cluster()
    submit(made, 4, uses=["own"])
    for task in ("t0", "t1"):
        use_up(made, task, {"quota": {"limit": "own", "retry_after_s": 60}})
    made.advance(8)
    assert running(made) == []
    assert "ready" in states(made, 4)
    ready = f"t{states(made, 4).index('ready')}"
    said = words(made, ready)
    assert "leaves it to others for now" in said
    assert "its quota of own is used up, until" in said
    made.advance(60)
    assert len(running(made)) == 1, "one goes first here, too"
    made.finish(running(made)[0])
    made.settle()
    assert len(running(made)) == 2


def test_an_open_lifts_what_a_worker_found_used_up_itself() -> None:
    made = cluster()
    submit(made, 4, uses=["own"])
    for task in ("t0", "t1"):
        use_up(made, task, {"quota": {"limit": "own", "retry_after_s": 500}})
    made.advance(8)
    assert running(made) == []
    made.fs.write("control/open.own.x.json", b"", durable=False)
    made.advance(5)
    assert running(made) != []
    assert made.fs.list("control") == ["open.own.x.json"], "every worker that lives must list it"
    made.advance(20)
    assert made.fs.list("control") == []
    assert len(running(made)) == 2


def test_a_type_that_uses_the_workers_limit_is_left_to_others_as_well() -> None:
    made = Cluster(LIMITS.replace('uses = ["llm"]', 'uses = ["own"]'))
    made.master("m1")
    made.worker("w1", 2)
    made.settle()
    submit(made, 1, type="typed", uses=[])
    use_up(made, "t0", {"quota": {"limit": "own", "retry_after_s": 60}})
    made.advance(5)
    assert running(made) == []
    assert set(made.nodes["w1"].worker._allowance.shuns()) == {"use=own", "type=typed"}


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ({"quota": "llm"}, "its quota names no limit"),
        ({"quota": {"limit": "none"}}, "reports a quota of none, which is no limit in spool.toml"),
        ({"quota": {"limit": "own", "retry_after_s": 5}}, "quota of own used up, which it does not use"),
    ],
)
def test_a_wrong_report_counts_as_exit_code_75_alone_and_is_told(report: object, said: str) -> None:
    made = cluster()
    submit(made, 1)
    use_up(made, "t0", report)
    assert quotas(made) == []
    assert said in str(told(made, "RETURNED")[0]["message"])


def test_a_task_that_reports_a_quota_of_the_past_and_does_not_use_it_rests_as_any_other() -> None:
    """No gate holds it: it was tried again at once, without end, in all workers."""
    made = cluster()
    submit(made, 1, uses=[])
    use_up(made, "t0", {"quota": {"limit": "llm", "retry_after_s": -5}})
    made.advance(0.5)
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    assert (name.attempt, name.delay_ms > 500, made.state("t0")) == (2, True, "waiting")
    why = "task t0, attempt 1, which does not use it"
    assert told(made, "LIMIT_CLOSED") == [{"limit": "llm", "by": "quota", "why": why}]
    store = open_store(made.fs, made.clock, "reader", "/spool")
    assert why in next(limit.why for limit in list_limits(store) if limit.name == "llm")


@pytest.mark.parametrize(
    ("uses", "field", "said", "fix"),
    [
        (["lm"], "uses", "there is no limit 'lm'", "llm"),
        ({"llm": 4}, "uses", "its max is 3", "use fewer, or raise [limits.llm] max"),
        ({"api": 4}, "uses", "its rate.count is 3", "raise [limits.api] rate.count"),
        ({"llm": 0}, "uses", "", ""),
        ({"llm": 1.5}, "uses", "", ""),
        (7, "uses", "", ""),
        ([1], "uses", "", ""),
        (["llm", "llm"], "uses", "", ""),
        ({"llm": 10_000}, "uses", "", ""),
    ],
)
def test_a_drop_with_wrong_uses_is_rejected_with_file_field_value_and_fix(
    uses: object, field: str, said: str, fix: str
) -> None:
    made = cluster()
    made.submit("bad.json", json.dumps({"id": "t0", "command": ["work"], "uses": uses}))
    made.settle()
    [name] = [name for name in made.fs.list("rejected") if name.endswith(".reason.json")]
    reason = json.loads(made.fs.read(f"rejected/{name}"))
    assert reason["drop"] == "bad.json"
    assert str(reason["field"]).startswith(field)
    assert said in reason["problem"]
    assert fix in reason["mend"]
    assert reason["mend"]


def test_a_line_of_a_batch_with_an_unknown_limit_rejects_it_whole_and_names_the_line() -> None:
    made = cluster()
    lines = [{"id": "t0", "command": ["work"]}, {"id": "t1", "command": ["work"], "uses": ["lm"]}]
    made.submit("bad.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    made.settle()
    [name] = [name for name in made.fs.list("rejected") if name.endswith(".reason.json")]
    assert "line 2" in made.fs.read(f"rejected/{name}").decode()
