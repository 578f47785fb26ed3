"""A silent agent lives while its processes work, and is ended when they do nothing, or for too long."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from spoold.agents.process.program import (
    BUSY_TIMES,
    BYTES_S,
    CPU_SHARE,
    REST_MAX,
    Bounds,
    Life,
    Program,
    Sample,
    Source,
    worked,
)

IDLE_S, START_S = 60.0, 30.0


def sample(at: float, cpu: float = 0.0, moved: float = 0.0, pid: int = 7) -> Sample:
    """Of one process."""
    return Sample(at, {(pid, 1.0): (cpu, moved)})


@pytest.mark.parametrize(
    ("before", "now", "works"),
    [
        (sample(0), sample(10), False),
        (sample(0), sample(10, cpu=10 * CPU_SHARE * 0.9), False),
        (sample(0), sample(10, cpu=10 * CPU_SHARE * 1.1), True),
        (sample(0), sample(10, moved=10 * BYTES_S * 0.9), False),
        (sample(0), sample(10, moved=10 * BYTES_S * 1.1), True),
        (sample(0), sample(10, pid=8), True),
        (sample(0, cpu=5.0), sample(10, cpu=1.0), False),
        (sample(0), Sample(10, {}), False),
    ],
)
def test_work_is_what_a_program_that_waits_does_not_do(before: Sample, now: Sample, works: bool) -> None:
    """G13."""
    assert worked(before, now) is works


@pytest.mark.parametrize("seed", range(40))
def test_it_is_ended_when_it_does_nothing_for_its_bound_and_never_before(seed: int) -> None:
    """G13: random times of speech, work and rest, second by second."""
    chance = random.Random(seed)
    life, cpu, last_word, last_work, spoke = Life(Bounds(START_S, IDLE_S), 0.0), 0.0, 0.0, 0.0, False
    does, until = "rest", 0.0
    for second in range(1, 3000):
        now = float(second)
        if now >= until:
            does = chance.choice(("speak", "work", "work", "rest", "rest"))
            until = now + chance.choice((1, 5, 20, 50, 80, 700))
        if does == "speak":
            life.speaks(now)
            last_word, spoke = now, True
        cpu += 1.0 if does == "work" else 0.01
        last_work = now if does == "work" else last_work
        if does != "speak" and life.wants(now):
            life.take(sample(now, cpu))
        bound = IDLE_S if spoke else START_S
        rests, silent = now - max(last_word, last_work), now - last_word
        if life.over(now):
            # A sample is not taken at once, and says of its whole time that there was work.
            assert rests > bound - 8 or silent > bound * BUSY_TIMES
            assert ("busy" in life.over(now)) == (silent > bound * BUSY_TIMES and rests <= bound)
            return
        assert rests <= bound + 8, "it hangs"
        assert silent <= bound * BUSY_TIMES, "it is busy for ever"


def test_a_short_bound_is_looked_at_more_often() -> None:
    life = Life(Bounds(1.0, 1.0), 0.0)
    assert life.wants(0.0)
    life.take(sample(0.0))
    assert (life.wants(0.1), life.wants(0.13)) == (False, True)


class Endless(Program):
    """A program that writes on."""

    def heard(self, wait_s: float) -> list[tuple[Source, str]]:
        return [("out", "more")]


def test_what_a_program_said_until_its_end_is_read_and_no_more(tmp_path: Path) -> None:
    """G12: what opencode's plugin noted last was not read, since its log is looked at twice a second."""
    log, go = tmp_path / "log", tmp_path / "go"
    line = f"while [ ! -e {go} ]; do sleep 0.02; done; echo noted > {log}"
    for kind, said in ((Program, [("log", "noted")]), (Endless, [("out", "more")] * REST_MAX)):
        made = kind(["/bin/sh", "-c", line], str(tmp_path), dict(os.environ), logs={str(log): str(tmp_path)})
        assert Program.heard(made, 0.0) == []
        go.touch()
        while made.code is None:
            time.sleep(0.02)
        made.end()
        assert made.rest() == said
        log.unlink()
        go.unlink()
