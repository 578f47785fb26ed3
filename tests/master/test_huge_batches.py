"""Goal: a .jsonl that no memory holds costs its leader a few MiB, and is judged as what it is."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spoold.master.intake import batch_validation
from spoold.master.state.leader_state import Desk
from spoold.store.initialise import initialise
from spoold.store.store import open_store
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem
from tests.support.cluster import Cluster

PIECE, LINE, BATCH = 1000, 4000, 100_000
SETTINGS = f"[drop]\nmax_bytes = {LINE}\nmax_batch_bytes = {BATCH}\n"


class Reads:
    """How many bytes the leader's reads of batches gave, each."""

    def __init__(self, made: Cluster) -> None:
        self.found: list[int] = []
        node = made.nodes["m1"].fs
        read = node.read

        def noted(path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
            data = read(path, limit, offset=offset)
            if ".jsonl" in path or path.endswith(".growing"):
                self.found.append(len(data))
            return data

        setattr(node, "read", noted)  # noqa: B010  a method of this one object


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, Reads]:
    monkeypatch.setattr(batch_validation, "PIECE", PIECE)
    made = Cluster(settings=SETTINGS, remote=True)
    made.master("m1")
    made.settle()
    return made, Reads(made)


def line(number: int, more: str = "") -> bytes:
    return json.dumps({"id": f"g{number}", "command": ["work", more]}).encode() + b"\n"


def reason(made: Cluster, drop: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(made.fs.read(f"rejected/{drop}.reason.json"))
    return said


@pytest.mark.parametrize("before", [b"", line(0)])
def test_a_hole_is_waited_for_and_then_rejected_and_never_read_whole(
    leader: tuple[Cluster, Reads], before: bytes
) -> None:
    made, reads = leader
    size = BATCH - 1
    made.fs.write("pending/hole.jsonl", before + bytes(size - len(before)), durable=False)
    made.advance(5)
    assert made.fs.list("pending") == ["hole.jsonl"], "its content may be on its way"
    made.advance(20)
    said = reason(made, "hole.jsonl")
    assert (said["size"], said["unfinished"]) == (size, True)
    assert said["file"] == f"hole.jsonl line {1 + before.count(10)}"
    assert said["problem"].endswith(f"has more than {LINE:,} bytes, which is the limit.")
    assert max(reads.found) <= PIECE + 1


def test_a_hole_that_is_filled_is_admitted(leader: tuple[Cluster, Reads]) -> None:
    made, _ = leader
    whole = b"".join(map(line, range(200)))
    made.fs.write("pending/slow.jsonl", bytes(len(whole)), durable=False)
    made.advance(5)
    made.fs.write("pending/slow.jsonl", whole, durable=False)
    made.advance(30)
    assert len(made.fs.files("ready")) == 200


def test_a_hole_that_outgrew_its_grace_is_judged_again_when_it_has_grown(leader: tuple[Cluster, Reads]) -> None:
    made, reads = leader
    made.fs.write("pending/hole.jsonl", bytes(LINE * 3), durable=False)
    made.advance(20)
    made.fs.append("rejected/hole.jsonl", bytes(LINE))
    made.advance(40)
    (hole,) = (path for path in made.fs.files("rejected") if path.endswith(".jsonl"))
    assert reason(made, hole.partition("/")[2])["size"] == LINE * 4
    assert max(reads.found) <= PIECE + 1
    whole = b"".join(map(line, range(500)))
    assert len(whole) > LINE * 4
    made.fs.write(hole, whole, durable=False)
    made.advance(60)
    assert len(made.fs.files("ready")) == 256, "as many as its lane takes"


def test_a_line_without_an_end_is_rejected_at_once(leader: tuple[Cluster, Reads]) -> None:
    made, reads = leader
    made.fs.write("pending/long.jsonl", line(0) + line(1) + b"x" * (BATCH // 2), durable=False)
    made.advance(2)
    said = reason(made, "long.jsonl")
    assert said["file"] == "long.jsonl line 3"
    assert said["size"] == BATCH // 2 + len(line(0) + line(1))
    assert "unfinished" not in said
    assert max(reads.found) <= PIECE + 1


def test_what_is_larger_than_any_batch_is_not_read(leader: tuple[Cluster, Reads]) -> None:
    made, reads = leader
    made.fs.write("pending/huge.jsonl", b"".join(map(line, range(4000))), durable=False)
    made.advance(2)
    said = reason(made, "huge.jsonl")
    assert said["problem"].endswith(f"over the limit of {BATCH:,}.")
    assert sum(reads.found) <= PIECE + 5


def test_a_batch_of_many_pieces_is_admitted_also_what_is_added_to_it(leader: tuple[Cluster, Reads]) -> None:
    made, _ = leader
    made.fs.write("pending/many.jsonl", b"".join(line(n, "x" * 3000) for n in range(20)), durable=False)
    made.advance(20)
    assert len(made.fs.files("ready")) == 20
    (path,) = made.fs.files("admitting")
    made.fs.append(path, bytes(LINE * 2))
    made.advance(60)
    assert len(made.fs.files("ready")) == 20
    assert made.fs.files("admitting"), "what was added may be on its way"
    made.advance(700)
    assert not made.fs.files("admitting")
    (drop,) = [name for name in made.fs.list("rejected") if not name.endswith(".reason.json")]
    assert "The lines before it in the file were admitted" in reason(made, drop)["problem"]


def test_a_gibibyte_that_is_one_hole_costs_a_few_mebibytes(tmp_path: Path) -> None:
    fs, clock = PosixFileSystem(tmp_path), SystemClock()
    initialise(fs, clock, "s1", str(tmp_path))
    with (tmp_path / "pending" / "hole.jsonl").open("wb") as file:
        file.truncate(1 << 30)
    desk = cast(Desk, SimpleNamespace(store=open_store(fs, clock, "m1", "spool"), breathe=lambda: None, late=False))
    tracemalloc.start()
    try:
        with pytest.raises(batch_validation.TooLarge) as found:
            batch_validation.Reading("pending/hole.jsonl", "hole.jsonl").go_on(desk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.value.size, found.value.young) == (1 << 30, True)
    assert peak < (16 + 12) << 20, "the longest line that is allowed, and three pieces"
