"""Pools for tests: one with a master and two workers that tests share, and fresh ones for those that break things."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.pool import SETTINGS, Pool

MakePool = Callable[..., Pool]

CALLABLES = '''
"""What the workers may import."""
import os


def double(number):
    return 2 * number


def fail(text):
    raise ValueError(text)


def whoami():
    return os.getpid()
'''

CONFIG = """
kill_grace_s = 0.5
labels = ["docker"]
max_memory_mb = 400

[python]
allow = ["callables"]
path = [{path}]

[handlers.code_review]
command = ["sh", "-c", 'cat; printf "%s reviewed" "$1"', "reviewer", "{{input.language}}"]

[handlers.answer]
command = ["sh", "-c", 'echo words; echo "{{\\"answer\\": $1}}" > "$SPOOL_RESULT_FILE"', "sh", "{{input.number}}"]
"""


@pytest.fixture(scope="session")
def shared_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A master and two workers of four slots, for tests that leave them as they are."""
    top = tmp_path_factory.mktemp("shared")
    limits = "\n[types.narrow]\nmax_concurrent = 1\n"
    with Pool(top / "spool", top / "desk", SETTINGS + limits) as pool:
        pool.path("callables.py").write_text(CALLABLES)
        pool.path("worker.toml").write_text(CONFIG.format(path=f'"{pool.desk}"'))
        pool.master()
        for name in ("left", "right"):
            pool.worker(name, "--config", str(pool.path("worker.toml")), slots=4)
        pool.ready("left", "right")
        yield pool


@pytest.fixture
def shared(shared_pool: Pool) -> Iterator[Pool]:
    """The shared pool; what its processes say is printed, which pytest shows where the test failed."""
    yield shared_pool
    print(shared_pool.report())


@pytest.fixture
def make_pool(tmp_path: Path) -> Iterator[MakePool]:
    """Fresh spools, with nobody on them yet: make_pool(settings, name=..., claim=...)."""
    pools: list[Pool] = []

    def make(settings: str = SETTINGS, name: str = "spool", claim: str = "rename") -> Pool:
        pools.append(Pool(tmp_path / name, tmp_path / f"desk{len(pools)}", settings, claim))
        return pools[-1]

    yield make
    for pool in pools:
        print(pool.report())
    for pool in pools:
        pool.close()


@pytest.fixture
def pool(make_pool: MakePool) -> Pool:
    """A fresh spool, with nobody on it yet."""
    return make_pool()
