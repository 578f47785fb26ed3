"""A directory with mode 700 that a member of the group makes anywhere in the spool is passed over. It is named with
the fix, and stops nobody.
"""

from __future__ import annotations

import pytest

from spoold.client.read.explanation import explain
from spoold.client.spool.spool_status import status
from spoold.protocol.lifecycle import State
from spoold.store import snapshots, task_location
from spoold.store.state_counts import census
from spoold.store.store import make_directory, open_store
from spoold.store.tree_repair import survey
from tests.support.cluster import Cluster, Node
from tests.support.faults import FaultyFileSystem

LANE = "type=command,run=command"
TOKEN = "5000.hbva7ku4tx-1.x.a1f0c0.json"
CONTENT = b'{"id": "x", "command": ["work"]}'

# Where only directories are looked for, and those that are named in warnings.
ROOMS = [
    "admitting/9.m9.1",
    "waiting/type=other",
    f"waiting/{LANE}",
    "ready/type=other",
    "claimed/w9",
    "archive/00",
    "tmp/gone",
]
UNSEEN = ["waiting/notes", "claimed/Notes", "doctor/run.gone", "logs/sub", "events/sub", "master/sub", "rejected/sub"]
# Where only files are looked for.
FILES = [
    "pending/y.json",
    "pending/y.jsonl",
    f"waiting/{LANE}/{TOKEN}",
    f"ready/{LANE}/{TOKEN}",
    f"claimed/w1/{TOKEN}",
    f"claimed/w9/{TOKEN}",
    "returned/5000.hbva7ku4tx-1.x.a2f0c0.w9.json",
    "completed/x.1.w9.json",
    "failed/x.1.w9.json",
    "results/a.1.w9.json",
    "results/b.1.w1.json",
    "logs/b.1.w1.log",
    "heartbeats/ghost.5.json",
    "control/cancel.nobody.x.json",
    "control/resume.+all.x.json",
    "control/gc.+all.x.json",
    "events/old.0.jsonl",
    "events/w7.0.jsonl",
    "status/9-0.json",
    "doctor/1.doctor-x.json",
    "archive/00/old.1.w.completed.json",
]
PLANTED = [*ROOMS, *UNSEEN, *FILES]


def closed(made: Cluster, directory: str, kept: str = "") -> None:
    """A stranger makes it, with a file in it."""
    room = ""
    for part in directory.split("/"):
        room = f"{room}/{part}".lstrip("/")
        make_directory(made.fs, room)
    made.fs.write(f"{directory}/{kept or 'kept'}", CONTENT, durable=False)


def shut(directory: str, *nodes: Node) -> None:
    """Nobody but him may look into it from now on."""
    for node in nodes:
        node.fs.closed |= {directory, directory.replace("/9.m9.1", "/9.m9.999000000")}  # as the leader renames a door


def warned(made: Cluster) -> str:
    """What the leader's newest snapshot warns of."""
    found = snapshots.latest(made.fs)
    assert found is not None
    return "\n".join(found[1].warnings)


def flows(made: Cluster, task: str) -> bool:
    """Whether a task is admitted, fails once, is handed back, placed again and completes."""
    made.submit(f"{task}.json", f'{{"id": "{task}", "type": "flow", "retry": {{"max": 2, "backoff_s": 0.1}}}}')
    made.advance(3)
    made.finish(task, exit_code=1)
    made.advance(5)
    made.finish(task)
    made.advance(5)
    return made.state(task) == "completed"


@pytest.mark.turns
@pytest.mark.parametrize("started", [True, False], ids=["under a leader", "before it leads"])
@pytest.mark.parametrize("path", PLANTED)
def test_it_stops_no_node_and_no_reader(path: str, started: bool) -> None:
    made = Cluster("[retention]\nevents_s = 60\ntmp_s = 60\n")
    made.witness.twins_allowed = made.witness.losses_allowed = True

    def start() -> list[Node]:
        return [made.master("m1"), made.worker("w1", 2, config={"handlers": HANDLERS})]

    nodes = start() if started else []
    if started:
        made.settle()
    closed(made, path, TOKEN)
    nodes = nodes or start()
    shut(path, *nodes)
    made.advance(20)
    assert flows(made, "b"), made.troubles
    made.advance(150 if path == "tmp/gone" else 70)
    assert flows(made, "c"), made.troubles
    assert made.nodes["m1"].master.leading
    assert made.troubles == []
    if path in ROOMS:
        name = path.rpartition("/")[2]
        assert name.partition(".")[0] in warned(made)
        assert "chmod -R g+rwX" in warned(made)
    _read_all(made, path)


HANDLERS = {kind: {"command": ["work"]} for kind in ("flow", "other")}


