"""What is reserved keeps tasks away, is granted when nothing that conflicts is left, and ends by itself."""

from __future__ import annotations

import errno
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from spoold.master.state.leader_state import REFUSED_SHOWN_S
from spoold.protocol import codec
from spoold.protocol.names import parse_snapshot
from spoold.store import snapshots
from tests.master.test_locks import running, submit
from tests.support.cluster import Cluster


def led(slots: int = 4) -> Cluster:
    """A leader and a worker."""
    made = Cluster()
    made.master("m1")
    made.worker("w1", slots)
    made.step("m1")
    return made


def reserve(
    made: Cluster, name: str, write: str = "", *, target: str = "+all", ttl_s: float = 60, **more: Any
) -> None:
    """Post a reservation, as any writer may."""
    until = datetime.fromtimestamp(made.clock.wall() + ttl_s, UTC).isoformat()
    body = {"by": "ada@desk", "until": until, "write": [write] if write else [], **more}
    made.fs.write(f"control/reserve.{target}.{name}.json", json.dumps(body).encode(), durable=False)


def standing(made: Cluster) -> set[str]:
    """The requests that are left."""
    return {path.split("/")[1] for path in made.fs.files() if path.startswith("control/")}


def snapshot(made: Cluster) -> dict[str, Any]:
    """The newest snapshot."""
    names = [name for path in made.fs.files() if (name := parse_snapshot(path.removeprefix("status/"))) is not None]
    newest = max(names, key=lambda name: (name.epoch, name.seq))
    seen = codec.load(made.fs.read(f"status/{newest.encode()}"), "")
    assert isinstance(seen, dict)
    return seen


def held(made: Cluster) -> dict[str, Any]:
    """The holders in the newest snapshot, by key."""
    return {row["key"]: row for row in snapshot(made)["gates"].get("locks", {}).get("holders", [])}


def warnings(made: Cluster) -> list[str]:
    """The warnings in the newest snapshot."""
    return list(snapshot(made)["warnings"])


def told(made: Cluster, event: str) -> int:
    """How often the journals tell of this."""
    data = b"".join(content for path, content in made.fs.files().items() if path.startswith("events/"))
    return data.count(f'"event":"{event}"'.encode())


def test_nothing_that_conflicts_begins_and_it_is_granted_when_nothing_runs() -> None:
    made = led()
    submit(made, "a", "src/a")
    made.settle()
    reserve(made, "r1", "src/")
    submit(made, "b", "src/b")
    submit(made, "far", "lib")
    made.advance(2)
    assert running(made) == {"a", "far"}
    row = held(made)["+r1"]
    assert (row["granted"], row["behind"], row["by"]) == (False, "a", "ada@desk")
    made.finish("a")
    made.advance(2)
    assert held(made)["+r1"]["granted"]
    assert running(made) == {"far"}
    assert told(made, "RESERVED") == 1
    made.fs.write("control/release.r1.k1.json", b"", durable=False)
    made.settle()
    assert standing(made) == set()
    assert running(made) == {"far", "b"}


def test_a_ready_task_that_conflicts_goes_back() -> None:
    made = Cluster()
    made.master("m1")
    made.step("m1")
    submit(made, "a", "src/a")
    made.settle()
    assert made.state("a") == "ready"
    reserve(made, "r1", "src/")
    made.advance(3)
    assert made.state("a") == "waiting"
    assert held(made)["+r1"]["granted"]


def test_it_ends_by_itself_and_at_the_latest_as_the_settings_say() -> None:
    made = Cluster("[locks]\nmax_reserve_s = 30\n")
    made.master("m1")
    made.worker("w1", 4)
    reserve(made, "r1", "x", ttl_s=10)
    reserve(made, "r2", "y", ttl_s=10_000)
    made.advance(2)
    submit(made, "a", "x")
    submit(made, "b", "y")
    made.advance(4)
    assert running(made) == set()
    made.advance(8)
    assert running(made) == {"a"}
    made.advance(30)
    assert running(made) == {"a", "b"}
    assert (standing(made), told(made, "RESERVATION_ENDED")) == (set(), 2)


def test_of_two_that_conflict_the_first_by_name_is_granted_first() -> None:
    made = led()
    reserve(made, "a2", "x")
    reserve(made, "a1", "x/**", ttl_s=10)
    reserve(made, "a3", read=["x"])
    made.advance(3)
    assert {key: row["granted"] for key, row in held(made).items()} == {"+a1": True, "+a2": False, "+a3": False}
    assert held(made)["+a2"]["behind"] == "+a1"
    made.advance(12)
    assert {key: row["granted"] for key, row in held(made).items()} == {"+a2": True, "+a3": False}
    reserve(made, "a0", "x")
    made.advance(3)
    assert "reserve.+all.a0.json" not in standing(made), "it would come before one that was granted"
    assert told(made, "IGNORED") == 1


