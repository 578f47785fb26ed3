"""The document is enough: a worker that knows nothing but it and its pages takes part beside the real one.

Method: the same tasks as ever, black box; one of both workers is killed on the way; everything ends as it should, in
exactly one attempt that counts, and the audit finds nothing.
"""

from __future__ import annotations

import ast
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.pool import Daemon, Pool, wait_for

WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    """A fresh spool with a master."""
    with Pool(tmp_path / "spool", tmp_path / "desk") as pool:
        pool.master()
        yield pool
        print(pool.report())


def foreign(pool: Pool, name: str, slots: int = 2) -> Daemon:
    """Start one, and wait until it is seen."""
    command = [sys.executable, "-I", str(WORKER), str(pool.root), name, str(slots)]
    daemon = Daemon(name, command, pool.desk / f"{name}.log", pool.env)
    pool.daemons.append(daemon)
    wait_for(lambda: pool.nodes(name), f"{name} beats")
    return daemon


def test_it_imports_nothing_of_spoold_and_nothing_that_is_not_pythons_own() -> None:
    tree = ast.parse(WORKER.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_alone_it_ends_every_kind_of_task_as_the_real_one_does(pool: Pool) -> None:
    foreign(pool, "stranger")
    once = pool.path("once")
    pool.submit("good", "echo out; echo '{\"n\": 5}' > $SPOOL_RESULT_FILE")
    pool.submit("bad", ["sh", "-c", "exit 3"], max_retries=1)
    pool.submit("final", ["sh", "-c", "exit 64"])
    pool.submit("slow", ["sleep", "60"], timeout=0.3, max_retries=0)
    pool.submit("second", f"[ -e '{once}' ] && exit 0; touch '{once}'; exit 1")
    pool.submit("child", ["cat"], after=["good"], stdin="given")
    pool.submit("long", ["sleep", f"60.{pool.mark}"])
    pool.claimed("long")
    pool.cli("cancel", "LONG")
    ends = {name: pool.finish(name) for name in ("good", "bad", "final", "slow", "second", "child", "long")}
    assert {name: end["status"] for name, end in ends.items()} == {
        "good": "success", "bad": "failure", "final": "failure", "slow": "timeout", "second": "success",
        "child": "success", "long": "cancelled",
    }  # fmt: skip
    assert ends["good"]["output"] == {"n": 5}
    assert ends["child"]["output"] == "given"
    assert (ends["bad"]["attempt"], ends["second"]["attempt"], ends["final"]["attempt"]) == (2, 2, 1)
    assert pool.json("status")["workers"]["alive"] == 1
    pool.fsck()


def test_beside_the_real_one_with_both_killed_on_the_way_nothing_is_lost_or_doubled(pool: Pool) -> None:
    stranger, real = foreign(pool, "stranger"), pool.worker("real")
    pool.ready("real")
    ran = pool.path("ran")
    names = [f"t{number}" for number in range(40)]
    for name in names:
        pool.submit(name, f"echo {name}.$SPOOL_ATTEMPT >> '{ran}'; sleep 0.1")
    for victim, starts in ((stranger, 8), (real, 16)):
        wait_for(lambda starts=starts: ran.exists() and len(ran.read_text().split()) >= starts, "some ran")  # type: ignore[misc]
        victim.kill()
        (foreign if victim is stranger else lambda pool, name: pool.worker(name))(pool, f"again{starts}")
    ends = [pool.finish(name, within_s=90) for name in names]
    assert {end["status"] for end in ends} == {"success"}
    workers = {end["worker_id"].rpartition("-")[0] for end in ends}
    assert workers & {"stranger", "again8"}
    assert workers & {"real", "again16"}
    started = ran.read_text().split()
    assert len(started) == len(set(started)), "no attempt runs twice"
    pool.fsck()


def test_it_leaves_nothing_behind_when_it_is_drained(pool: Pool) -> None:
    stranger = foreign(pool, "stranger")
    pool.submit("task", ["true"])
    pool.finish("task")
    pool.cli("drain", "stranger")
    assert stranger.ends() == 0
    assert not pool.nodes("stranger")
    assert not pool.files("claimed")
    pool.fsck()


def test_taken_for_dead_it_throws_away_what_it_did_and_begins_again(pool: Pool) -> None:
    stranger = foreign(pool, "stranger")
    first = pool.path("first")
    pool.submit("task", f"[ -e '{first}' ] && exit 0; touch '{first}'; sleep 30.{pool.mark}")
    node = pool.claimed("task")
    stranger.signal(signal.SIGSTOP)
    wait_for(lambda: node not in pool.listing("claimed"), "it was reaped")
    stranger.signal(signal.SIGCONT)
    wait_for(lambda: set(pool.nodes("stranger")) - {node}, "it is back under another name")
    result = pool.finish("task")
    assert (result["attempt"], result["status"]) == (2, "success")
    pool.fsck()
