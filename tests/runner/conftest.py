"""The runner for a test, which must leave nothing behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.runner.job_runner import Runner
from tests.runner.processes import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    runner = Runner(4)
    bench = Bench(runner, tmp_path)
    yield bench
    runner.close(0)
    assert bench.marked() == []
