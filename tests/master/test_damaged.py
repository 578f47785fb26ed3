"""What people and power cuts leave in the spool's own directories stops nobody but itself."""

import errno
import json
from pathlib import Path

import pytest

from spoold.master.master import Master
from spoold.protocol.errors import NotFound
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName
from spoold.store import snapshots, task_location
from spoold.store.initialise import initialise
from spoold.store.store import make_directory, open_store
from spoold.system.clock import ManualClock
from spoold.system.host import FakeHost
from spoold.system.posix import PosixFileSystem
from tests.support.cluster import Cluster
from tests.support.tokens import find

LATER = '{"id": "a", "command": ["work"], "not_before": "2199-01-01T00:00:00Z"}'
OTHER = '{"id": "b", "command": ["work"]}'


def cluster(task: str = LATER) -> Cluster:
    """A leader, a worker, and one task."""
    made = Cluster()
    made.master("m1")
    made.worker("w1")
    made.settle()
    made.submit("a.json", task)
    made.settle()
    return made


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("returned/4990.hff58yhhc0-3.build.a2f1c0r0.laptop1-7f3a.json", "has r0: leave out a rest of 0"),
        ("ready/type=command,run=command/build.json", "is not RANK.ORDER.ID.aAfFcC[rMS][d].json"),
        ("waiting/type=command,run=command/4990.hff58yhhc0-3.build.a02f1c0.json", "without leading zeros"),
        ("claimed/w1/499.hff58yhhc0-3.build.a1f0c0.json", "write four digits"),
        ("completed/build.json", "is not ID.ATTEMPT.DECIDER.json"),
        ("failed/build.json", "is not ID.ATTEMPT.DECIDER.json"),
    ],
)
def test_a_name_that_is_passed_over_is_reported_with_its_fault(path: str, words: str) -> None:
    made = cluster()
    make_directory(made.fs, path.rpartition("/")[0])
    for odd in (path, f"{path}.txt"):
        made.fs.write(odd, OTHER.encode(), durable=False)
    made.crash("m1")
    made.master("m2")
    made.advance(40)

    def told() -> list[str]:
        found = snapshots.latest(made.fs)
        assert found is not None
        return [line for line in found[1].warnings if path in line]

    (line,) = told()
    assert words in line
    assert line.endswith("it is passed over: rename it, or move it away")
    assert works(made)
    made.fs.unlink(path)
    made.crash("m2")
    made.master("m3")
    made.advance(40)
    assert told() == []


def works(made: Cluster) -> bool:
    """Whether the leader still admits what comes, and the worker runs it."""
    made.submit("b.json", OTHER)
    made.settle()
    made.finish("b")
    made.settle()
    return made.state("b") == "completed"


@pytest.mark.parametrize("drop", ["again.json", "again.jsonl"])
@pytest.mark.parametrize("damage", [b"", b"{", b'"\xff"'])
def test_a_drop_whose_id_a_damaged_file_has_is_rejected(drop: str, damage: bytes) -> None:
    made = cluster()
    made.fs.write(made.find("a").path, damage, durable=False)
    made.submit(drop, LATER + "\n")
    made.settle()
    made.advance(5)
    (reason,) = [name for name in made.fs.list("rejected") if name.endswith(".reason.json")]
    assert "'a' is taken by a task with other content" in json.loads(made.fs.read(f"rejected/{reason}"))["problem"]
    assert find(made.fs, "a").state == "waiting"
    assert works(made)


def test_a_damaged_task_that_is_to_be_held_back_fails() -> None:
    made = cluster('{"id": "a", "command": ["work"]}')
    made.finish("a")
    made.settle()
    made.submit("c.json", '{"id": "c", "command": ["work"], "after": ["a"]}')
    made.nodes["w1"].frozen = True
    made.settle()
    token = made.find("c")
    assert token.state == "ready"
    made.fs.write(token.path, b"", durable=False)
    made.fs.write("control/pause.+all.1.json", b"{}", durable=False)
    made.settle()
    assert made.state("c") == "failed"
    result = made.find("c").result
    assert result is not None
    assert result["error"]["code"] == "INVALID_TASK"
    made.nodes["w1"].frozen = False
    made.fs.write("control/resume.+all.2.json", b"{}", durable=False)
    assert works(made)


