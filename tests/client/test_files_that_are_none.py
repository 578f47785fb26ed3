"""Goal: `status`, `explain` and `show` name each file where tasks are that is no task, what is wrong, and the fix.

Method: seeded damage (content, name, directory) in every place where a task file may be, before a real leader on a
spool in memory that has no worker; then the same spool without a leader.
"""

from __future__ import annotations

from random import Random

import pytest

from spoold.client.read.explanation import explain
from spoold.client.read.task_info import describe
from spoold.client.spool.spool_status import status
from spoold.master.master import KNOWN_MOST, READ_MOST
from spoold.protocol.errors import NotFound
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, encode_order
from spoold.protocol.wrong_names import of_branch
from spoold.store.store import make_directory
from tests.client.cluster import Cluster

LANE = "type=review"
BROKEN = (
    b"",
    b"{broken",
    b"[]",
    b"null",
    b'"\xff"',
    b"[" * 300 + b"]" * 300,
    b'{"type":"review","tpye":1}',
    b'{"a":1e999}',
)
GOOD = b'{"id":"x","type":"review"}'
RELISTED_S = 31.0


def name_of(task_id: str, number: int, **more: object) -> str:
    order = encode_order(1_760_000_000_000_000 + number, 1)
    return TaskName(5000, order, task_id, 1, **more).encode()  # type: ignore[arg-type]


def put(cluster: Cluster, path: str, data: bytes) -> str:
    make_directory(cluster.fs, path.rpartition("/")[0])
    cluster.fs.write(path, data, durable=False)
    return path


def strew(cluster: Cluster, chance: Random) -> dict[str, str]:
    """A few files that are none; returns the path of each by the id that a person would ask for."""
    found = {}
    for number in range(5):
        task_id = f"{chance.choice(['job', 'a.b', 'X-'])}{number}"
        data = chance.choice(BROKEN)
        match chance.randrange(7):
            case 0:
                path = f"ready/{LANE}/{name_of(task_id, number)}"
            case 1:
                path = f"waiting/{LANE}/{name_of(task_id, number, conditional=chance.random() < 0.5)}"
            case 2:
                path, data = f"{chance.choice(['ready', 'waiting'])}/{LANE}/{task_id}.json", GOOD
            case 3:
                path, data = f"{chance.choice(['ready', 'waiting'])}/{task_id}.json", GOOD
            case 4:
                path, data = f"{chance.choice(['ready', 'claimed'])}/No Lane/{name_of(task_id, number)}", GOOD
            case 5:
                path, data = f"claimed/w1/5.{task_id}.json", GOOD
            case _:
                path, data = f"{chance.choice(['returned', 'completed', 'failed'])}/{task_id}.json", GOOD
        found[task_id] = put(cluster, path, data)
    return found


def settle(cluster: Cluster, master: object) -> None:
    """Time for a relisting that adopts what waits, for two that see it in ready/, and to read it after them."""
    for _ in range(4):
        cluster.clock.advance(RELISTED_S)
        cluster.steps(master, 4)  # type: ignore[arg-type]


def told(cluster: Cluster, task_id: str) -> str:
    """What `explain` and `show` say of a task; both name the same file."""
    try:
        answer = explain(cluster.store, cluster.host, cluster.clock, task_id, sleep=cluster.sleep)
    except NotFound as error:
        said = str(error)
        with pytest.raises(NotFound, match="is passed over"):
            describe(cluster.store, task_id)
        return said
    shown = describe(cluster.store, task_id)
    assert "Fix: " in shown.reason
    assert shown.path in shown.reason or answer.state == "failed"
    first = answer.reasons[0]
    return f"{answer.verdict} {first.reason} {first.change}"


@pytest.mark.parametrize("seed", range(25))
def test_each_file_that_is_none_is_named_with_its_fault_and_the_fix(seed: int) -> None:
    """Black box 5: only `spool fsck` named a task file that does not parse."""
    cluster = Cluster()
    master = cluster.master()
    found = strew(cluster, Random(seed))
    settle(cluster, master)
    warnings = "\n".join(status(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep).warnings)
    for task_id, path in found.items():
        said = told(cluster, task_id)
        if "INVALID_TASK" in said:  # the leader reads what has conditions, and ends it
            assert path in describe(cluster.store, task_id).reason
            continue
        moved = path.replace("waiting/", "ready/")
        assert path in said or moved in said
        named = next((part for part in (path, moved, path.rpartition("/")[0]) if part in warnings), None)
        assert named is not None, (path, warnings)


