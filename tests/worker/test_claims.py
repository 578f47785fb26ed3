"""What a member puts into a worker's claim directory under the names of tasks: it is none, and stops nobody."""

from __future__ import annotations

import errno
import random
import re

import pytest

from spoold.protocol.names import TaskName, encode_order, parse_task
from spoold.store import snapshots
from tests.support.cluster import Cluster, Node

STRANGERS = [f"4990.hofy9cc5y1-1.sh{number}.a1f0c0.json" for number in range(6)]
CONTENT = b"x"


def busy() -> tuple[Cluster, list[Node]]:
    """A leader, and a worker of four slots that runs a task."""
    made = Cluster()
    nodes = [made.master("m1"), made.worker("w1", 4)]
    made.settle()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    made.witness.twins_allowed = made.witness.losses_allowed = True  # it takes the strangers' files for tasks
    return made, nodes


def plant(made: Cluster, nodes: list[Node], *, kind: str = "closed") -> None:
    """A member makes them; closed: directories with mode 700 and a file in each."""
    for name in STRANGERS:
        path = f"claimed/w1/{name}"
        if kind == "symlink":
            made.fs.make_symlink(path, "elsewhere")
        elif kind == "pipe":
            made.fs.make_fifo(path)
        else:
            made.fs.mkdir(path)
            made.fs.write(f"{path}/x", CONTENT, durable=False)
        if kind == "closed":
            close(made, path, nodes)


def close(made: Cluster, path: str, nodes: list[Node]) -> None:
    """Another user's, with mode 700; a rename where it is takes that along."""
    made.fs.shut.add(made.fs.stat(path).inode)
    for node in nodes:
        node.fs.closed.add(path)


def left(made: Cluster) -> list[str]:
    """What is in the worker's claim directory under a task's name."""
    return [name for name in made.fs.list("claimed/w1") if parse_task(name) is not None]


def warned(made: Cluster) -> str:
    """What the leader's newest snapshot says."""
    found = snapshots.latest(made.fs)
    assert found is not None
    return found[1].model_dump_json()


def running(made: Cluster) -> int:
    """How many tasks the leader counts on the worker."""
    found = snapshots.latest(made.fs)
    assert found is not None
    return found[1].nodes[0].running


@pytest.mark.parametrize("kind", ["closed", "open", "symlink", "pipe"])
def test_what_is_no_file_is_set_aside_and_is_no_attempt(kind: str) -> None:
    made, nodes = busy()
    plant(made, nodes, kind=kind)
    made.advance(10)
    assert made.running()["w1"] == ["a.1"]
    assert [attempt.key for attempt in made.nodes["w1"].worker.running] == ["a.1"]
    assert left(made) == [made.find("a").path.rpartition("/")[2]]
    aside = [name for name in made.fs.list("claimed/w1") if name.endswith(".aside")]
    assert len(aside) == len(STRANGERS)
    assert running(made) == 1
    notes = made.nodes["w1"].worker.notes
    assert len(notes) == 6
    assert any(name in note and f"`rm -r claimed/w1/{name}`" in note for note in notes for name in aside)
    for number in range(3):
        made.submit(f"{number}.json", f'{{"id": "t{number}", "command": ["work"]}}')
    made.advance(5)
    assert len(made.running()["w1"]) == 4
    assert made.fs.list("failed") == []


def test_what_was_set_aside_is_told_until_it_is_taken_away() -> None:
    made, nodes = busy()
    plant(made, nodes, kind="symlink")
    made.advance(10)
    for name in [name for name in made.fs.list("claimed/w1") if name.endswith(".aside")]:
        made.fs.unlink(f"claimed/w1/{name}")
    made.advance(10)
    assert made.nodes["w1"].worker.notes == ()
    assert "claim directory" not in warned(made)


def test_what_cannot_be_set_aside_is_named_and_takes_no_slot() -> None:
    made, nodes = busy()
    worker = made.nodes["w1"]
    for name in STRANGERS:
        worker.fs.fail("rename", f"claimed/w1/{name}", errno.EACCES, times=10_000)
    plant(made, nodes)
    made.advance(10)
    assert [attempt.key for attempt in worker.worker.running] == ["a.1"]
    assert f"`rm -r claimed/w1/{STRANGERS[0]}`" in "".join(worker.worker.notes)
    made.finish("a")
    worker.worker.drain(60)
    made.advance(3)
    assert made.gone["w1"] == "left", "they delay no drain"


