"""The claims of dead workers, and gates that close on what stands ready."""

import errno
import json

import pytest

from spoold.protocol.names import TaskName
from spoold.store import snapshots
from tests.support.cluster import Cluster


def running(settings: str = "", count: int = 1) -> Cluster:
    """A leader, and a worker that runs tasks t0, t1…"""
    made = Cluster(settings)
    made.master("m1")
    made.worker("w1", count)
    made.settle()
    for number in range(count):
        made.submit(f"{number}.json", f'{{"id": "t{number}", "command": ["work"]}}')
    made.settle()
    return made


def test_a_claim_that_comes_late_is_taken_back_too() -> None:
    """Reaping goes on until the directory is gone: only that shuts the door."""
    made = running()
    made.submit("late.json", '{"id": "late", "command": ["work"]}')
    made.settle()
    made.crash("w1")
    ready = made.find("late").path
    claim = f"claimed/w1/{ready.rpartition('/')[2]}"
    made.nodes["m1"].fs.hang("rmdir", "claimed/w1", lambda: made.fs.rename(ready, claim))
    made.advance(25)
    assert made.find("late").name.attempt == 2
    assert made.fs.list("claimed") == []


def test_reaping_that_fails_is_gone_on_with() -> None:
    made = running(count=3)
    made.crash("w1")
    mount = made.nodes["m1"].fs
    for verb, path in (
        ("read", "claimed/w1/"),
        ("rename", "claimed/w1/"),
        ("rmdir", "claimed/w1"),
        ("list", "tmp/w1"),
    ):
        mount.fail(verb, path, errno.EIO)
    mount.fail("unlink", "heartbeats/w1", errno.EIO)
    made.advance(30)
    assert [made.find(f"t{number}").name.attempt for number in range(3)] == [2, 2, 2]
    assert made.fs.list("claimed") == []
    assert not [name for name in made.fs.list("heartbeats") if name.startswith("w1.")]


def test_a_claim_directory_without_a_heartbeat_is_reaped_too() -> None:
    made = running()
    made.crash("w1")
    for name in [name for name in made.fs.list("heartbeats") if name.startswith("w1.")]:
        made.fs.unlink(f"heartbeats/{name}")
    made.advance(20)
    assert made.state("t0") == "ready"


def test_a_dead_workers_claim_that_is_no_task_fails() -> None:
    made = running()
    made.fs.write(made.find("t0").path, b"{", durable=False)
    made.crash("w1")
    made.advance(20)
    token = made.find("t0")
    assert (token.state, token.result and token.result["error"]["code"]) == ("failed", "INVALID_TASK")


def test_a_leader_that_was_cut_off_has_proved_nothing() -> None:
    made = running("[heartbeat]\ninterval_s = 5\nmisses = 3\n")
    made.nodes["m1"].fs.off = True
    made.advance(120)
    made.nodes["m1"].fs.off = False
    made.advance(3)
    assert made.state("t0") == "claimed"
    assert made.find("t0").name.attempt == 1


def test_a_leader_that_slept_has_proved_nothing() -> None:
    made = running()
    made.sleep("m1", 600)
    made.advance(10)
    assert made.state("t0") == "claimed"
    assert made.find("t0").name.attempt == 1


def test_a_beat_that_comes_during_a_slow_look_counts_from_its_end() -> None:
    made = running("[heartbeat]\ninterval_s = 5\nmisses = 3\n")

    def beat_at_the_end_of_it() -> None:
        made.pass_time(4.9)
        made.step("w1")

    made.nodes["m1"].fs.hang("list", "heartbeats", beat_at_the_end_of_it)
    made.step("m1")
    made.crash("w1")
    made.advance(14.5)
    assert made.find("t0").name.attempt == 1
    made.advance(2.5)
    assert made.find("t0").name.attempt == 2


def test_a_dead_masters_heartbeat_and_tmp_are_cleared_away() -> None:
    made = running()
    made.master("m2")
    made.step("m2")
    made.crash("m2")
    made.advance(20)
    assert sorted(made.fs.list("tmp")) == ["m1", "w1"]
    assert not [name for name in made.fs.list("heartbeats") if name.startswith("m2.")]


def test_a_dead_master_of_the_leaders_own_host_is_reaped_at_once() -> None:
    """Nothing of it can run on, and its process is looked up: no silence is needed, whatever leads for how short."""
    made = Cluster()
    for number in range(3):
        made.master(f"m{number}", host="desk")
        made.step(f"m{number}")
    made.advance(5)
    for number in range(2):
        made.crash(f"m{number}")
    began = made.clock.monotonic()
    while (
        made.clock.monotonic() - began < 7
    ):  # its beat is due every 5 s at the latest, and a successor waits a second
        made.advance(0.5)
    assert [name.partition(".")[0] for name in made.fs.list("heartbeats")] == ["m2"]
    assert made.fs.list("tmp") == ["m2"]