def _read_all(made: Cluster, path: str) -> None:
    """What people ask for is answered, by a leader and without one."""
    mount = FaultyFileSystem(made.fs)
    mount.closed.add(path)
    node = made.nodes["w1"]
    store = open_store(mount, node.clock, "cli-1", "/spool")
    told = {found.id: found.state for found in task_location.iter_tasks(store, archived=True)}
    assert told["b"] == told["c"] == State.COMPLETED
    assert task_location.locate(store, "c").state is State.COMPLETED
    assert census(mount).tasks.completed >= 2
    survey(store)
    assert status(store, node.host, node.clock, sleep=made.pass_time).tasks.completed >= 2
    made.crash("m1")
    made.pass_time(60)
    listed = status(store, node.host, node.clock, sleep=made.pass_time)
    assert listed.source == "listing"
    if (
        path in ROOMS
        and path != "tmp/gone"
        and path
        in {f"{d}/{n}" for d in ("admitting", "waiting", "ready", "claimed", "archive") for n in made.fs.list(d)}
    ):
        assert any(f"chmod -R g+rwX {path}" in said for said in listed.warnings)


def test_what_stood_in_a_lane_before_it_was_closed_is_neither_missed_nor_tried_at_every_step() -> None:
    """As when the user who led before, and made the lane, takes it away from the group."""
    made = Cluster()
    node = made.master("m1")
    made.worker("w1", 2, config={"handlers": HANDLERS})
    made.settle()
    made.submit("p.json", '{"id": "p", "type": "flow"}')
    for number in range(5):
        made.submit(f"q{number}.json", f'{{"id": "q{number}", "type": "other", "after": ["p"]}}')
    made.settle()
    shut("waiting/type=other", node)
    made.finish("p")
    made.advance(200)
    assert node.master.desk is not None
    assert {f"q{number}" for number in range(5)} <= {entry.name.id for _, entry in node.master.desk.backlog.items()}
    assert "waiting/type=other belongs to another user" in warned(made)
    assert flows(made, "b")
    before = node.fs.asked["rename"]
    made.advance(30)
    assert node.fs.asked["rename"] - before < 60  # its own token, beats and snapshots
    node.fs.closed.clear()
    made.advance(40)
    assert made.running()["w1"] == ["q0.1", "q1.1"]
    assert warned(made) == ""


@pytest.mark.parametrize("directory", ["waiting/type=other", "ready/type=other"])
def test_what_would_go_into_a_closed_lane_waits_and_goes_on_when_it_opens(directory: str) -> None:
    made = Cluster()
    node = made.master("m1")
    made.worker("w1", 2, config={"handlers": HANDLERS})
    made.settle()
    closed(made, directory)
    shut(directory, *made.nodes.values())
    made.submit("p.json", '{"id": "p", "type": "flow"}')
    for number in range(3):
        made.submit(f"q{number}.json", f'{{"id": "q{number}", "type": "other", "after": ["p"]}}')
    made.advance(5)
    made.finish("p")
    made.advance(60)
    assert flows(made, "b")
    before = node.fs.asked["rename"]
    made.advance(30)
    assert node.fs.asked["rename"] - before < 60
    assert f"{directory} belongs to another user" in warned(made)
    for each in made.nodes.values():
        each.fs.closed.clear()
    made.advance(130)
    assert sorted(made.running()["w1"]) == ["q0.1", "q1.1"]


def dropped_again_behind_a_closed_archive() -> tuple[Cluster, Node, str]:
    """A pool, its leader, and the archive directory that is closed to it, with a task whose id is dropped again."""
    made = Cluster()
    node = made.master("m1")
    made.worker("w1", 2, config={"handlers": HANDLERS})
    made.settle()
    assert flows(made, "b")
    made.fs.write("control/gc.+all.1.json", b"{}", durable=False)
    made.advance(3)
    (bucket,) = made.fs.list("archive")
    shut(f"archive/{bucket}", node)
    made.submit("again.json", '{"id": "b", "type": "flow"}')
    return made, node, bucket


def test_an_id_of_a_closed_archive_directory_stays_taken() -> None:
    made, _, bucket = dropped_again_behind_a_closed_archive()
    made.advance(90)
    assert made.running()["w1"] == []
    assert flows(made, "c")
    assert f"archive/{bucket} belongs to another user" in warned(made)