@pytest.mark.parametrize("kind", ["symlink", "directory"])
@pytest.mark.parametrize("state", ["ready", "returned"])
def test_what_is_no_file_fails_as_no_task_and_is_kept(state: str, kind: str) -> None:
    """No look at it makes a file of it: a worker that went on looking would hold the claim for ever."""
    made = cluster('{"id": "a", "command": ["work"]}')
    if state == "returned":
        made.finish("a", exit_code=1)
        made.step("w1")
        path = made.find("a").path
    else:
        token = made.find("a")
        path = f"ready/type=command,run=command/{token.path.rpartition('/')[2]}"
        made.crash("w1")
        made.fs.rename(token.path, path)
        made.worker("w2")
    made.witness.losses_allowed = True  # it sees only files
    made.fs.unlink(path)
    if kind == "symlink":
        made.fs.make_symlink(path, "elsewhere")
    else:
        made.fs.mkdir(path)
        made.fs.write(f"{path}/inside", b"kept", durable=False)
    made.advance(20)
    (failed,) = made.fs.list("failed")
    assert made.fs.stat(f"failed/{failed}").kind == ("symlink" if kind == "symlink" else "dir")
    error = json.loads(made.fs.read(f"results/{failed}"))["error"]
    assert (error["code"], "is not a regular file but a" in error["message"]) == ("INVALID_TASK", True)
    made.fs.write("control/retry.a.1.json", b"{}", durable=False)
    made.advance(2)
    assert made.fs.list("control") == []
    made.submit("again.json", OTHER.replace("b", "a"))
    made.settle()
    assert [name for name in made.fs.list("rejected") if "again" in name]
    made.submit("c.json", OTHER.replace('"b"', '"c"'))
    made.settle()
    assert made.state("c") == "claimed"


@pytest.mark.parametrize("directory", ["claimed", "archive", "waiting", "ready", "admitting", "tmp", "status"])
@pytest.mark.parametrize("stray", [".DS_Store", "notes", "type=t", "0d"])
def test_a_stray_file_where_directories_are_looked_for_is_passed_over(directory: str, stray: str) -> None:
    made = cluster()
    made.fs.write(f"{directory}/{stray}", b"", durable=False)
    assert works(made)
    made.fs.write("control/gc.+all.1.json", b"{}", durable=False)
    made.settle()
    made.advance(70)
    assert made.fs.list("control") == []
    assert made.fs.list("completed") == []
    assert made.troubles == []
    store = open_store(made.fs, made.clock, "cli-1", "/spool")
    assert task_location.locate(store, "a").state is State.WAITING
    with pytest.raises(NotFound):
        task_location.locate(store, "nothing")


STRAYS = {
    "tmp/gone/@eaDir": "a node that left no more than this",
    "admitting/0.m0.1/sub": "a door of a leader before",
    "heartbeats/ghost.5.json": "a beat",
    "waiting/type=work,run=command/5000.hbva7ku4tx-1.x.a1f0c0d.json": "a task that waits",
    "returned/5000.hbva7ku4tx-1.x.a2f0c0.w9.json": "a task that was handed back",
    "ready/type=work,run=command/5000.hbva7ku4tx-1.x.a1f0c0d.json": "a task that is ready",
    "control/resume.+all.x.json": "a request that is done at once",
    "control/cancel.b.x.json": "a request that is done in the end",
    "completed/a.1.w.json": "the task that has the id of a drop",
    "status/9-0.json": "a snapshot",
    "events/old.0.jsonl": "a journal",
    "archive/00/old.1.w.completed.json": "an archived task",
}


