"""A link where a directory should be: nothing is done through it, people are told, and all else goes on.

The file system in memory says of a link what a real one says to those who follow none.
"""

import errno

import pytest

from spoold.client.read.explanation import explain
from spoold.client.spool.fsck_and_repair import check, mend
from spoold.client.spool.spool_status import status
from spoold.master.report.status_report import TREE_EVERY_S
from spoold.protocol import layout
from spoold.protocol.errors import Unavailable
from spoold.store.initialise import initialise
from spoold.store.store import Store, clear_directory, open_store
from spoold.system.clock import ManualClock
from spoold.system.host import FakeHost
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.house.sources import CHECKOUT
from tests.support.cluster import Cluster

# Without these nobody knows which tasks there are, or who leads: no leader may plan as if they were empty.
NEEDED = {"admitting", "waiting", "ready", "claimed", "returned", "completed", "failed", "archive"}
NEEDED |= {"heartbeats", "master", "tmp"}
# Nothing can end without its result.
ENDS = {"results"}


def cluster(settings: str = "") -> Cluster:
    """A leader and a worker at rest."""
    made = Cluster(settings)
    made.master("m1")
    made.worker("w1")
    made.settle()
    made.witness.losses_allowed = True  # somebody takes whole directories away
    return made


def replace(made: Cluster, path: str) -> None:
    """Somebody moves a directory away and puts a link in its place."""
    made.fs.rename(path, f"{path}.old")
    made.fs.make_symlink(path, "elsewhere")


def reader(made: Cluster) -> Store:
    return open_store(made.fs, made.clock, "cli-1", "/spool")


def warnings(made: Cluster) -> list[str]:
    """What `spool status` warns of."""
    return list(status(reader(made), FakeHost("desk"), made.clock, sleep=made.advance).warnings)


@pytest.mark.parametrize("directory", sorted(layout.TREE))
def test_status_names_it_and_the_fix(directory: str) -> None:
    made = cluster()
    replace(made, directory)
    made.advance(TREE_EVERY_S + 10)
    (told,) = [warning for warning in warnings(made) if warning.startswith(f"{directory} is a link")]
    assert f"`rm {directory}; mkdir {directory}`" in told


@pytest.mark.parametrize("directory", sorted({*layout.TREE} - NEEDED - ENDS))
def test_what_is_not_needed_for_it_goes_on(directory: str) -> None:
    made = cluster("[retention]\ncompleted_s = 5\nfailed_s = 5\n")
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    replace(made, directory)
    made.finish("a")
    made.advance(70)
    assert (made.fs.list("completed"), made.state("a")) == ([], "completed"), "it was archived"
    if directory != "pending":
        made.submit("b.json", '{"id": "b", "command": ["work"]}')
        made.submit("c.json", '{"id": "c", "no": "task"}')
        made.settle()
        assert made.state("b") == "claimed"
    assert made.troubles == []


@pytest.mark.parametrize("directory", sorted(NEEDED))
def test_nobody_plans_as_if_it_were_empty(directory: str) -> None:
    made = cluster()
    made.submit("w.json", '{"id": "w", "command": ["work"], "not_before": "2199-01-01T00:00:00Z"}')
    made.settle()
    replace(made, directory)
    made.submit("again.json", '{"id": "w", "command": ["other"]}')
    made.advance(40)
    made.fs.unlink(directory)
    made.fs.rename(f"{directory}.old", directory)
    if not made.nodes:
        made.master("m2")
    made.advance(40)
    assert made.state("w") == "waiting"


@pytest.mark.parametrize("directory", sorted(NEEDED))
def test_without_one_that_a_leader_needs_nobody_leads_and_the_first_advice_is_its_fix(directory: str) -> None:
    made = cluster()
    replace(made, directory)
    if directory == "archive":  # a leader has read it, and the next one has to
        made.crash("m1")
        made.master("m2")
    made.advance(40)
    made.submit("b.json", '{"id": "b", "command": ["work"]}')
    made.advance(40)
    assert "b.json" in made.fs.list("pending")
    told = warnings(made)
    assert told[0].startswith(f"{directory} is a link where a directory should be")
    (advice,) = [warning for warning in told if "nothing is admitted" in warning or "cannot be seen" in warning]
    assert "start `spool master`" not in advice.partition("First fix the directories named above")[0].lower()
    security = (CHECKOUT / "SECURITY.md").read_text(encoding="utf-8")
    (sentence,) = [part for part in security.split("\n- ") if "[links-are-told]" in part]
    assert f"`{directory}/`" in sentence


