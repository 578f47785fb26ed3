"""What others put into a leader's door under the name of a batch: it goes, or stays, and nothing waits for it."""

import errno
import json

import pytest

from spoold.client.read.explanation import explain
from spoold.client.spool.fsck_and_repair import check
from spoold.client.spool.spool_status import status
from spoold.master.listing import refresh
from spoold.master.state.leader_state import Desk
from spoold.store.store import Store, open_store
from spoold.system.host import FakeHost
from tests.support.cluster import Cluster

TASK = '{"command": ["work"]}\n'
NAMES = ["hofy000073-1.g.jsonl", "hofy000070-1.g.0-5.growing", "hofy000070-1.g.5-5.growing"]
NAMES += ["5000.hofy000070-1.g.a1f0c0.json", "hofy000070-1.g.original"]
FILES = ["hofy000073-1.g.jsonl", "hofy000070-1.g.0-36.growing"]
HELD = '{"id": "held", "command": ["work"]}\n'


def cluster() -> Cluster:
    made = Cluster("[heartbeat]\ninterval_s = 1\nmisses = 2\n")
    made.master("m1")
    made.settle()
    return made


def reader(made: Cluster) -> Store:
    return open_store(made.fs, made.clock, "cli-1", "/spool")


def door(made: Cluster) -> str:
    (name,) = made.fs.list("admitting")
    return f"admitting/{name}"


def put(made: Cluster, path: str, kind: str) -> None:
    if kind in ("directory", "another user's directory"):
        made.fs.mkdir(path)
        if kind != "directory":
            made.fs.shut.add(made.fs.stat(path).inode)
    elif kind == "symlink":
        made.fs.make_symlink(path)
    else:
        made.fs.make_fifo(path)


def warnings(made: Cluster) -> list[str]:
    return list(status(reader(made), FakeHost("desk"), made.clock, sleep=made.advance).warnings)


def verdict(made: Cluster, task_id: str) -> str:
    return explain(reader(made), FakeHost("desk"), made.clock, task_id, sleep=made.advance).verdict


def drop_all(made: Cluster) -> None:
    made.submit("b1.jsonl", TASK)
    made.submit("b2.whole.jsonl", TASK)
    made.submit("named.json", '{"id": "named", "command": ["work"]}')
    made.submit("lines.whole.jsonl", '{"id": "line", "command": ["work"]}\n')
    made.submit("0123456789.mine@unique.json", '{"id": "mine", "command": ["work"]}')


def admitted(made: Cluster) -> int:
    return len([path for path in made.fs.files() if path.startswith(("ready/", "waiting/"))])