@pytest.mark.parametrize("started", [True, False], ids=["under a leader", "before he leads"])
@pytest.mark.parametrize("path", STRAYS)
def test_a_directory_in_the_place_of_a_file_stops_nothing_else(path: str, started: bool) -> None:
    made = Cluster("[retention]\nevents_s = 60\ntmp_s = 60\n")
    made.witness.twins_allowed = True
    nodes = ("m1", made.master), ("w1", made.worker)
    if started:
        for name, start in nodes:
            start(name)
        made.settle()
    room, *below = path.split("/")
    for part in below:
        room = f"{room}/{part}"
        make_directory(made.fs, room)
    made.fs.write(f"{path}/kept", b"whose is this?", durable=False)
    if not started:
        for name, start in nodes:
            start(name)
    made.settle()
    made.submit("a.json", LATER)
    made.advance(200)
    assert works(made)
    assert made.nodes["m1"].master.leading
    assert made.troubles == []
    assert [text for text in made.fs.files().values() if text == b"whose is this?"]


@pytest.mark.parametrize(
    "place", ["returned/", "ready/", "waiting/", "control/", "admitting/", "results/", "heartbeats/"]
)
@pytest.mark.parametrize("verb", ["read", "unlink", "write"])
def test_a_file_that_its_owner_alone_may_touch_stops_nothing_else(place: str, verb: str) -> None:
    made = cluster('{"id": "a", "command": ["work"], "retry": {"max": 1, "backoff_s": 0}}')
    mount = made.nodes["m1"].fs
    mount.fail(verb, place, errno.EACCES, times=10_000)
    made.submit("c.json", '{"id": "c", "command": ["work"], "after": ["a"]}')
    made.settle()
    made.finish("a", exit_code=1)
    made.fs.write("control/cancel.nobody.1.json", b"{}", durable=False)
    made.advance(30)
    again = "a.2" in made.running()["w1"]
    assert made.nodes["m1"].master.leading
    assert made.troubles == []
    mount.faults.clear()
    assert again or (verb, place) == ("read", "returned/")
    made.advance(60)
    made.finish("a")
    made.advance(3)
    made.finish("c")
    made.settle()
    assert works(made)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
@pytest.mark.parametrize("place", ["returned/", "claimed/w1/", "waiting/", "failed/"])
@pytest.mark.parametrize("anew", [False, True], ids=["under a leader", "before he leads"])
def test_a_task_that_cannot_be_read_is_named_and_stops_nothing_else(place: str, code: int, *, anew: bool) -> None:
    made = cluster()
    for task, settings in (("bad", '"max": 0'), ("again", '"max": 1, "backoff_s": 0'), ("held", '"max": 1')):
        made.submit(f"{task}.json", f'{{"id": "{task}", "command": ["work"], "retry": {{{settings}}}}}')
        made.settle()
        if task != "held":
            made.finish(task, exit_code=1)
            made.step("w1")
    if anew:
        made.crash("m1")
    leader = made.master("m2") if anew else made.nodes["m1"]
    leader.fs.fail("read", place, code, times=-1)
    made.fs.write("control/retry.bad.1.json", b"{}", durable=False)
    made.crash("w1")
    made.advance(60)
    made.worker("w2", 9)
    assert works(made)
    assert leader.master.leading
    found = snapshots.latest(made.fs)
    assert found is not None
    assert place == "waiting/" or any(line.startswith(place) for line in found[1].warnings)
    leader.fs.faults.clear()
    made.advance(60)
    assert {task: made.state(task) for task in ("a", "bad", "again", "held")} == {
        "a": "waiting", "bad": "claimed", "again": "claimed", "held": "claimed",
    }  # fmt: skip


def test_a_claim_restored_from_a_copy_neither_runs_nor_harms_what_was_committed() -> None:
    made = cluster('{"id": "a", "command": ["work"]}')
    path = made.find("a").path
    copy = made.fs.read(path)
    made.finish("a")
    made.settle()
    before = made.fs.files("results")
    made.witness.twins_allowed = True
    made.fs.write(path, copy, durable=False)
    made.advance(10)
    assert made.running() == {"w1": []}
    assert made.fs.files("results") == before
    assert works(made)
    assert made.fs.list("returned") == made.fs.list("claimed/w1") == []
    assert any(".a.a2f0c0." in name for name in made.fs.list("rejected"))
    assert [name for name in made.fs.list("completed") if name.startswith("a.")] == ["a.1.w1.json"]


