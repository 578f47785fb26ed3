"""An operator's server starts workers on its machine, as many as a person allowed, and lets them go by a drain."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spoold.faces.mcp.local_workers import Crew
from spoold.protocol.errors import SpoolError
from tests.e2e.pool import SETTINGS, Pool, wait_for
from tests.mcp.calling import Caller, over_http, over_stdio, serving

HANDLERS = """
kill_grace_s = 0.5
[handlers.slow]
command = ["sh", "-c", 'while [ ! -e "$1" ]; do sleep 0.05; done', "sh", "{input.go}"]
"""


@pytest.fixture
def led(make_pool: Callable[..., Pool]) -> Iterator[Pool]:
    """A pool with a master and no worker."""
    pool = make_pool(SETTINGS)
    pool.path("worker.toml").write_text(HANDLERS)
    pool.spawn("master", "master", "--name", "m")
    yield pool
    print(pool.report())


@pytest.fixture(params=["stdio", "http"])
def operator(request: pytest.FixtureRequest, led: Pool) -> Iterator[Caller]:
    """An operator whose server may start three workers."""
    options = ("--role", "operator", "--spawn", "3", "--worker-config", str(led.path("worker.toml")))
    if request.param == "stdio":
        with over_stdio(led, *options) as found:
            yield found
    else:
        with serving(led, *options) as served, over_http(served) as found:
            yield found


def submit(pool: Pool, task_id: str) -> Path:
    """A task that waits for the file whose path is returned."""
    go = pool.path(f"{task_id}.go")
    given = {"go": str(go)}
    pool.drop(f"{task_id}.json", {"id": task_id, "type": "slow", "input": given})
    return go


def test_it_starts_and_drains_and_kills_nothing(operator: Caller, led: Pool) -> None:
    begun = operator.call("spawn_workers", workers=1)
    assert (begun["status"], begun["target"], begun["most"], begun["pool"]) == ("scaled", 1, 3, 1)
    assert begun["spawned"] == begun["workers"]
    go = submit(led, "long")
    led.claimed("long")
    more = operator.call("scale_workers", target=3)
    assert (len(more["spawned"]), len(more["workers"]), more["draining"]) == (2, 3, [])
    assert operator.progress[-1][2] == "2 of 2 workers reported"
    assert "more than 3. Fix: ask for at most 0" in operator.refused("spawn_workers", workers=1)
    fewer = operator.call("scale_workers", target=1)
    assert sorted(fewer["draining"]) == sorted(more["spawned"]), "those that run nothing go first"
    wait_for(lambda: operator.call("scale_workers", target=1)["workers"] == begun["workers"], "two have left")
    none = operator.call("scale_workers", target=0)
    assert none["draining"] == begun["workers"]
    assert led.claim("long") is not None, "what it runs goes on"
    back = operator.call("scale_workers", target=1)
    assert (back["spawned"], back["draining"], back["workers"]) == ([], [], begun["workers"]), (
        "its drain is taken back"
    )
    operator.call("scale_workers", target=0)
    go.touch()
    assert led.finish("long")["status"] == "success"
    assert led.finish("long")["attempt"] == 1
    wait_for(lambda: operator.call("scale_workers", target=0)["workers"] == [], "all have left")


def test_workers_drain_when_their_server_is_killed(led: Pool) -> None:
    options = ("--role", "operator", "--spawn", "1", "--worker-config", str(led.path("worker.toml")))
    with serving(led, *options) as served:
        with over_http(served) as operator:
            operator.call("spawn_workers", workers=1, task_type="slow")
            go = submit(led, "last")
            led.claimed("last")
        os.kill(served.pid, signal.SIGKILL)
        wait_for(lambda: "draining" in led.cli("workers"), "its worker drains")
        assert led.claim("last") is not None
        go.touch()
        assert led.finish("last")["attempt"] == 1


def test_a_worker_that_ends_at_once_is_said(led: Pool) -> None:
    config = led.path("other.toml")
    config.write_text(HANDLERS)
    with over_stdio(led, "--role", "operator", "--spawn", "1", "--worker-config", str(config)) as operator:
        config.write_text("nonsense = 1\n")
        words = operator.refused("spawn_workers", workers=1)
        assert "1 worker of 1 ended at once, with status 2. Fix: the server's stderr says why" in words
        config.write_text(HANDLERS)
        assert operator.call("spawn_workers", workers=1)["status"] == "scaled", "the place is free again"


def test_without_a_persons_word_it_starts_none(led: Pool) -> None:
    with over_stdio(led, "--role", "operator") as operator:
        for call in ({"name": "spawn_workers", "workers": 1}, {"name": "scale_workers", "target": 0}):
            assert "--spawn N" in operator.refused(**call)  # type: ignore[arg-type]
    with over_stdio(led) as agent:
        assert "spawn_workers is for operators" in agent.refused("spawn_workers", workers=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--spawn", "2"), "--spawn: only an operator starts workers"),
        (("--role", "operator", "--spawn", "2"), "--spawn: what may its workers run? Fix: add --worker-config FILE."),
    ],
)
def test_what_cannot_be_is_said_at_the_start(led: Pool, options: tuple[str, ...], words: str) -> None:
    done = led.run("mcp", *options)
    assert (done.returncode, words in done.stderr, done.stdout) == (2, True, "")


def test_too_many_at_once_start_none() -> None:
    crew = Crew("/nowhere", most=2)
    with pytest.raises(SpoolError, match="0 workers of this server live, and with 3 more they would be more than 2"):
        crew.start(3, "", 1)
    assert crew.living() == []
