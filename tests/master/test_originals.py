"""Drops whose names are used again by a program that still holds the file of the last one, as an NFS client does.

Law: each is run once, whatever the leader is about; the file of a task is never one that a stranger has written.
Method: the program writes into its file wherever that was moved, and makes a new one only when it is gone.
"""

import errno
import json

import pytest

from tests.support.cluster import Cluster
from tests.support.faults import Hang, How
from tests.support.tokens import tokens

HOWS: tuple[How, ...] = ("refused", "done", "late")


class Client:
    """An NFS client that never looks a name up again while the file of it exists."""

    def __init__(self, made: Cluster, name: str = "job.json") -> None:
        self._made = made
        self._name = name
        self._inode: int | None = None

    @property
    def path(self) -> str | None:
        """Where its file is by now."""
        files = self._made.fs.files()
        return next((path for path in files if self._made.fs.stat(path).inode == self._inode), None)

    def drop(self, text: str) -> str:
        """Write another drop under the name; where it went."""
        path = self.path or f"pending/{self._name}"
        self._made.fs.write(path, text.encode(), durable=False)
        self._inode = self._made.fs.stat(path).inode
        return path


def task(task_id: str, **more: object) -> str:
    return json.dumps({"id": task_id, "command": ["work"], **more})


def cluster(*, remote: bool = True) -> Cluster:
    made = Cluster("[heartbeat]\ninterval_s = 1\nmisses = 2\n", remote=remote)
    made.master("m1")
    made.settle()
    return made


def ids(made: Cluster) -> list[str]:
    """The tasks that stand anywhere, once for each token."""
    return sorted(token.id for token in tokens(made.fs))


def nothing_is_left(made: Cluster) -> None:
    assert made.fs.files("admitting") == {}
    assert made.fs.list("pending") == []


@pytest.mark.parametrize("remote", [True, False])
@pytest.mark.parametrize("pause_s", [1, 7])
def test_a_name_may_be_used_again(remote: bool, pause_s: int) -> None:
    made = cluster(remote=remote)
    client = Client(made)
    for number in range(5):
        client.drop(task(f"t{number}"))
        made.advance(pause_s)
    assert ids(made) == [f"t{number}" for number in range(5)]
    assert made.fs.list("rejected") == []
    nothing_is_left(made)


def test_the_same_may_be_dropped_again_under_one_name() -> None:
    made = cluster()
    client = Client(made)
    for _ in range(3):
        client.drop('{"command": ["work"]}')
        made.advance(2)
    assert len(ids(made)) == 3


@pytest.mark.parametrize(
    ("call", "number", "went", "found"),
    [
        (("read", "pending/"), 1, "pending", ["second"]),  # it replaces what nobody has seen
        (("write", "admitting/"), 1, "pending", ["first", "second"]),
        (("rename", "pending/"), 1, "pending", ["first", "second"]),
        (("rename", "admitting/"), 2, "admitting", ["first", "second"]),
        (("read", "admitting/"), 1, "admitting", ["first", "second"]),
        (("unlink", "admitting/"), 1, "admitting", ["first"]),  # the one moment in which nobody looks
    ],
)
def test_the_name_is_used_again_while_the_leader_admits(
    call: tuple[str, str], number: int, went: str, found: list[str]
) -> None:
    made = cluster()
    client, paths = Client(made), []
    client.drop(task("first"))
    hang = Hang(*call, lambda: paths.append(client.drop(task("second"))), number)
    made.nodes["m1"].fs.hangs.append(hang)
    made.advance(30)
    assert [path.partition("/")[0] for path in paths] == [went]
    assert ids(made) == found
    nothing_is_left(made)


@pytest.mark.parametrize(("late", "remote"), [(False, True), (True, False), (True, True)])
def test_the_leader_dies_at_every_call(late: bool, remote: bool) -> None:
    """late: what it was just about to do is carried out after the next leader has finished."""
    for number in range(1000):
        made = cluster(remote=remote)
        made.master("m2")
        made.settle()
        Client(made).drop(task("first"))
        Client(made, "other.json").drop('{"command": ["work"]}')
        dying = made.nodes["m1"].fs
        dying.crash_after, dying.last_words = number, late
        made.advance(2)
        if "m1" in made.nodes:
            break
        made.advance(8)
        dying.deliver()
        made.advance(8)
        assert len(ids(made)) == 2, number
        assert "first" in ids(made)
        assert made.fs.list("rejected") == []
        nothing_is_left(made)
    assert number > 20


