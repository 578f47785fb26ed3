"""Goal: every fix does what it says, loses nothing, and leaves a tree that the audit calls clean.

Method: break one thing in a spool in memory, audit, repair, audit again, compare the trees.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol import codec, layout
from spoold.protocol.names import parse_task
from spoold.protocol.result import Code, Result
from spoold.rules.tree.audit import Severity, audit
from spoold.store.store import make_directory
from spoold.store.tree_repair import Mended, repair, survey
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


def test_a_task_runs_again_though_somebody_left_a_result_of_the_last_attempt_there_can_be() -> None:
    """Names-a: the attempt after it could not be a name, and the repair ended there."""
    cluster = idle_cluster()
    for result in cluster.fs.list("results"):
        cluster.fs.unlink(f"results/{result}")
    cluster.fs.write("results/d.999999999.x.json", b"{}", durable=False)
    assert all(one.done for one in mend(cluster))
    (again,) = cluster.tree("waiting")
    name = parse_task(again.rpartition("/")[2])
    assert name is not None
    assert (name.id, name.attempt) == ("d", 999_999_999)


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


def test_what_cannot_be_mended_says_so_and_nothing_is_built_on_it() -> None:
    cluster = idle_cluster()
    (ready,) = cluster.tree("ready")
    cluster.fs.write("master/0.m-old.7", b"", durable=False)
    cluster.fs.write(ready, b"", durable=False)
    findings = audit(survey(cluster.store))
    cluster.fs.unlink("master/0.m-old.7")
    (step,) = repair(cluster.store, findings)
    assert (step.done, step.what) == (False, "master/0.m-old.7: No such file or directory")
    assert cluster.tree("ready") == [ready]


def test_no_move_ever_meets_a_name_that_is_taken() -> None:
    cluster = idle_cluster()
    (ready,) = cluster.tree("ready")
    name = ready.rpartition("/")[2]
    for directory in ("ready/type=other", "waiting/type=review"):
        make_directory(cluster.fs, directory)
    cluster.fs.rename(ready, f"ready/type=other/{name}")
    misplaced = audit(survey(cluster.store))
    cluster.fs.write(f"waiting/type=review/{name}", b"mine", durable=False)
    (step,) = repair(cluster.store, misplaced)
    assert not step.done
    assert cluster.fs.read(f"waiting/type=review/{name}") == b"mine"
    assert cluster.tree("ready") == [f"ready/type=other/{name}"]


def test_what_is_found_only_now_is_left_to_the_next_repair() -> None:
    cluster = idle_cluster()
    (ready,) = cluster.tree("ready")
    cluster.fs.write("master/0.m-old.7", b"", durable=False)
    findings = audit(survey(cluster.store))
    cluster.fs.write(ready, b"", durable=False)
    assert [step.finding.law for step in repair(cluster.store, findings)] == ["leadership"]
    assert wrong(cluster) == ["content"]


DAMAGE = st.tuples(st.sampled_from(["copy", "misplace", "empty", "remove"]), st.integers(0, 99))


@given(st.lists(DAMAGE, min_size=1, max_size=5))
def test_whatever_is_damaged_no_task_is_lost_and_repair_comes_to_an_end(damages: list[tuple[str, int]]) -> None:
    cluster = idle_cluster()
    ids = {token.name.id for token in survey(cluster.store).tokens}
    for kind, choice in damages:
        damage(cluster, kind, choice)
    rounds = [repair(cluster.store, audit(survey(cluster.store))) for _ in range(3)]
    assert all(step.done for mended in rounds for step in mended)
    assert rounds[-1] == []
    seen = survey(cluster.store)
    assert sorted(token.name.id for token in seen.tokens) == sorted(ids)
    assert {finding.law for finding in audit(seen) if finding.severity is Severity.ERROR} <= {"content", "result"}


def damage(cluster: Cluster, kind: str, choice: int) -> None:
    """One thing that a careless hand or a lost block could do, save removing a task file."""
    tokens = cluster.tree("ready", "waiting")
    others = cluster.tree("results", "master", "status")
    if kind in ("copy", "misplace") and tokens:
        path = tokens[choice % len(tokens)]
        lane = ("ready/type=other", "waiting/type=review", "waiting/type=other")[choice % 3]
        make_directory(cluster.fs, lane)
        target = f"{lane}/{path.rpartition('/')[2]}"
        if kind == "copy":
            cluster.fs.write(target, cluster.fs.read(path), durable=False)
        elif target not in tokens:
            cluster.fs.rename(path, target)
    elif kind == "empty":
        files = [*tokens, *cluster.tree("completed", "results")]
        cluster.fs.write(files[choice % len(files)], b"", durable=False)
    elif kind == "remove" and others:
        cluster.fs.unlink(others[choice % len(others)])