def completed_after_a_backup() -> tuple[Cluster, str, bytes]:
    """A leader, a worker and a task that has completed; where it stood ready, and what stood there."""
    made = Cluster()
    made.master("m1")
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    (path,) = made.fs.files("ready")
    copy = made.fs.read(path)
    made.worker("w1")
    made.settle()
    made.finish("a")
    made.settle()
    return made, path, copy


def test_a_copy_that_stands_ready_again_neither_runs_nor_harms_what_was_committed() -> None:
    made, path, copy = completed_after_a_backup()
    before = made.fs.files("results")
    made.witness.twins_allowed = True
    made.fs.write(path, copy, durable=False)
    made.step("w1")
    made.advance(10)
    assert made.running() == {"w1": []}
    assert made.fs.files("results") == before
    assert made.fs.files("claimed") == made.fs.files("ready") == {}
    assert [name for name in made.fs.list("completed") if name.startswith("a.")] == ["a.1.w1.json"]
    assert any(".a.a2f0c0." in name for name in made.fs.list("rejected"))


def test_a_backup_of_what_was_ready_does_not_run_under_a_leader_who_knows_better() -> None:
    made, path, copy = completed_after_a_backup()
    made.stop("w1")
    made.stop("m1")
    made.witness.twins_allowed = True
    made.fs.write(path, copy, durable=False)
    made.master("m2")
    made.settle()
    assert made.fs.files("ready") == {}
    made.worker("w2")
    made.settle()
    assert made.running()["w2"] == []
    assert any(".a.a1f0c0." in name for name in made.fs.list("rejected"))


@pytest.mark.parametrize("kind", ["file", "directory"])
@pytest.mark.parametrize("epoch", [0, 99])
def test_a_door_that_no_leader_made_keeps_nobody_from_leading(kind: str, epoch: int) -> None:
    made = Cluster()
    if kind == "file":
        made.fs.write(f"admitting/{epoch}.m7.1", b"", durable=False)
    else:
        made.fs.mkdir(f"admitting/{epoch}.m7.1")
    made.master("m1")
    made.worker("w1")
    made.settle()
    assert works(made)
    assert len(made.fs.list("admitting")) == 1


def test_a_file_that_somebody_holds_open_in_an_old_door_goes_with_the_door() -> None:
    """As an NFS client keeps a file that was removed while it had it open: nobody can remove it until then."""
    made = Cluster()
    made.fs.mkdir("admitting/0.m0.1")
    made.fs.write("admitting/0.m0.1/.nfs0001", b"", durable=False)
    master = made.master("m1")
    master.fs.fail("unlink", "admitting/0.m0.1/.nfs", errno.EBUSY, times=1000)
    made.worker("w1")
    made.settle()
    assert works(made)
    assert [name for name in made.fs.list("admitting") if name.startswith("0.")] == []
    assert any(path.endswith("/.nfs0001") for path in made.fs.files("rejected"))


def test_of_many_tries_to_shut_a_door_no_doors_are_left() -> None:
    made = Cluster()
    made.fs.mkdir("admitting/0.m0.1")
    made.fs.write("admitting/0.m0.1/5000.hbva7ku4tx-0.x.a1f0c0.json", b"{}", durable=False)
    master = made.master("m1")
    master.fs.fail("rename", "admitting/0.m0.1/", errno.EPERM, times=1000)
    for _ in range(8):
        made.step("m1")
        made.pass_time(0.1)
    assert len(made.fs.list("admitting")) <= 2
    assert made.fs.files("admitting")


