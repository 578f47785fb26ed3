"""A lid that is closed without a word: the supervisors' clock goes on, and what they run is stopped when it wakes.

Method: real supervisors, whose CLOCK_BOOTTIME jumps ahead by what a file says, as it does over a suspend, while the
clock that everything else is timed by does not.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.runner.job_runner import Runner
from tests.runner.processes import Bench, eventually

# The shipped start of a supervisor comes as the argument of -c: what stands here goes before it.
PYTHON = """#!{python}
import os, sys
patch = '''
import time
def slept():
    with open("{slept}") as file:
        return float(file.read())
real = time.clock_gettime
time.clock_gettime = lambda clock: real(clock) + (slept() if clock == time.CLOCK_BOOTTIME else 0)
'''
words = sys.argv[1:]
words[words.index("-c") + 1] = patch + words[words.index("-c") + 1]
os.execv("{python}", ["{python}", *words])
"""
LEASE_S = 12.5


class Lid:
    """The machine: its runner, and how long (s) it has slept so far."""

    def __init__(self, where: Path) -> None:
        self._slept = where / "slept"
        self._slept_s = 0.0
        self.sleep(0.0)
        python = where / "python"
        python.write_text(PYTHON.format(python=sys.executable, slept=self._slept))
        python.chmod(0o755)
        self.bench = Bench(Runner(2, python=str(python)), where)

    def sleep(self, seconds: float) -> None:
        """Closed, and open again."""
        self._slept_s += seconds
        new = self._slept.with_suffix(".new")
        new.write_text(f"{self._slept_s}")
        new.rename(self._slept)

    def extend(self) -> None:
        """A worker's beat is out."""
        self.bench.runner.extend(time.clock_gettime(time.CLOCK_BOOTTIME) + self._slept_s + LEASE_S)


@pytest.fixture
def lid(tmp_path: Path) -> Iterator[Lid]:
    lid = Lid(tmp_path)
    yield lid
    lid.bench.runner.close(0)
    assert lid.bench.marked() == []


def running(lid: Lid) -> None:
    """A job runs under a lease."""
    lid.extend()
    lid.bench.runner.start(lid.bench.shell("sleep $MARK"))
    eventually(lid.bench.marked)


def test_a_sleep_longer_than_the_lease_ends_what_runs_though_its_worker_does_nothing(lid: Lid) -> None:
    running(lid)
    lid.sleep(60)
    eventually(lambda: not lid.bench.marked(), 5)
    assert lid.bench.next().kind == "fenced"


def test_a_beat_right_after_waking_does_not_revive_a_lease_that_ran_out(lid: Lid) -> None:
    running(lid)
    lid.sleep(60)
    lid.extend()
    assert lid.bench.next().kind == "fenced"


def test_a_sleep_shorter_than_the_lease_ends_nothing(lid: Lid) -> None:
    running(lid)
    for _ in range(5):
        lid.sleep(10)
        lid.extend()
        lid.bench.runner.wait(0.7)
    assert lid.bench.runner.poll() == []
    assert lid.bench.marked()