@pytest.mark.turns
@pytest.mark.parametrize(
    ("verb", "path", "after"),
    [
        ("write", "admitting/", 0),
        ("rename", "pending/", 0),
        ("rename", "admitting/", 1),
        ("read", "admitting/", 0),
        ("unlink", "admitting/", 0),
    ],
)
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES])
@pytest.mark.parametrize("how", HOWS)
def test_a_call_that_fails_loses_and_doubles_nothing(verb: str, path: str, after: int, code: int, how: How) -> None:
    for times in (1, 4, 9):
        made = cluster()
        client = Client(made)
        client.drop(task("first"))
        mount = made.nodes["m1"].fs
        mount.fail(verb, path, code, how, times, after)
        made.advance(20)
        mount.deliver()
        client.drop(task("second"))
        made.advance(100)
        mount.deliver()
        made.advance(30)
        assert ids(made) == ["first", "second"], times
        nothing_is_left(made)


def test_what_adds_blanks_to_its_drop_has_dropped_one_task() -> None:
    made = cluster(remote=False)
    client = Client(made)
    client.drop(task("first"))
    made.fs.writers.add(made.fs.stat("pending/job.json").inode)
    made.advance(15)
    assert ids(made) == ["first"]
    assert client.path is not None
    assert client.path.startswith("admitting/")
    made.fs.append(client.path, b"\n")
    made.fs.writers.clear()
    made.advance(3)
    assert ids(made) == ["first"]
    nothing_is_left(made)


def test_what_a_program_writes_later_into_the_file_that_it_has_open_is_judged() -> None:
    made = cluster(remote=False)
    client = Client(made)
    client.drop(task("first"))
    made.fs.writers.add(made.fs.stat("pending/job.json").inode)
    made.advance(15)
    client.drop(task("second"))
    made.advance(15)
    assert ids(made) == ["first"]
    made.fs.writers.clear()
    made.advance(3)
    assert ids(made) == ["first", "second"]
    nothing_is_left(made)


def test_an_id_that_is_taken_is_refused_under_a_name_that_is_used_again() -> None:
    made = cluster()
    client = Client(made)
    client.drop(task("first"))
    made.advance(2)
    client.drop(task("first", priority=3))
    made.advance(2)
    assert ids(made) == ["first"]
    (reason,) = [data for path, data in made.fs.files("rejected").items() if path.endswith(".reason.json")]
    assert "is taken by a task with other content" in json.loads(reason)["problem"]


@pytest.mark.parametrize("kind", ["symlink", "fifo", "dir"])
def test_what_takes_the_place_of_an_original_is_judged_as_a_drop(kind: str) -> None:
    made = cluster()
    made.submit("job.json", task("first"))
    mount = made.nodes["m1"].fs

    def swap() -> None:
        (path,) = [path for path in made.fs.files("admitting") if path.endswith(".original")]
        made.fs.unlink(path)
        {"symlink": made.fs.make_symlink, "fifo": made.fs.make_fifo, "dir": made.fs.mkdir}[kind](path)

    mount.hang("read", "admitting/", swap)
    made.advance(30)
    assert ids(made) == ["first"]
    assert made.nodes["m1"].master.leading
    assert made.troubles == []
    nothing_is_left(made)


def test_an_original_that_is_not_found_for_a_moment_does_not_run_twice() -> None:
    made = cluster()
    made.nodes["m1"].fs.fail("read", "admitting/", errno.ENOENT, times=2)  # also after a listing has shown it
    made.submit("job.json", json.dumps({"command": ["work"]}))
    made.advance(30)
    assert len(ids(made)) == 1
    assert made.troubles == []
    nothing_is_left(made)


@pytest.mark.parametrize("remote", [True, False])
def test_an_original_whose_removal_seemed_to_fail_is_not_waited_for(remote: bool) -> None:
    made = cluster(remote=remote)
    made.nodes["m1"].fs.fail("unlink", "admitting/", errno.EIO, "done")
    made.submit("job.json", task("a"))
    made.advance(10)
    nothing_is_left(made)
    desk = made.nodes["m1"].master.desk
    assert desk is not None
    assert desk.door.open_drops() == 0
