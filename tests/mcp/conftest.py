"""A pool that `spool up` runs, and callers of its servers over both transports."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.pool import SETTINGS, Pool
from tests.mcp.calling import Caller, Served, over_http, over_stdio, serving

# A worker that has an agent: it answers with its prompt, or fails.
CONFIG = """
allow_command = true
kill_grace_s = 0.5

[handlers.coder]
command = ["sh", "-c", 'printf "did: %s" "$1"; test "$1" != fail', "coder", "{input.prompt}"]
"""


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A master and a worker of four slots."""
    top = tmp_path_factory.mktemp("mcp")
    with Pool(top / "spool", top / "desk", SETTINGS) as made:
        made.path("worker.toml").write_text(CONFIG)
        made.spawn("up", "up", "--slots", "4", "--name", "w", "--config", str(made.path("worker.toml")))
        made.ready("w")
        yield made


@pytest.fixture
def pool(running: Pool) -> Iterator[Pool]:
    """The pool; what its processes say is printed, which pytest shows where the test failed."""
    yield running
    print(running.report())


@pytest.fixture(scope="session")
def served(running: Pool) -> Iterator[Served]:
    """A server over HTTP in the role of an agent."""
    with serving(running) as found:
        yield found


@pytest.fixture(scope="module", params=["stdio", "http"])
def agent(request: pytest.FixtureRequest, running: Pool) -> Iterator[Caller]:
    """A caller in the role of an agent, outside of tasks."""
    if request.param == "stdio":
        with over_stdio(running) as found:
            yield found
    else:
        with over_http(request.getfixturevalue("served")) as found:
            yield found


@pytest.fixture(scope="module")
def other(running: Pool) -> Iterator[Caller]:
    """Another agent: nothing that it submits is the first one's."""
    with over_stdio(running) as found:
        yield found


@pytest.fixture
def make_pool(tmp_path: Path) -> Iterator[Callable[..., Pool]]:
    """Fresh spools, with nobody on them yet: make_pool(settings)."""
    with contextlib.ExitStack() as pools:
        numbers = itertools.count(1)

        def make(settings: str = SETTINGS) -> Pool:
            number = next(numbers)
            return pools.enter_context(Pool(tmp_path / f"spool{number}", tmp_path / f"desk{number}", settings))

        yield make


@pytest.fixture(scope="module")
def attacked(running: Pool) -> Iterator[Caller]:
    """One server for many attacks: it has to bear all of them."""
    with over_stdio(running) as found:
        yield found
