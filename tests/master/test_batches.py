"""A batch becomes all of its tasks, each exactly once, wherever its leaders die."""

import errno
import json

import pytest

from spoold.protocol.names import parse_task
from tests.support.cluster import Cluster
from tests.support.faults import How

LINES = 6
HOWS: tuple[How, ...] = ("refused", "done", "late")
BATCH = "".join(
    f'{{"command": ["work", "{n}"]' + (f', "id": "named-{n}"' if n % 2 else "") + "}\n" for n in range(1, LINES + 1)
)


def cluster() -> Cluster:
    """A leader, its standby, and a batch that nobody has looked at."""
    made = Cluster("[heartbeat]\ninterval_s = 1\nmisses = 2\n")
    made.master("m1")
    made.step("m1")
    made.master("m2")
    made.step("m2")
    made.submit("0000000007.batch-many.whole.jsonl", BATCH)
    return made


def commands(made: Cluster) -> list[str]:
    """What the tasks in waiting/ and ready/ say, in order of their age."""
    found = {}
    for path, data in made.fs.files().items():
        name = parse_task(path.rpartition("/")[2])
        if name is not None and path.startswith(("waiting/", "ready/")):
            found[name.order] = data.decode()
    return [text for _, text in sorted(found.items())]


def assert_whole(made: Cluster) -> None:
    """Every line is one task, byte for byte and in order, and nothing is left of the batch."""
    assert commands(made) == BATCH.splitlines()
    assert made.fs.files("admitting") == {}
    assert made.fs.list("pending") == []


@pytest.mark.parametrize("late", [False, True])
def test_the_leader_dies_at_every_call(late: bool) -> None:
    """late: what it was just about to do is carried out after the next leader has finished."""
    deaths = 0
    while True:
        made = cluster()
        mount = made.nodes["m1"].fs
        mount.crash_after, mount.last_words = deaths, late
        made.settle()
        died = "m1" in made.gone
        made.advance(4)
        mount.deliver()
        made.advance(4)
        assert_whole(made)
        if not died:
            break
        deaths += 1
    assert deaths > 3 * LINES


def test_both_leaders_die_one_after_the_other() -> None:
    for first in range(10, 40, 5):
        for second in range(10, 60, 7):
            made = cluster()
            made.nodes["m1"].fs.crash_after = first
            made.settle()
            made.nodes["m2"].fs.crash_after = second
            made.advance(4)
            made.master("m3")
            made.advance(6)
            assert_whole(made)


def test_a_leader_that_only_sleeps_cannot_publish_what_it_had_prepared() -> None:
    made = cluster()
    made.during("m1", "rename", "waiting/", lambda: made.advance(5))
    assert not made.step("m1")
    assert_whole(made)
    made.advance(5)
    assert made.gone["m1"].startswith("shut out")
    assert_whole(made)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.ESTALE, errno.EACCES])
def test_a_publishing_that_fails_is_made_once(code: int) -> None:
    for how in HOWS:
        made = cluster()
        mount = made.nodes["m1"].fs
        mount.fail("rename", "waiting/", code, how, after=2)
        made.step("m1")
        made.step("m1")
        mount.deliver()
        made.settle()
        assert_whole(made)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EBUSY, errno.EIO])
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("how", HOWS)
def test_a_line_whose_fate_is_unknown_is_not_staged_again_while_its_file_cannot_be_removed(
    how: How, remote: bool, code: int
) -> None:
    made = Cluster(remote=remote)
    made.master("m1")
    made.step("m1")
    made.submit("0000000007.batch-many.whole.jsonl", BATCH)
    mount = made.nodes["m1"].fs
    mount.fail("rename", "waiting/", errno.EIO, how, after=2)
    mount.fail("unlink", "admitting/", code, times=3)
    for _ in range(3):
        made.step("m1")
    mount.deliver()
    made.settle()
    made.advance(60)
    assert_whole(made)


def test_the_order_of_a_batch_is_the_order_of_its_lines() -> None:
    made = cluster()
    made.settle()
    names = [parse_task(p.rpartition("/")[2]) for p in made.fs.files("ready")]
    orders = sorted((name.order, name.id) for name in names if name is not None)
    assert [task_id.rpartition("-")[2] for _, task_id in orders] == ["1", "2", "3", "4", "5", "6"]