def test_one_that_a_task_makes_ends_with_its_attempt() -> None:
    made = led()
    submit(made, "t", "src/")
    made.settle()
    reserve(made, "r1", "src/a", target="t", attempt=1)
    made.advance(2)
    assert held(made)["+r1"]["granted"], "the task does not stand in its own way"
    submit(made, "b", "src/a")
    made.settle()
    made.finish("t", exit_code=1)
    made.advance(3)
    assert standing(made) == set()
    assert running(made) & {"b", "t"}


def test_one_of_an_attempt_that_is_long_over_ends_at_once() -> None:
    made = led()
    submit(made, "t", "y")
    made.settle()
    made.finish("t")
    made.settle()
    reserve(made, "r1", "x", target="t", attempt=1)
    reserve(made, "r2", "x", target="nobody", attempt=1, ttl_s=5)
    made.advance(2)
    assert standing(made) == {"reserve.nobody.r2.json"}
    made.advance(6)
    assert standing(made) == set()


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b"{", ""),
        (b"", ""),
        (b'{"write": ["x"]}', "until: "),
        (b'{"until": "2099-01-01T00:00:00Z"}', "write: "),
        (b'{"until": "2099-01-01T00:00:00Z", "write": ["../x"]}', "write"),
        (b'{"until": "tomorrow", "write": ["x"]}', "until: "),
    ],
)
def test_a_file_that_is_no_reservation_is_removed_holds_nothing_and_is_named(content: bytes, field: str) -> None:
    """Names-c: the file was gone, and only the journal of the leader said why."""
    made = led()
    made.fs.write("control/reserve.+all.r1.json", content, durable=False)
    submit(made, "a", "x")
    made.advance(3)
    assert running(made) == {"a"}
    assert (standing(made), told(made, "IGNORED")) == (set(), 1)
    (warning,) = warnings(made)
    assert warning.startswith(f"control/reserve.+all.r1.json: {field}")
    assert " It holds nothing, and was removed. Fix: " in warning
    made.advance(REFUSED_SHOWN_S + 60)
    assert warnings(made) == []


def test_of_many_files_that_are_no_reservations_a_few_are_named_and_the_rest_counted() -> None:
    made = led()
    for number in range(50):
        made.fs.write(f"control/reserve.+all.r{number}.json", b"{", durable=False)
    made.advance(10)
    assert standing(made) == set()
    assert len(warnings(made)) == 6
    assert warnings(made)[-1] == "requests that were refused, and that are not named here: 45"


def test_one_that_cannot_be_read_just_now_holds_everything() -> None:
    made = led()
    made.nodes["m1"].fs.fail("read", "control/reserve", errno.EACCES, times=6)
    reserve(made, "r1", "x")
    submit(made, "far", "lib")
    made.submit("plain.json", '{"id": "plain", "command": ["work"]}')
    made.step_all()
    made.step_all()
    assert running(made) == {"plain"}
    made.advance(8)
    assert running(made) == {"plain", "far"}


def test_a_directory_in_place_of_a_request_is_to_be_removed() -> None:
    """The advice was chmod, which helps nothing, while the directory held all locks."""
    made = led()
    for name in ("reserve.+all.r1", "pause.review.p1", "hold.a.h1"):
        made.fs.mkdir(f"control/{name}.json")
    submit(made, "far", "lib")
    made.advance(3)
    assert running(made) == set()
    found = snapshots.latest(made.fs)
    assert found is not None
    told = [warning for warning in found[1].warnings if warning.startswith("control/")]
    assert len(told) == 3
    assert all("remove it (rmdir, rm), since it can never be read" in warning for warning in told)
    made.fs.rmdir("control/reserve.+all.r1.json")
    made.advance(3)
    assert running(made) == {"far"}


def test_a_new_leader_keeps_what_is_reserved() -> None:
    made = led()
    reserve(made, "r1", "x")
    made.advance(2)
    made.crash("m1")
    made.master("m2")
    submit(made, "a", "x")
    made.advance(20)
    assert running(made) == set()
    assert held(made)["+r1"]["granted"]
    reserve(made, "r9", "x", ttl_s=5)
    made.nodes["m2"].fs.fail("read", "control/reserve.+all.r9", errno.EIO)
    made.advance(3)
    assert running(made) == set()