def test_a_drop_that_may_not_be_moved_is_told_and_tried_ever_more_seldom() -> None:
    made = Cluster()
    node = made.master("m1")
    made.settle()
    made.fs.mkdir("pending/mine")
    node.fs.fail("rename", "pending/mine", errno.EACCES, times=100_000)
    made.advance(5)
    before = node.fs.asked["rename"]
    made.advance(60)
    assert node.fs.asked["rename"] - before < 80
    desk = node.master.desk
    assert desk is not None
    assert any("mine" in notice for notice in desk.report.notices)
    node.fs.faults.clear()
    made.advance(61)
    assert "mine" in made.fs.list("rejected")


def test_a_commit_that_the_server_forgot_with_its_power_is_made_up_for() -> None:
    """All who live on know that it was committed; the tree, which says otherwise, is right."""
    made = cluster('{"id": "a", "command": ["work"]}')
    path = made.find("a").path
    made.finish("a")
    made.advance(3)
    assert made.state("a") == "completed"
    made.fs.rename(made.find("a").path, path)
    made.advance(10)
    assert made.running() == {"w1": ["a.2"]}
    made.finish("a")
    made.advance(3)
    assert [name for name in made.fs.list("completed") if name.startswith("a.")] == ["a.2.w1.json"]
    assert made.fs.list("rejected") == []


def test_a_copy_of_a_task_that_was_archived_as_completed_is_set_aside_too() -> None:
    made = cluster('{"id": "a", "command": ["work"]}')
    copy = made.fs.read(made.find("a").path)
    name = made.find("a").name
    assert isinstance(name, TaskName)
    made.finish("a")
    made.settle()
    made.fs.write("control/gc.+all.1.json", b"{}", durable=False)
    made.settle()
    made.witness.twins_allowed = True
    again = name.again().encode_returned("w1")
    made.fs.write(f"returned/{again}", copy, durable=False)
    made.settle()
    assert made.fs.list("returned") == []
    assert any(".a.a2f0c0." in name for name in made.fs.list("rejected"))
    assert made.running() == {"w1": []}


LAST = 10**9 - 1
LANE = "type=command,run=command"


@pytest.mark.parametrize(
    "path",
    [
        f"ready/{LANE}/5000.hff58yhhc0-3.big.a{LAST}f0c0.json",
        f"ready/{LANE}/5000.hff58yhhc0-3.big.a{LAST}f{LAST}c{LAST}r{10**12 - 1}.json",
        f"returned/5000.hff58yhhc0-3.big.a{LAST}f0c0.w9.json",
        f"claimed/w9/5000.hff58yhhc0-3.big.a{LAST}f0c0.json",
        f"claimed/w9/5000.hff58yhhc0-3.big.a{LAST}f{LAST}c1.json",
        f"waiting/{LANE}/5000.zzzzzzzzzz-1.big.a1f0c0.json",
        f"waiting/{LANE}/5000.zzzzzzzzzz-zzzzzz.big.a1f0c0.json",
        "admitting/1.m9.1/5000.zzzzzzzzzz-zzzzzz.big.a1f0c0.json",
    ],
)
def test_the_highest_numbers_that_a_name_can_hold_stop_no_node(path: str) -> None:
    made = Cluster()
    make_directory(made.fs, path.rpartition("/")[0])
    made.fs.write(path, b'{"id": "big", "command": ["work"]}', durable=False)
    made.master("m1")
    made.worker("w1")
    for _ in range(8):
        made.advance(10)
        if made.running()["w1"]:
            made.finish("big", exit_code=1)
    assert works(made)
    assert made.gone == {}