def test_a_standby_reports_masters_that_are_gone_from_its_host() -> None:
    """The leader is on another machine, and would otherwise have to wait for the silence."""
    made = running()
    for name, host in (("m2", "desk"), ("m3", "desk"), ("m4", "yonder")):
        made.master(name, host=host)
        made.step(name)
    for name in ("m2", "m4"):
        made.crash(name)
    made.master("m5", host="desk")
    made.step("m5")
    assert made.fs.list("control") == ["reap.m2.m5.json"]
    made.settle()
    assert made.fs.list("control") == []
    assert sorted(made.fs.list("tmp")) == ["m1", "m3", "m4", "m5", "w1"]
    assert not [name for name in made.fs.list("heartbeats") if name.startswith("m2.")]


def test_a_limit_that_was_lowered_takes_back_what_stands_ready_the_least_urgent_first() -> None:
    made = Cluster("[types.mail]\nmax_concurrent = 4\n")
    made.master("m1")
    made.settle()
    for number, priority in enumerate(("low", "high", "normal", "critical")):
        task = {"id": f"t{number}", "type": "mail", "command": ["work"], "priority": priority}
        made.submit(f"{number}.json", json.dumps(task))
    made.settle()
    made.configure("[types.mail]\nmax_concurrent = 2\n")
    made.stop("m1")
    made.master("m2")
    made.settle()
    states = [made.state(f"t{number}") for number in range(4)]
    assert states == ["waiting", "ready", "waiting", "ready"]


def test_what_was_held_back_keeps_its_place_and_its_conditions() -> None:
    made = Cluster()
    made.master("m1")
    made.settle()
    deadline = "2025-10-09T08:53:40Z"
    made.submit("a.json", json.dumps({"id": "a", "command": ["work"], "deadline": deadline}))
    made.settle()
    before = made.find("a").path
    made.fs.write("control/pause.command.1.json", b"{}", durable=False)
    made.settle()
    assert made.find("a").path == before.replace("ready/", "waiting/")
    made.advance(25)
    assert made.state("a") == "failed"


def test_a_promotion_that_fails_is_tried_again() -> None:
    made = Cluster()
    made.master("m1")
    made.settle()
    mount = made.nodes["m1"].fs
    made.fs.write("control/pause.+all.1.json", b"{}", durable=False)
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    made.fs.unlink("control/pause.+all.1.json")
    mount.fail("rename", "waiting/", errno.EIO)
    mount.fail("mkdir", "ready/", errno.EIO)
    made.advance(5)
    assert made.state("a") == "ready"


def test_on_a_share_too_a_silence_is_not_counted_for_longer_than_it_lasts() -> None:
    made = Cluster(remote=True)
    made.master("m1")
    made.worker("w1")
    made.advance(5)
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    while made.running() != {"w1": ["a.1"]}:
        made.advance(1)
    made.nodes["w1"].frozen = True
    silent_s = 0.0
    while made.state("a") == "claimed" and silent_s < 60:
        made.pass_time(0.1)
        made.step("m1")
        silent_s += 0.1
    beat = made.nodes["m1"].master.store.settings.heartbeat
    assert beat.dead_after_s - beat.interval_s <= silent_s <= beat.dead_after_s + beat.interval_s


def test_after_a_silence_of_the_share_the_leader_waits_as_long_again_and_says_for_whom() -> None:
    made = running()
    made.pass_time(180)  # the leader's calls hang, and so do the worker's
    made.nodes["w1"].frozen = True
    made.advance(150)
    assert made.state("t0") == "claimed"
    found = snapshots.latest(made.fs)
    assert found is not None
    assert [said for said in found[1].warnings if "saw nothing of the share for 18" in said and "w1" in said]
    made.advance(60)
    assert made.find("t0").name.attempt == 2
    found = snapshots.latest(made.fs)
    assert found is not None
    assert not [said for said in found[1].warnings if "silent" in said]


def test_an_attempt_that_died_with_its_worker_has_the_time_that_its_last_beat_shows() -> None:
    made = running()
    made.advance(77)
    made.crash("w1")
    made.advance(25)
    result = json.loads(made.fs.read("results/t0.1.m1.json"))
    assert (result["status"], result["estimated"]) == ("worker_died", True)
    assert result["started_at"] is not None
    assert 70 <= result["duration_s"] <= 77


def test_a_lost_attempt_has_the_name_of_the_worker_that_had_it() -> None:
    """N15: record, journal and timeline named the leader. One that no worker had has the name of its decider."""
    made = running("[retry]\nbackoff_s = 0\ncrash_limit = 2\n")
    made.submit("never.json", '{"id": "never", "command": ["work"], "dependencies": ["t0"]}')
    made.crash("w1")
    made.advance(25)
    made.worker("w2")
    made.advance(25)
    made.crash("w2")
    made.advance(25)
    assert made.state("t0") == "failed"
    said = {name: json.loads(made.fs.read(f"results/{name}"))["worker_id"] for name in made.fs.list("results")}
    assert said == {"t0.1.m1.json": "w1", "t0.2.m1.json": "w2", "never.1.m1.json": "m1"}
    lines = [json.loads(line) for line in made.fs.read("events/m1.0.jsonl").splitlines()]
    ends = [
        (line["event"], line["detail"].get("worker")) for line in lines if line["event"] in ("RETURNED", "FAILED")
    ]
    assert ends == [("RETURNED", "w1"), ("FAILED", "w2"), ("FAILED", None)]