@pytest.mark.parametrize("kind", ["closed", "open", "symlink"])
def test_a_worker_that_leaves_them_behind_leaves_no_notes(kind: str) -> None:
    made, nodes = busy()
    plant(made, nodes, kind=kind)
    made.advance(10)
    made.finish("a")
    made.nodes["w1"].worker.drain(60)
    made.advance(3)
    assert made.gone["w1"] == "left"
    assert not [name for name in made.fs.list("heartbeats") if name.startswith("w1.")]
    made.advance(40)
    if kind == "closed":
        stay = made.fs.list("claimed/w1")
        assert len(stay) == len(STRANGERS)
        assert any(f"`rm -r claimed/w1/{name}`" in warned(made) for name in stay)
        for path in [f"claimed/w1/{name}" for name in stay]:
            made.fs.unlink(f"{path}/x")
        made.advance(5)
    assert made.fs.list("claimed") == [], "empty they go, whoever owns them"
    made.advance(10)
    # They were named as tasks are, and are gone: that alone is still told.
    assert re.sub("[0-9]+ tasks vanished.*", "", warned(made)).count("claimed/w1") == 0
    assert made.troubles == []


@pytest.mark.parametrize("kind", ["closed", "open"])
def test_the_leader_that_reaps_sets_them_aside_too(kind: str) -> None:
    made, nodes = busy()
    made.crash("w1")
    plant(made, nodes, kind=kind)
    made.advance(60)
    assert made.find("a").name.attempt == 2
    assert not [name for name in made.fs.list("heartbeats") if name.startswith("w1.")], "nothing of w1 is a task"
    if kind == "open":
        assert made.fs.list("claimed") == []
        assert made.fs.list(f"rejected/{STRANGERS[0]}") == ["x"]
    else:
        assert left(made) == []
        assert all(name.endswith(".aside") for name in made.fs.list("claimed/w1"))
        assert "claimed/w1 of a dead worker cannot be removed, since claimed/w1/." in warned(made)
        assert "stands in it; its owner (or root) removes it (`rm -r claimed/w1/." in warned(made)
    events = b"".join(data for path, data in made.fs.files("events").items())
    assert events.count(b'"REAPED"') == (kind == "open")
    assert made.fs.list("failed") == []
    assert made.troubles == ["w1: crashed"]


def test_an_attempt_whose_claim_was_replaced_by_a_closed_directory_is_given_up() -> None:
    made, nodes = busy()
    token = made.find("a").path
    made.fs.rename(token, f"pending/.{token.rpartition('/')[2]}")
    made.fs.mkdir(token)
    close(made, token, nodes)
    made.advance(3)
    made.finish("a")
    made.advance(3)
    assert not made.nodes["w1"].worker.running
    assert left(made) == []
    assert made.fs.list("results") == ["a.1.w1.json"], "no other node decided it, so this is all that is known of it"


@pytest.mark.parametrize("where", ["ready/type=command,run=command", "claimed/w1"])
@pytest.mark.parametrize("seed", range(6))
def test_a_token_that_anybody_makes_for_an_attempt_with_a_record_overwrites_nothing(where: str, seed: int) -> None:
    """A member writes a file with the name of an attempt that is over, of any urgency and age; no leader looks."""
    chance = random.Random(f"forged {seed}")
    made, (_, node) = busy()
    made.finish("a", exit_code=chance.choice([0, 0, 7]))
    made.settle()
    kept = {path: data for path, data in made.fs.files().items() if path.startswith(("results/", "completed/"))}
    order = encode_order(chance.randrange(36**10), chance.randrange(9))
    token = TaskName(chance.randrange(10**4), order, chance.choice("aA"), 1, 0, 0).encode()
    assert node.runner is not None
    before = len(node.runner.started)
    made.fs.write(f"{where}/{token}", b'{"id": "a", "type": "command", "command": ["work"]}', durable=False)
    made.advance(3.0, but="m1") if where.startswith("claimed") else made.step("w1")
    made.advance(6.0)
    assert [job.key for job in node.runner.started[before:] if job.key.lower() == "a.1"] == []
    now = made.fs.files()
    assert {path: now.get(path) for path in kept} == kept