@pytest.mark.parametrize("file", ["5000.hff58yhhc0-1.shy.a1f0c0.json", "notes.txt"])
@pytest.mark.parametrize("verb", ["rename", "list"])
def test_a_door_that_only_its_owner_may_empty_is_shut_all_the_same(file: str, verb: str) -> None:
    made = Cluster()
    node = made.master("m1")
    made.worker("w1")
    made.fs.mkdir("admitting/9.m9.1")
    made.fs.write(f"admitting/9.m9.1/{file}", b'{"id": "shy", "command": ["work"]}', durable=False)
    for door in ("admitting/9.m9.1", "admitting/9.m9.999000000"):
        node.fs.fail("unlink", f"{door}/", errno.EACCES, times=10_000)
        # Who may write in admitting/ may rename it there; to be moved elsewhere it has to be writable itself.
        node.fs.fail("rename", f"{door}/", errno.EACCES, times=10_000)
        node.fs.fail("rename", f"rejected/{door.rpartition('/')[2]}", errno.EACCES, times=10_000)
        if verb == "list":
            node.fs.fail("list", door, errno.EACCES, times=10_000)
    made.advance(60)
    assert works(made)
    assert [name for name in made.fs.list("admitting") if name.startswith("9.")] == ["9.m9.999000000"]
    found = snapshots.latest(made.fs)
    assert found is not None
    assert any("chmod -R g+rwX admitting/9.m9.999000000" in said for said in found[1].warnings)
    node.fs.faults.clear()
    made.advance(400)
    assert not [name for name in made.fs.list("admitting") if name.startswith("9.")]
    if file.endswith(".json"):
        assert made.state("shy") == "claimed"
    found = snapshots.latest(made.fs)
    assert found is not None
    assert found[1].warnings == ()


@pytest.mark.parametrize("directory", ["claimed/w9", "ready/type=other"])
def test_a_directory_that_only_its_owner_may_list_stops_nothing_else(directory: str) -> None:
    made = Cluster()
    node = made.master("m1")
    made.worker("w1")
    made.fs.mkdir(directory)
    made.fs.write(f"{directory}/5000.hff58yhhc0-1.shy.a1f0c0.json", b'{"id": "shy", "type": "other"}', durable=False)
    for verb in ("list", "rename"):
        node.fs.fail(verb, directory, errno.EACCES, times=10_000)
    made.advance(60)
    assert works(made)
    assert node.master.leading
    found = snapshots.latest(made.fs)
    assert found is not None
    assert any(f"chmod -R g+rwX {directory}" in said for said in found[1].warnings)
    node.fs.faults.clear()
    made.advance(60)
    assert node.master.desk is not None
    assert node.master.desk.view.place("shy") is not None or "shy" in node.master.desk.backlog
    found = snapshots.latest(made.fs)
    assert found is not None
    assert not any("chmod" in said for said in found[1].warnings)


def test_what_only_its_owner_may_list_of_a_dead_node_stops_nothing_else() -> None:
    made = Cluster()
    node = made.master("m1")
    made.worker("w1")
    made.fs.mkdir("tmp/gone")
    made.fs.write("tmp/gone/1", b"", durable=False)
    made.fs.write("heartbeats/gone.1.json", b"{}", durable=False)
    node.fs.fail("list", "tmp/gone", errno.EACCES, times=10_000)
    made.advance(60)
    assert works(made)
    found = snapshots.latest(made.fs)
    assert found is not None
    assert any("chmod -R g+rwX tmp/gone" in said for said in found[1].warnings)
    assert [name for name in made.fs.list("heartbeats") if name.startswith("gone")] == []


@pytest.mark.parametrize("size", [-1, (1 << 63) - 1, (1 << 64) - 1, True, 1.5, "many"])
def test_no_number_in_a_reason_stops_a_leader(size: object, tmp_path: Path) -> None:
    """On a real file system: no file can be read from so far on."""
    fs, clock = PosixFileSystem(tmp_path), ManualClock()
    initialise(fs, clock, "spool", str(tmp_path))
    fs.write("rejected/a.json", b"{", durable=False)
    reason = json.dumps({"drop": "a.json", "unfinished": True, "size": size})
    fs.write("rejected/a.json.reason.json", reason.encode(), durable=False)
    store = open_store(fs, clock, "m1", str(tmp_path))
    store.open_tmp()
    master = Master(store, FakeHost("here"))
    for _ in range(5):
        master.step()
        clock.advance(1.0)
    assert master.leading
    (left,) = [
        name for path in ("pending", "rejected") for name in fs.list(path) if not name.endswith(".reason.json")
    ]
    assert left.startswith("a.")