def test_on_a_share_that_is_slower_than_the_lease_one_leader_expands_it_all() -> None:
    """Each write takes so long that two hundred take longer than a lease, in which a standby looks at the token."""
    made = Cluster(remote=True)
    slow = made.master("m1")
    made.master("m2")
    made.step("m1")
    write = slow.fs.write

    def late(path: str, data: bytes, *, durable: bool) -> None:
        made.pass_time(0.3)
        made.step("m2")
        write(path, data, durable=durable)

    slow.fs.write = late  # type: ignore[method-assign]
    lines = [json.dumps({"command": ["work"], "name": f"n{number}"}) for number in range(200)]
    made.submit("0000000007.batch-many.whole.jsonl", "\n".join(lines) + "\n")
    for _ in range(60):
        made.step("m1")
    assert slow.master.leading
    assert slow.master.leadership.epoch == 1
    assert len(made.fs.files("waiting")) + len(made.fs.files("ready")) == 200
    assert made.fs.files("admitting") == {}
    assert made.troubles == []


def test_a_batch_stays_until_no_power_cut_can_take_a_line_of_it_back() -> None:
    """A server that forgets what it had answered for, while its leader lives on and knows better."""
    made = Cluster("[heartbeat]\ninterval_s = 1\nmisses = 2\n", remote=True)
    made.fs.forgets = True
    made.master("m1")
    made.step("m1")
    made.submit("0000000007.batch-many.whole.jsonl", BATCH)
    until_published(made)
    assert [path for path in made.fs.files("admitting") if path.endswith(".jsonl")]
    forgotten = next(path for path in made.fs.files() if path.startswith(("waiting/", "ready/")))
    made.witness.losses_allowed = True
    made.fs.unlink(forgotten)
    made.advance(20)
    assert sorted(commands(made)) == sorted(BATCH.splitlines())
    assert made.fs.files("admitting") == {}


def test_on_a_full_share_a_batch_waits_and_what_needs_no_room_goes_on() -> None:
    made = cluster()
    mount = made.nodes["m1"].fs
    mount.fail("write", "admitting/", errno.ENOSPC, times=1000)
    made.settle()
    made.submit("0abcdefghi.a@unique.json", '{"id": "a", "command": ["work"]}')
    made.submit("b.json", '{"id": "b", "command": ["work"]}')
    made.advance(3)
    assert made.state("a") == "ready"
    desk = made.nodes["m1"].master.desk
    assert desk is not None
    assert "pending/b.json waits for room on the share: No space left on device" in desk.report.notices
    assert commands(made) == ['{"id": "a", "command": ["work"]}']
    assert made.troubles == []
    mount.faults.clear()
    made.advance(5)
    assert made.state("b") == "ready"
    assert [line for line in commands(made) if '"a"' not in line and '"b"' not in line] == BATCH.splitlines()


def until_published(made: Cluster) -> None:
    """Step the leader until the last line is a task."""
    for _ in range(100):
        if len(commands(made)) == LINES:
            return
        made.pass_time(0.5)
        made.step("m1")
    pytest.fail(f"{len(commands(made))} lines were published")


def left_half_way(drop: str) -> tuple[Cluster, list[str]]:
    """A batch that was accepted, some of whose lines are tasks, and whose leader is gone; all its lines."""
    made = Cluster()
    made.master("m1")
    lines = [f'{{"command": ["work", "{number:04}", "{"x" * 1100}"]}}\n' for number in range(1200)]
    made.submit(drop, "".join(lines))
    for _ in range(100):
        made.advance(1)
        if made.fs.files("waiting"):
            break
    made.crash("m1")
    return made, lines


@pytest.mark.parametrize("drop", ["0000000007.batch-many.whole.jsonl", "many.jsonl"])
@pytest.mark.parametrize("kept", [1, 600])
def test_a_batch_that_was_accepted_is_carried_through_under_a_lower_limit(drop: str, kept: int) -> None:
    """kept: as many lines are just as long as the limit of the next leader."""
    made, lines = left_half_way(drop)
    assert 0 < len(commands(made)) < len(lines)
    made.configure(f"[drop]\nmax_bytes = 2048\nmax_batch_bytes = {kept * len(lines[0])}\n")
    made.master("m2")
    made.advance(60)
    assert commands(made) == [line.strip() for line in lines]
    assert made.fs.list("rejected") == []


@pytest.mark.parametrize("drop", ["0000000007.batch-many.whole.jsonl", "many.jsonl"])
def test_what_is_no_task_in_a_batch_over_a_lower_limit_is_rejected_with_the_file(drop: str) -> None:
    made, lines = left_half_way(drop)
    found = len(commands(made))
    made.configure("[drop]\nmax_bytes = 1024\nmax_batch_bytes = 1024\n")
    made.master("m2")
    made.advance(60)
    assert len(commands(made)) == found
    (rejected,) = [name for name in made.fs.list("rejected") if not name.endswith(".reason.json")]
    assert made.fs.read(f"rejected/{rejected}") == "".join(lines).encode()
