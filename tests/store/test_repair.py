"""Goal: every fix does what it says, loses nothing, and leaves a tree that the audit calls clean.

Method: break one thing in a spool in memory, audit, repair, audit again, compare the trees.
"""

from __future__ import annotations

from spoold.protocol import codec, layout
from spoold.protocol.names import parse_task
from spoold.protocol.result import Code, Result
from spoold.rules.audit import audit
from spoold.rules.finding import Severity
from spoold.store.repair import Mended, repair
from spoold.store.store import make_directory
from spoold.store.survey import survey
from tests.client.cluster import Cluster


def idle_cluster() -> Cluster:
    """A spool without nodes, in which `r` is ready and `d` has completed."""
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("r")
    cluster.drop("d")
    cluster.steps(master)
    cluster.claim("d")
    cluster.end("d", "completed")
    master.close()
    for path in cluster.tree("heartbeats"):
        cluster.fs.unlink(path)
    cluster.fs.rmdir("claimed/w-0001")
    assert wrong(cluster) == []
    return cluster


def wrong(cluster: Cluster) -> list[str]:
    """The laws that are broken."""
    return [finding.law for finding in audit(survey(cluster.store)) if finding.severity is not Severity.INFO]


def mend(cluster: Cluster) -> list[Mended]:
    """Repair once; all that can be mended is, and a second repair has nothing to do."""
    mended = repair(cluster.store, audit(survey(cluster.store)))
    assert wrong(cluster) == []
    assert repair(cluster.store, audit(survey(cluster.store))) == []
    assert "cli-here-0001" not in cluster.fs.list("tmp")
    return mended


def test_a_second_token_is_set_aside_with_its_reason() -> None:
    cluster = idle_cluster()
    (ready,) = cluster.tree("ready")
    waiting = ready.replace("ready/", "waiting/")
    make_directory(cluster.fs, "waiting/type=review")
    cluster.fs.write(waiting, cluster.fs.read(ready), durable=False)
    name = ready.rpartition("/")[2]
    (step,) = mend(cluster)
    assert step == Mended(step.finding, True, f"moved {waiting} to rejected/{name}")
    assert cluster.tree("ready", "waiting", "rejected") == [
        ready,
        f"rejected/{name}",
        f"rejected/{name}.reason.json",
    ]
    reason = codec.load_object(cluster.fs.read(f"rejected/{name}.reason.json"), "")
    assert (reason["id"], reason["file"], reason["field"]) == ("r", waiting, "id")
    assert ready in reason["problem"]


def test_a_name_that_rejected_has_already_is_not_replaced() -> None:
    cluster = idle_cluster()
    twin = "failed/d.1.w-0001.json"
    cluster.fs.write(twin, cluster.fs.read("completed/d.1.w-0001.json"), durable=False)
    cluster.fs.write("rejected/d.1.w-0001.json", b"first", durable=False)
    cluster.fs.write("rejected/d.1.w-0001.json.reason.json", b"{}", durable=False)
    mend(cluster)
    assert cluster.fs.read("rejected/d.1.w-0001.json") == b"first"
    assert sorted(cluster.fs.list("rejected")) == [
        "d.1.w-0001.2.json",
        "d.1.w-0001.2.json.reason.json",
        "d.1.w-0001.json",
        "d.1.w-0001.json.reason.json",
    ]
    assert cluster.fs.list("failed") == []


def test_a_token_in_the_wrong_lane_waits_in_the_right_one() -> None:
    cluster = idle_cluster()
    (ready,) = cluster.tree("ready")
    name = ready.rpartition("/")[2]
    cluster.fs.mkdir("ready/type=other")
    cluster.fs.rename(ready, f"ready/type=other/{name}")
    mend(cluster)
    assert cluster.tree("ready", "waiting") == [f"waiting/type=review/{name}"]


def test_what_lost_its_result_waits_for_a_later_attempt_than_any_that_left_one() -> None:
    cluster = idle_cluster()
    cluster.fs.write("results/d.1.w-0001.json", b"", durable=False)
    cluster.result("d.4.w-0009.json", "d", 4)
    mend(cluster)
    assert cluster.fs.list("completed") == []
    (path,) = cluster.tree("waiting")
    name = parse_task(path.rpartition("/")[2])
    assert name is not None
    assert (name.id, name.attempt, name.failures, name.crashes) == ("d", 5, 0, 0)
    master = cluster.master("m-0002")
    cluster.steps(master)
    cluster.worker("w-0002")
    assert cluster.claim("d", "w-0002").attempt == 5


def test_a_token_that_is_no_task_fails_with_a_result() -> None:
    cluster = idle_cluster()
    (ready,) = cluster.tree("ready")
    cluster.fs.write(ready, b"", durable=False)
    repair(cluster.store, audit(survey(cluster.store)))
    assert cluster.tree("ready", "failed") == ["failed/r.1.cli-here-0001.json"]
    result = codec.load_model(Result, cluster.fs.read("results/r.1.cli-here-0001.json"), "")
    assert result.error is not None
    assert (result.error.code, result.error.message) == (Code.INVALID_TASK, "its content is no task: is empty.")


def test_a_lost_token_of_leadership_is_made_above_every_epoch_that_was() -> None:
    cluster = idle_cluster()
    for path in cluster.tree("master", "status"):
        cluster.fs.unlink(path)
    line = b'{"at": "", "writer": "m-0009", "seq": 1, "event": "LEADING", "epoch": 41}\n'
    cluster.fs.append("events/m-0009.0.jsonl", line)
    (step,) = mend(cluster)
    assert step.what == "made master/42.nobody.0"
    assert cluster.master("m-0003").leadership.epoch == 43


def test_of_two_tokens_of_leadership_the_higher_one_stays() -> None:
    cluster = idle_cluster()
    (token,) = cluster.fs.list("master")
    cluster.fs.write("master/0.m-old.7", b"", durable=False)
    mend(cluster)
    assert cluster.fs.list("master") == [token]


def test_missing_directories_are_made_before_they_are_needed() -> None:
    cluster = idle_cluster()
    (ready,) = cluster.tree("ready")
    cluster.fs.rename(ready, f"returned/{ready.rpartition('/')[2].removesuffix('.json')}.w-0001.json")
    (back,) = cluster.tree("returned")
    cluster.fs.write(back, b'{"id": "r", "type": "review", "dependencies": ["x"]}', durable=False)
    for writer in cluster.fs.list("tmp"):
        cluster.fs.rmdir(layout.join("tmp", writer))
    for lane in cluster.fs.list("waiting"):
        cluster.fs.rmdir(layout.join("waiting", lane))
    cluster.fs.rmdir("tmp")
    cluster.fs.rmdir("waiting")
    assert [step.done for step in mend(cluster)] == [True, True, True]
    (path,) = cluster.tree("waiting")
    assert path.endswith("a1f0c0d.json")


def test_what_cannot_be_mended_says_so_and_the_rest_goes_on() -> None:
    cluster = idle_cluster()
    (ready,) = cluster.tree("ready")
    cluster.fs.write("master/0.m-old.7", b"", durable=False)
    cluster.fs.write(ready, b"", durable=False)
    findings = audit(survey(cluster.store))
    cluster.fs.unlink(ready)
    done = {step.finding.law: step.done for step in repair(cluster.store, findings)}
    assert done == {"content": False, "leadership": True}