@pytest.mark.parametrize("taken_over", [True, False])
@pytest.mark.parametrize("kind", ["directory", "another user's directory", "symlink", "fifo"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_file_goes_and_nothing_waits_for_it(name: str, kind: str, taken_over: bool) -> None:
    made = cluster()
    put(made, f"{door(made)}/{name}", kind)
    if taken_over:
        made.crash("m1")
        made.master("m2")
    made.advance(40)
    drop_all(made)
    made.advance(5)
    assert admitted(made) == 5
    assert name not in [found for one in made.fs.list("admitting") for found in made.fs.list(f"admitting/{one}")]
    if kind != "another user's directory":
        (reason,) = [path for path in made.fs.files("rejected") if path.endswith(".reason.json")]
        assert json.loads(made.fs.read(reason))["problem"].startswith("is a")
    assert made.troubles in ([], ["m1: crashed"])


@pytest.mark.parametrize("name", NAMES[:3])
def test_another_users_directory_that_nobody_may_rename_is_told_and_passed_over(name: str) -> None:
    made = cluster()
    path = f"{door(made)}/{name}"
    put(made, path, "another user's directory")
    made.nodes["m1"].fs.fail("rename", path, errno.EPERM, times=100_000)
    made.advance(40)
    drop_all(made)
    made.advance(5)
    assert admitted(made) == 5
    assert any(path in said for said in warnings(made))
    made.nodes["m1"].fs.faults.clear()
    made.fs.shut.clear()
    made.advance(70)
    assert name not in made.fs.list(door(made))


def test_a_link_that_takes_the_place_of_a_drop_is_rejected() -> None:
    made = cluster()

    def swap() -> None:
        made.fs.unlink("pending/a.whole.jsonl")
        made.fs.make_symlink("pending/a.whole.jsonl", "elsewhere")

    made.nodes["m1"].fs.hang("rename", "pending/", swap)
    made.submit("a.whole.jsonl", '{"id": "line", "command": ["work"]}\n')
    made.advance(3)
    drop_all(made)
    made.advance(5)
    assert admitted(made) == 5
    assert [name for name in made.fs.list("rejected") if not name.endswith(".reason.json")] == ["a.jsonl"]


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
@pytest.mark.parametrize("name", FILES)
def test_for_a_file_that_cannot_be_read_only_ids_wait_and_people_are_told(name: str, code: int) -> None:
    made = cluster()
    made.fs.write(f"{door(made)}/{name}", HELD.encode(), durable=False)
    made.crash("m1")
    node = made.master("m2")
    for verb in ("read", "has_writer"):
        node.fs.fail(verb, f"admitting/2.m2.1/{name}", code, times=100_000)
    made.advance(10)
    drop_all(made)
    made.advance(5)
    assert admitted(made) == 3, "all but the two that name an id which others may name"
    (told,) = [said for said in warnings(made) if name in said]
    assert "until then a drop that names an id waits for it" in told
    assert f"admitting/2.m2.1/{name}" in verdict(made, "named")
    assert verdict(made, "named").startswith("it waits for a batch: ")
    assert verdict(made, "line").startswith("it waits for a batch: ")
    assert f"admitting/2.m2.1/{name}" in verdict(made, "held")
    tries = -sum(fault.times for fault in node.fs.faults)
    made.advance(600)
    assert 5 < -sum(fault.times for fault in node.fs.faults) - tries < 40, "it is tried now and then"
    node.fs.faults.clear()
    made.advance(70)
    assert admitted(made) == 6
    assert made.state("held") == "ready"
    assert not [said for said in warnings(made) if name in said]


def test_a_file_that_no_longer_parses_goes() -> None:
    made = cluster()
    made.fs.write(f"{door(made)}/{FILES[0]}", b"no task\n", durable=False)
    made.crash("m1")
    made.master("m2")
    made.advance(10)
    drop_all(made)
    made.advance(5)
    assert admitted(made) == 5
    assert "g.jsonl" in made.fs.list("rejected")


def test_a_batch_all_of_whose_lines_are_tasks_and_that_may_not_be_removed_keeps_nobody() -> None:
    made = cluster()
    node = made.nodes["m1"]
    node.fs.fail("unlink", "admitting/1.m1.1/h", errno.EACCES, times=100_000)
    made.submit("a.whole.jsonl", TASK)
    made.advance(3)
    drop_all(made)
    made.advance(10)
    assert admitted(made) == 6
    assert any("a-" in said for said in warnings(made))
    node.fs.faults.clear()
    made.advance(70)
    assert made.fs.files("admitting") == {}
    assert admitted(made) == 6
    assert made.troubles == []


@pytest.mark.parametrize("kind", ["directory", "symlink", "fifo"])
def test_a_line_is_staged_under_a_name_that_nobody_has_planted(kind: str) -> None:
    made = cluster()
    made.submit("before.whole.jsonl", TASK)
    made.advance(5)  # when a new leader looks into its door once more, it has no batch, and removes stray lines
    for number in range(1, 8):
        put(made, f"{door(made)}/{number}.line", kind)
    made.submit("a.whole.jsonl", TASK * 3)
    made.advance(1)
    assert (admitted(made), made.troubles) == (4, [])
    made.advance(120)
    assert made.troubles == []


@pytest.mark.parametrize("kind", ["directory", "symlink", "fifo"])
def test_fsck_does_not_say_that_a_leader_finishes_what_is_no_file(kind: str) -> None:
    made = cluster()
    put(made, f"{door(made)}/{NAMES[0]}", kind)
    (found,) = [found for found in check(reader(made), sleep=lambda _: None).findings if found.law == "admitting"]
    assert (found.severity, found.paths) == ("warning", (f"{door(made)}/{NAMES[0]}",))
    assert found.problem.startswith("no drop: not a regular file but a")
    assert found.mend == "a leader rejects it, or move it"


def test_what_comes_in_late_is_seen_also_after_a_listing_that_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share that stood still while waiting/ was listed says nothing about the next listing."""
    made = Cluster("[heartbeat]\ninterval_s = 1\nmisses = 2\n", remote=True)
    made.master("m1")
    made.settle()
    relist = refresh.relist

    def stands_still(desk: Desk) -> None:
        made.pass_time(1.5)
        relist(desk)

    with monkeypatch.context() as patch:
        patch.setattr(refresh, "relist", stands_still)
        made.advance(20)
    fs, drop = made.nodes["m1"].fs, "hbv60kgwdt.named.json"
    fs.fail("rename", f"pending/{drop}", errno.EIO, "late")
    made.submit(drop, '{"id": "named", "command": ["work"]}')
    while not fs.waiting:
        made.advance(1)
    fs.hang("read", f"pending/{drop}", fs.deliver)  # it had just listed its door
    made.advance(40)
    assert admitted(made) == 1


@pytest.mark.parametrize(
    ("spent_s", "before_s", "rest_s"), [(0.0, 0.0, 30.0), (1.0, 1.5, 100.0), (180.0, 1.0, 100.0), (9.0, 0.0, 30.0)]
)
def test_a_listing_takes_a_share_of_the_time_by_the_shorter_of_two(
    spent_s: float, before_s: float, rest_s: float
) -> None:
    assert refresh.relist_in_s(spent_s, before_s) == rest_s