@pytest.mark.parametrize("seed", range(8))
def test_without_a_leader_the_wrong_names_are_told_as_well(seed: int) -> None:
    """Black box 5, neighbour: the picture that is made by listing warned of no name."""
    cluster = Cluster()
    found = strew(cluster, Random(seed))
    put(cluster, "control/cancle.x.1.json", b"{}")
    put(cluster, "settings/one.json", b"{}")
    warnings = status(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep).warnings
    told_of = "\n".join(warnings)
    odd = [path for path in found.values() if "/5000." not in path or "No Lane" in path]
    assert "control/cancle.x.1.json has the verb 'cancle': write cancel" in told_of
    assert "settings/one.json is not NUMBER.NODE.json" in told_of
    named = [path for path in odd if path in told_of or path.rpartition("/")[0] in told_of]
    assert named == odd or "with a wrong name" in told_of
    for task_id in found:
        assert told(cluster, task_id)


def test_a_file_that_no_worker_opens_is_named_until_it_is_a_task_or_gone() -> None:
    """Black box 5."""
    cluster = Cluster()
    master = cluster.master()
    wrong = put(cluster, f"ready/{LANE}/{name_of('wrong', 1)}", b"{broken")
    gone = put(cluster, f"ready/{LANE}/{name_of('gone', 2)}", b"[]")
    put(cluster, f"ready/{LANE}/{name_of('right', 3)}", b'{"id":"right","type":"review"}')

    def warnings() -> list[str]:
        cluster.steps(master, 12)
        told_of = status(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep).warnings
        return [line for line in told_of if LANE in line and "INVALID_TASK" in line]

    assert warnings() == []
    settle(cluster, master)
    first, second = sorted(warnings())
    assert first.startswith(f"{wrong}: is not JSON")
    assert second.startswith(f"{gone}: is an array")
    assert "The worker that claims it ends it as INVALID_TASK. Fix: " in first
    cluster.fs.unlink(gone)
    cluster.fs.unlink(wrong)
    assert warnings() == []
    put(cluster, wrong, b"{broken")
    settle(cluster, master)
    assert len(warnings()) == 1
    cluster.fs.write(wrong, b'{"id":"wrong","type":"review"}', durable=False)
    settle(cluster, master)
    assert warnings() == []


def test_each_standing_task_is_read_once_and_a_few_in_a_step() -> None:
    cluster = Cluster()
    master = cluster.master()
    for number in range(3 * READ_MOST):
        put(cluster, f"ready/{LANE}/{name_of(f't{number}', number)}", b'{"id":"t","type":"review"}')
    read: list[str] = []
    plain = master.store.fs.read

    def reading(path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        if path.startswith("ready/"):
            read.append(path)
        return plain(path, limit, offset=offset)

    master.store.fs.read = reading  # type: ignore[method-assign]
    for _ in range(4):
        cluster.clock.advance(RELISTED_S)
        for _ in range(4):
            before = len(read)
            cluster.steps(master, 1)
            assert len(read) - before <= READ_MOST
    assert sorted(read) == sorted(set(read))
    assert len(read) == 3 * READ_MOST


def test_however_many_wrong_files_stand_there_a_leader_knows_few_and_sees_those_mended() -> None:
    cluster = Cluster()
    master = cluster.master()
    paths = [put(cluster, f"ready/{LANE}/{name_of(f't{n}', n)}", b"{") for n in range(KNOWN_MOST + 40)]

    def wrong() -> int:
        for _ in range(2):
            cluster.clock.advance(RELISTED_S)
            cluster.steps(master, 40)
        return len(master._standing.wrong)

    assert [wrong(), wrong()] == [KNOWN_MOST, KNOWN_MOST]
    for path in paths:
        cluster.fs.write(path, b'{"id":"t","type":"review"}', durable=False)
    assert wrong() == 0


@pytest.mark.parametrize(
    ("state", "name", "wrong"),
    [
        (State.READY, "type=review", False),
        (State.READY, "x.json", True),
        (State.WAITING, "type=", True),
        (State.WAITING, ".hidden", False),
        (State.CLAIMED, "w1-aaaaa", False),
        (State.CLAIMED, "No Node", True),
    ],
)
def test_what_is_no_lane_and_no_worker_is_said(state: State, name: str, wrong: bool) -> None:
    assert (of_branch(state, name) is not None) is wrong
