"""Tasks that submit others, and wait for them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol.heartbeat import Heartbeat
from spoold.store import heartbeats
from spoold.system.posix import PosixFileSystem
from tests.e2e.pool import SETTINGS, Pool, wait_for

SPOOL = f'"{sys.executable}" -m spoold'
PARENTS = 8
LIBRARY = """
from spoold import Spool


def parent(number):
    with Spool() as spool:
        ids = [spool.submit(python="families:child", args=[number, each]) for each in range(2)]
        return [result.output for result in spool.wait(ids).values()]


def child(number, each):
    return 10 * number + each
"""


def beating(pool: Pool, name: str) -> Heartbeat:
    (node,) = pool.nodes(name)
    return heartbeats.read_all(PosixFileSystem(pool.root))[node]


def environ() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).parents[2])}


def parent(number: int) -> list[str]:
    """Submits two children, and waits for them."""
    submits = "; ".join(f"{SPOOL} submit --id c{number}-{each} -- sleep 0.2" for each in range(2))
    return ["sh", "-c", f"set -e; {submits}; {SPOOL} wait c{number}-0 c{number}-1; echo went on"]


def test_eight_parents_on_eight_slots_wait_for_two_children_each(pool: Pool) -> None:
    pool.master()
    pool.worker("only", slots=PARENTS)
    pool.ready("only")
    for number in range(PARENTS):
        pool.submit(f"p{number}", parent(number), env=environ(), batch="family")
    results = [pool.finish(f"p{number}") for number in range(PARENTS)]
    assert [result["status"] for result in results] == ["success"] * PARENTS
    assert all("went on" in result["output"] for result in results)
    assert [result["attempt"] for result in results] == [1] * PARENTS
    child = pool.json("show", "c3-1")["task"]
    assert (child["parent"], child["depth"], child["batch"]) == ("p3", 1, "family")
    assert [one["id"] for one in pool.json("tree", "p3")["children"]] == ["c3-0", "c3-1"]
    wait_for(lambda: not beating(pool, "only").running, "nothing runs any more")
    pool.fsck()


def test_callables_wait_for_their_children_too(pool: Pool) -> None:
    """N36: spoold itself, and all that it needs, is found where the worker found it."""
    pool.path("families.py").write_text(LIBRARY)
    path = [str(pool.path("families.py").parent)]
    config = f'[python]\nallow = ["families"]\npath = {json.dumps(path)}\n'
    pool.path("worker.toml").write_text(config)
    pool.master()
    pool.worker("only", "--config", str(pool.path("worker.toml")), slots=PARENTS)
    pool.ready("only")
    for number in range(PARENTS):
        task: dict[str, Any] = {"id": f"p{number}", "python": "families:parent", "args": [number]}
        pool.drop(f"p{number}.json", task)
    assert [pool.finish(f"p{number}")["output"] for number in range(PARENTS)] == [
        [10 * number, 10 * number + 1] for number in range(PARENTS)
    ]
    pool.fsck()


def test_a_worker_whose_interpreter_is_no_python_says_so_and_does_not_start(pool: Pool) -> None:
    pool.path("worker.toml").write_text('[python]\nallow = ["families"]\ninterpreter = "/bin/true"\n')
    assert pool.worker("only", "--config", str(pool.path("worker.toml"))).ends() == 2
    assert "interpreter: /bin/true is no Python. Fix: name a Python of 3.11 or newer" in pool.report()


def test_a_parent_goes_on_only_when_a_slot_is_free_and_the_beat_says_so(pool: Pool) -> None:
    pool.master()
    pool.worker("only", slots=1)
    pool.ready("only")
    gate = pool.path("gate")
    script = f"{SPOOL} submit --id child -- true; {SPOOL} wait child; echo went on >'{pool.path('went-on')}'"
    pool.submit("parent", ["sh", "-c", script], env=environ())
    pool.claimed("parent")
    pool.submit("other", ["sh", "-c", f"until [ -e '{gate}' ]; do sleep 0.05; done"])
    pool.claimed("other")
    wait_for(lambda: any(run.lent for run in beating(pool, "only").running), "the beat says that it waits")
    assert pool.finish("child")["status"] == "success"
    assert not pool.path("went-on").exists(), "the other task has its slot"
    assert "given its slot to others" in pool.cli("explain", "parent")
    gate.touch()
    assert pool.finish("parent")["status"] == "success"
    assert pool.path("went-on").exists()


def test_a_tree_is_cancelled_whole_though_its_parent_goes_on_submitting(pool: Pool) -> None:
    config = pool.path("grace.toml")
    config.write_text("kill_grace_s = 1\n")
    pool.master()
    pool.worker("only", "--config", str(config), slots=8)
    pool.ready("only")
    script = f"trap '' TERM; while true; do {SPOOL} submit --name kid -- sleep 60.{pool.mark}; done"
    pool.submit("parent", ["sh", "-c", script], env=environ())
    wait_for(lambda: len(pool.json("tree", "parent")["children"]) > 1, "there are children")
    asked = pool.json("cancel", "--tree", "parent")["cancel"]
    tree = pool.json("tree", "parent")
    assert {tree["state"], *(one["state"] for one in tree["children"])} == {"failed"}
    assert {one["id"] for one in tree["children"]} < set(asked)
    assert len(pool.json("ls")) == len(asked)


def test_a_parent_that_runs_again_finds_the_children_that_it_named(pool: Pool) -> None:
    pool.master()
    first = pool.worker("first", slots=1)
    pool.ready("first")
    gate = pool.path("gate")
    child = f"until [ -e '{gate}' ]; do sleep 0.05; done; echo ended"
    script = f'set -e; {SPOOL} submit --id kid -- sh -c "{child}"; {SPOOL} wait kid; {SPOOL} result kid'
    pool.submit("parent", ["sh", "-c", script], env=environ())
    pool.claimed("kid")
    first.kill()
    gate.touch()
    pool.worker("second", slots=1)
    result = pool.finish("parent")
    assert (result["status"], result["attempt"], result["output"]) == ("success", 2, "kid\nended\n")
    assert [one["id"] for one in pool.json("tree", "parent")["children"]] == ["kid"]
    pool.fsck()


LENT = "[limits.x]\nmax = {max}\n[types.command]\nmax_concurrent = {most}\n[classes.one]\nslots = 1\n"
LENT += "[classes.default]\nborrow = true\n"


def configure(pool: Pool, more: str) -> None:
    (pool.root / "spool.toml").write_text(SETTINGS + more)


class Meter:
    """Counts the tasks that work at once: each makes a file while it works, and none while it waits."""

    def __init__(self, pool: Pool) -> None:
        self.working, self.seen = pool.path("working"), pool.path("seen")
        self.working.mkdir()

    def works(self, seconds: float) -> str:
        """Shell: work for so long, and note how many do so."""
        return (
            f"touch '{self.working}'/$SPOOL_TASK_ID; ls '{self.working}' | wc -l >>'{self.seen}'; "
            f"sleep {seconds}; ls '{self.working}' | wc -l >>'{self.seen}'; rm '{self.working}'/$SPOOL_TASK_ID"
        )

    def most(self) -> int:
        return max(map(int, self.seen.read_text().split()))


def family(meter: Meter, name: str, deep: int) -> list[str]:
    """Works, submits two children that are families themselves, waits for them, and works again."""
    script = meter.works(0.1)
    if deep:
        kids = [f"{name}-{number}" for number in range(2)]
        submits = [shlex.join(family(meter, kid, deep - 1)) for kid in kids]
        script += "".join(
            f"; {SPOOL} submit --id {kid} -- {command}" for kid, command in zip(kids, submits, strict=True)
        )
        script += f"; {SPOOL} wait {' '.join(kids)}; {meter.works(0.1)}"
    return ["sh", "-c", f"set -e; {script}"]


@pytest.mark.parametrize(
    ("most", "parents", "deep", "fields"),
    [
        (4, PARENTS, 1, {"uses": ["x"]}),
        (1, 4, 1, {"uses": ["x"]}),
        (1, 2, 2, {"uses": ["x"]}),
        (1, 3, 1, {"class": "one"}),
        (1, 3, 1, {}),
    ],
    ids=["four of eight", "one of four", "three deep", "a class", "a type"],
)
def test_parents_that_wait_for_children_which_need_the_same_limit_all_end(
    pool: Pool, most: int, parents: int, deep: int, fields: dict[str, Any]
) -> None:
    configure(pool, LENT.format(max=most, most=99 if fields else most))
    meter = Meter(pool)
    pool.master()
    pool.worker("only", slots=PARENTS)
    pool.ready("only")
    for number in range(parents):
        pool.submit(f"p{number}", family(meter, f"p{number}", deep), env=environ(), **fields)
    results = [pool.finish(f"p{number}") for number in range(parents)]
    assert [(result["status"], result["attempt"]) for result in results] == [("success", 1)] * parents
    assert 1 <= meter.most() <= most
    assert {pool.finish(f"p0-{number}")["attempt"] for number in range(2)} == {1}
    if "uses" in fields:
        assert pool.json("show", "p0-1")["task"]["uses"] == {"x": 1}
    wait_for(lambda: not pool.listing("control"), "no loan is left")
    pool.fsck()


def test_the_leader_dies_while_parents_wait(pool: Pool) -> None:
    configure(pool, LENT.format(max=2, most=99))
    meter = Meter(pool)
    master = pool.master("first")
    pool.worker("only", slots=PARENTS)
    pool.ready("only")
    for number in range(PARENTS):
        pool.submit(f"p{number}", family(meter, f"p{number}", 1), env=environ(), uses=["x"])
    wait_for(lambda: any(run.lent for run in beating(pool, "only").running), "a parent waits")
    master.kill()
    pool.master("second")
    results = [pool.finish(f"p{number}") for number in range(PARENTS)]
    assert [(result["status"], result["attempt"]) for result in results] == [("success", 1)] * PARENTS
    assert meter.most() <= 2
    pool.fsck()