def test_a_drop_whose_id_is_in_a_closed_archive_directory_is_looked_at_ever_more_seldom() -> None:
    made, node, _ = dropped_again_behind_a_closed_archive()
    made.advance(60)
    read: list[str] = []
    inner = node.fs.read

    def noted(path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        read.append(path)
        return inner(path, limit, offset=offset)

    setattr(node.fs, "read", noted)  # noqa: B010  a method of this one object
    busy = 0
    for _ in range(120):
        made.advance(1)
        busy += node.master.step().busy
    assert read.count("pending/again.json") <= 3
    assert busy <= 3, "nothing changes, so the leader rests"
    node.fs.closed.clear()
    made.advance(70)
    assert made.fs.list("pending") == []


OWN_DIRECTORIES = ("pending/", "returned/", "completed/", "failed/")
# A living worker sets aside what is no file in its claim directory, and then there is no such task.
OWN = [
    path
    for path in FILES
    if (path.endswith(TOKEN) and not path.startswith("claimed/w1/")) or path.startswith(OWN_DIRECTORIES)
]


@pytest.mark.parametrize("path", OWN)
def test_a_task_whose_own_file_is_a_closed_directory_is_explained(path: str) -> None:
    made = Cluster()
    made.witness.twins_allowed = made.witness.losses_allowed = True
    nodes = [made.master("m1"), made.worker("w1", 2, config={"handlers": HANDLERS})]
    made.settle()
    closed(made, path, TOKEN)
    shut(path, *nodes)
    made.advance(5)
    mount = FaultyFileSystem(made.fs)
    mount.closed.add(path)
    store = open_store(mount, nodes[0].clock, "cli-1", "/spool")
    task = path.rpartition("/")[2] if path.startswith("pending/") else "x"
    answer = explain(store, nodes[0].host, nodes[0].clock, task, sleep=made.pass_time)
    assert answer.verdict
    if path.startswith(("waiting/", "ready/", "returned/")):
        (reason,) = [reason for reason in answer.reasons if reason.gate == "file"]
        assert f"{path} may not be read by this user" in reason.reason.replace(": ", " ")
        assert f"chmod -R g+rwX {path}" in reason.change


def test_of_many_closed_directories_a_few_are_named() -> None:
    made = Cluster()
    made.witness.twins_allowed = made.witness.losses_allowed = True
    node = made.master("m1")
    made.settle()
    for number in range(40):
        closed(made, f"ready/type=t{number}")
        shut(f"ready/type=t{number}", node)
    made.advance(10)
    said = warned(made).splitlines()
    assert sum("belongs to another user" in line for line in said) == 5
    assert said[-1].endswith("not named here: 35")
    mount = FaultyFileSystem(made.fs)
    mount.closed |= node.fs.closed
    made.crash("m1")
    made.pass_time(60)
    store = open_store(mount, node.clock, "cli-1", "/spool")
    listed = status(store, node.host, node.clock, sleep=made.pass_time).warnings
    assert sum("belongs to another user" in line for line in listed) == 5
    assert any(line.endswith("not named here: 35") for line in listed)


def test_a_worker_passes_over_a_lane_that_it_may_not_list_and_says_so() -> None:
    made = Cluster()
    made.master("m1")
    worker = made.worker("w1", 2, config={"handlers": HANDLERS})
    made.settle()
    closed(made, "ready/type=other")
    shut("ready/type=other", worker)
    assert flows(made, "b")
    assert any("ready/type=other may not be listed" in note for note in worker.worker.notes)
    worker.fs.closed.clear()
    made.advance(5)
    assert not worker.worker.notes


@pytest.mark.parametrize("mode", ["closed", "open"])
@pytest.mark.parametrize("target", ["completed/b.1.w1.json", "results/b.1.w1.json", "results/d.1.m1.json"])
def test_a_directory_under_the_name_that_an_end_gets_holds_nothing_up(target: str, mode: str) -> None:
    made = Cluster()
    nodes = [made.master("m1"), made.worker("w1", 2, config={"handlers": HANDLERS})]
    made.settle()
    made.submit("b.json", '{"id": "b", "type": "flow"}')
    made.submit("d.json", '{"id": "d", "type": "flow", "deadline": "2001-01-01T00:00:00Z"}')
    made.witness.twins_allowed = made.witness.losses_allowed = True
    if not target.startswith("completed/"):
        closed(made, target)
    made.advance(3)
    if target.startswith("completed/"):  # else the leader would take b for completed already
        closed(made, target)
    if mode == "closed":
        shut(target, *nodes)
    made.finish("b")
    made.advance(3)
    for node in nodes:
        node.fs.closed.clear()
    assert (made.state("b"), made.state("d")) == ("completed", "failed")
    assert made.fs.stat(target).kind == "file"
    above, _, name = target.rpartition("/")
    (aside,) = [found for found in made.fs.list(above) if found.endswith(".aside")]
    assert aside.startswith(f".{name}.")
    assert made.fs.list(f"{above}/{aside}") == ["kept"]