def test_the_leader_says_in_its_log_which_one_stops_it() -> None:
    made = cluster()
    replace(made, "ready")
    made.advance(2)
    with pytest.raises(NotADirectoryError, match="ready is a link where a directory should be"):
        made.nodes["m1"].actor.step()


def test_a_worker_whose_claim_directory_became_a_link_begins_again() -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    replace(made, "claimed/w1")
    made.advance(3)
    assert "claimed/w1 is no directory any more" in made.gone["w1"]
    made.worker("w2")
    made.submit("b.json", '{"id": "b", "command": ["work"]}')
    made.advance(40)
    assert made.state("b") == "claimed"
    assert made.fs.list("claimed") == ["w2", "w1.old"], "the link was removed with what else was left of w1"


@pytest.mark.parametrize("node", ["w1", "m1"])
def test_a_node_whose_tmp_directory_became_a_link_begins_again(node: str) -> None:
    made = cluster()
    replace(made, f"tmp/{node}")
    made.submit("a.json", '{"id": "a", "no": "task"}')  # to reject it a leader writes
    made.advance(20)
    assert f"tmp/{node} is no directory any more" in made.gone[node]
    if node == "m1":
        made.master("m2")
    else:
        made.worker("w2")
    made.submit("b.json", '{"id": "b", "command": ["work"]}')
    made.advance(60)
    assert made.state("b") == "claimed"
    assert node not in made.fs.list("tmp")


@pytest.mark.parametrize("room", ["claimed", "tmp"])
def test_a_file_in_the_place_of_a_dead_workers_directory_is_set_aside(room: str) -> None:
    """Over SMB a link is one for clients with `mfsymlinks` alone; for all others it is a file."""
    made = cluster()
    made.crash("w1")
    made.fs.rename(f"{room}/w1", f"{room}/w1.old")
    made.fs.write(f"{room}/w1", b"XSym\n", durable=True)
    made.advance(60)
    assert "w1" not in made.fs.list(room)
    assert made.fs.read("rejected/w1") == b"XSym\n"
    assert "rejected/w1.reason.json" in made.fs.files()
    assert not [name for name in made.fs.list("heartbeats") if name.startswith("w1.")]
    assert not status(reader(made), FakeHost("desk"), made.clock, sleep=made.advance).nodes


def test_a_silent_worker_that_cannot_be_reaped_is_called_dead_and_not_what_it_last_said() -> None:
    made = cluster()
    made.crash("w1")
    made.nodes["m1"].fs.fail("rmdir", "claimed/w1", 13, times=10_000)
    made.advance(60)
    told = status(reader(made), FakeHost("desk"), made.clock, sleep=made.advance)
    assert [(node.worker, node.state) for node in told.nodes] == [("w1", "dead")]
    assert (told.workers.alive, told.workers.dead) == (0, 1)


def test_a_file_where_a_directory_should_be_is_told_with_the_fix() -> None:
    made = cluster()
    made.fs.write("ready/type=other", b"XSym\n", durable=True)
    made.fs.rename("doctor", "doctor.old")
    made.fs.write("doctor", b"", durable=True)
    made.advance(TREE_EVERY_S + 10)
    told = warnings(made)
    assert "ready/type=other is a file where a directory should be; move it out of the spool" in told
    fix = "move it out of the spool, and make the directory (`mkdir doctor`)"
    assert f"doctor is a file where a directory should be; {fix}" in told


@pytest.mark.parametrize("room", ["waiting", "ready"])
def test_a_lane_that_is_a_link_holds_up_no_other(room: str) -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    made.submit("p.json", '{"id": "p", "command": ["work"], "type": "other"}')
    made.settle()
    (lane,) = [name for name in made.fs.list("ready") if name.startswith("type=other")]
    path = f"{room}/{lane}"
    if room == "waiting":
        made.fs.make_symlink(path)
    else:
        replace(made, path)
    made.finish("a")
    made.submit("q.json", '{"id": "q", "command": ["work"], "type": "other", "after": ["a"]}')
    made.submit("b.json", '{"id": "b", "command": ["work"]}')
    made.settle()
    made.advance(3)
    fix = f"and no link below a spool is followed; remove the link (`rm {path}`)"
    assert any(warning.endswith(fix) for warning in warnings(made))
    made.fs.unlink(path)
    made.advance(3)
    for _ in range(4):
        for name in made.running()["w1"]:
            made.finish(name.rpartition(".")[0])
        made.settle()
    assert [made.state("b"), made.state("q")] == ["completed", "completed"]