@pytest.mark.parametrize(("said", "may"), [({"prompt": "x"}, True), ({"prompt": 1}, False), (["prompt"], False)])
def test_the_record_of_an_agent_whose_worker_died_says_where_its_work_may_be(said: object, may: bool) -> None:
    """B8: WORKER_DIED was all that anybody said of work that was on one machine only."""
    made = Cluster("[retry]\ncrash_limit = 2\n")
    made.master("m1")
    for name in ("w1", "w2"):
        made.worker(name, 1)
        made.settle()
        if name == "w1":
            made.submit("a.json", json.dumps({"id": "a", "command": ["work"], "input": said}))
            made.settle()
        made.crash(name)
        made.advance(30)
    token = made.find("a")
    message = token.result["error"]["message"] if token.result else ""
    assert token.state == "failed"
    assert ("an agent's work may be on w2 alone: `spool workspace gc` there brings it" in message) is may, message


def test_the_time_for_which_such_an_attempt_was_frozen_is_told_apart() -> None:
    made = running()
    made.advance(77)
    made.crash("w1")
    (name,) = (name for name in made.fs.list("heartbeats") if name.startswith("w1."))
    said = json.loads(made.fs.read(f"heartbeats/{name}"))
    said["running"][0]["frozen_s"] = 30
    made.fs.write(f"heartbeats/{name}", json.dumps(said).encode(), durable=False)
    made.advance(25)
    result = json.loads(made.fs.read("results/t0.1.m1.json"))
    assert result["frozen_s"] == 30
    assert 40 <= result["duration_s"] <= 47


def test_the_last_record_of_a_task_sums_up_its_attempts() -> None:
    made = running("[retry]\nbackoff_s = 0\ncrash_limit = 2\n")
    made.advance(40)
    made.crash("w1")
    made.advance(25)
    made.worker("w2")
    made.settle()
    made.advance(40)
    made.crash("w2")
    made.advance(25)
    assert made.state("t0") == "failed"
    first, last = (json.loads(made.fs.read(f"results/t0.{attempt}.m1.json")) for attempt in (1, 2))
    assert first["total"] is None
    assert last["total"]["attempts"] == 2
    assert last["total"]["duration_s"] == pytest.approx(first["duration_s"] + last["duration_s"])


def test_a_dead_worker_is_shown_before_its_claims_are_taken_back() -> None:
    """An SMB server that waits for the dead client to let go of a file answers only after seconds."""
    made = running()
    made.crash("w1")
    shown: list[list[str]] = []

    def look() -> None:
        found = snapshots.latest(made.fs)
        assert found is not None
        shown.append([node.state for node in found[1].nodes])

    made.nodes["m1"].fs.hang("rename", "claimed/w1/", look)
    made.advance(25)
    assert shown[0] == ["dead"]


def charged(made: Cluster) -> tuple[int, int]:
    """The attempt and the crashes of t0."""
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    return name.attempt, name.crashes


@pytest.mark.parametrize("lives", [True, False])
def test_a_crash_that_was_a_workers_own_silence_is_charged_to_no_task(lives: bool) -> None:
    """A laptop sleeps for a minute, and the second worker dies: only that counts, if the first lives on."""
    made = running()
    made.sleep("w1", 60)
    assert charged(made) == (2, 1), "nobody could know"
    outlived = made.nodes["w1"].worker.outlived
    assert outlived == ("t0.1",)
    made.advance(3)
    assert "w1" in made.gone, "it was shut out"
    if lives:
        made.worker("w1-again", 0, outlived=outlived)
    made.worker("w2")
    made.advance(30)
    assert made.state("t0") == "claimed"
    made.crash("w2")
    made.advance(30)
    assert charged(made) == (3, 1 if lives else 2)


def test_a_request_that_calls_a_running_worker_gone_is_removed_and_told() -> None:
    """A file in control/ is no proof, neither on a local disk: the worker's process is found there."""
    made = Cluster()
    made.master("m1", host="desk")
    made.worker("w1", 1, host="desk")
    made.settle()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    made.fs.write("control/reap.w1.z-1.json", b'{"by": "me"}', durable=False)
    made.advance(20)
    assert (made.find("a").state, made.find("a").branch, made.find("a").name.attempt) == ("claimed", "w1", 1)
    assert made.fs.list("control") == []
    latest = max(made.fs.list("status"), key=lambda name: int(name.partition("-")[2].partition(".")[0]))
    said = made.fs.read(f"status/{latest}").decode()
    assert "control/reap.w1.z-1.json said that w1 is gone, but it beats: the request was removed" in said