def test_a_leader_whose_door_became_a_link_makes_another() -> None:
    made = cluster()
    (door,) = made.fs.list("admitting")
    replace(made, f"admitting/{door}")
    made.submit("b.json", '{"id": "b", "command": ["work"]}')
    made.advance(10)
    assert made.state("b") == "claimed"
    assert door not in made.fs.list("admitting")


def test_an_old_link_in_tmp_is_removed_itself() -> None:
    """What lies at its end was deleted, for as old as the link's own stamp said it was."""
    made = cluster("[retention]\ntmp_s = 60\n")
    made.fs.make_dirs("home/docs")
    made.fs.write("home/docs/thesis", b"years", durable=True)
    made.fs.make_symlink("tmp/backup", "../home")
    made.advance(130)
    assert "backup" not in made.fs.list("tmp")
    assert made.fs.read("home/docs/thesis") == b"years"


def test_clearing_removes_a_link_and_says_that_it_is_gone() -> None:
    fs = MemoryFileSystem()
    fs.make_dirs("tmp")
    fs.make_symlink("tmp/backup")
    assert clear_directory(fs, "tmp/backup")
    assert fs.list("tmp") == []
    fs.write("tmp/notes", b"", durable=False)
    assert not clear_directory(fs, "tmp/notes"), "a file is somebody's, and no link"


def test_a_claim_that_the_leader_may_not_move_is_told_whole_with_the_fix() -> None:
    """A second user's worker, started with umask 022, died: the group may not write to its directory."""
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    token = made.find("a").path
    made.crash("w1")
    made.nodes["m1"].fs.fail("rename", "claimed/w1/", 13, times=10_000)
    made.advance(40)
    (told,) = [warning for warning in warnings(made) if "cannot be moved" in warning]
    assert token in told
    assert "`chmod g+rwx claimed/w1`" in told
    assert "umask 002" in told
    explained = explain(reader(made), FakeHost("desk"), made.clock, "a", sleep=made.advance)
    assert "the leader cannot take it back" in explained.verdict
    assert told in explained.verdict
    assert not any("takes it back after" in reason.change for reason in explained.reasons)
    made.nodes["m1"].fs.faults.clear()
    made.worker("w2")
    made.advance(5)
    assert made.state("a") == "claimed"


def test_a_worker_says_what_stands_in_the_place_of_its_file_or_directory() -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    name = "results/a.1.w1.json"
    made.fs.make_symlink(name, "elsewhere")
    made.nodes["w1"].fs.fail("rename", name, errno.EPERM, times=10_000)  # else it would be renamed where it is
    made.finish("a")
    made.settle()
    made.advance(5)
    (told,) = [note for note in made.nodes["w1"].worker.notes if "cannot be written" in note]
    assert f"{name} is not a file that may be written" in told
    made.nodes["w1"].fs.faults.clear()
    made.fs.unlink(name)
    replace(made, "results")
    made.advance(5)
    (told,) = [note for note in made.nodes["w1"].worker.notes if "cannot be written" in note]
    assert "results is a link where a directory should be" in told


def test_no_spool_is_made_over_a_link() -> None:
    fs = MemoryFileSystem()
    fs.make_symlink("master", "elsewhere")
    with pytest.raises(Unavailable, match="master is a link where a directory should be"):
        initialise(fs, ManualClock(), "spool", "/spool")
    assert layout.MARKER not in fs.list("")


@pytest.mark.parametrize("directory", sorted({*layout.TREE} - {"doctor", "status", "logs"}))
def test_fsck_calls_it_an_error_and_repairs_nothing(directory: str) -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    replace(made, directory)
    store = reader(made)
    report = check(store, sleep=lambda seconds: None)
    assert [f.problem for f in report.findings if f.paths == (directory,) and "is a link" in f.problem]
    assert report.broken
    before = made.fs.files()
    with pytest.raises(Unavailable, match="nothing was repaired"):
        mend(store, FakeHost("desk"), made.clock, report, force=True)
    assert made.fs.files() == before
