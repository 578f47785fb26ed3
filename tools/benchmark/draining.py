"""Watching a drain from outside, and consumers as forked processes: what several contenders need.

Law: time is counted from the ledger, first execution to last, so that the start of processes is in nobody's figure.
Standard library only. Touches: the ledger, processes.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.benchmark import ledger
from tools.benchmark.order import Order, Outcome

LOOK_S = 0.005
BEGIN_WITHIN_S = 300.0
KILLS = 3


def fork(work: Callable[[int], None], count: int) -> list[int]:
    """Processes that each do `work` with a number of their own and then end; returns their ids."""
    made = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            try:
                work(number)
            finally:
                os._exit(0)
        made.append(child)
    return made


def end(children: Sequence[int]) -> None:
    """Kill forked processes and wait until they are gone."""
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Kill processes with all of their groups, and wait."""
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def watch(order: Order, *, quiet_s: float | None = None) -> None:
    """Wait until all tasks have run, or for `bound_s` after the first, or until nothing has run for `quiet_s`.

    Errors: TimeoutError when nothing begins.
    """
    folder = order.ledger
    opened = time.monotonic()
    began: float | None = None
    seen, moved = 0, time.monotonic()
    while True:
        now, executed = time.monotonic(), ledger.count(folder)
        if executed > seen:
            seen, moved = executed, now
            began = began if began is not None else now
        if began is None and now - opened > BEGIN_WITHIN_S:
            raise TimeoutError(f"nothing ran within {BEGIN_WITHIN_S:g} s")
        if began is not None and now - began > order.bound_s:
            return
        if quiet_s is None and executed >= order.tasks:
            return
        if quiet_s is not None and began is not None and now - moved > quiet_s:
            return
        time.sleep(LOOK_S)


def fill(order: Order, produce: Callable[[int], object]) -> float:
    """Hand in all tasks by their numbers; tasks a second."""
    began = time.monotonic()
    for number in range(order.tasks):
        produce(number)
    return order.tasks / (time.monotonic() - began)


def consumed(order: Order, consume: Callable[[int], None], filled: float) -> Outcome:
    """What forked consumers make of a queue that was filled at this rate."""
    consumers = fork(consume, order.workers)
    watch(order)
    end(consumers)
    return told(order, filled)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long (s) a peer's workers take to be there, how long they are left before they are killed, at least and at
    most, and after how long without news nothing more is expected of them.
    """

    start_s: float
    life_s: tuple[float, float]
    quiet_s: float


def served(
    order: Order, produce: Callable[[int], object], start: Callable[[], subprocess.Popen[bytes]], pace: Pace
) -> Outcome:
    """What a peer's own workers make of calls, in the mode that was ordered. start: all of them, as one process."""
    workers = [start()] if order.mode == "live" else []
    if workers:
        time.sleep(pace.start_s)
    filled = fill(order, produce)
    workers = workers or [start()]
    try:
        if order.mode == "kill":
            for _ in range(KILLS):
                time.sleep(random.uniform(*pace.life_s))
                stop(workers)
                workers = [start()]
        watch(order, quiet_s=None if order.mode == "drain" else pace.quiet_s)
    finally:
        stop(workers)
    return told(order, filled)


def told(order: Order, filled: float = 0.0, since_ns: int | None = None, **more: float) -> Outcome:
    """What the ledger says of a drain that was complete or was cut off. since_ns: when it began."""
    records = ledger.read(order.ledger)
    numbers = [number for number, _ in records]
    begin = records[0][1] if since_ns is None else since_ns
    seconds = max(records[-1][1] - begin, 1) / 1e9
    lost, doubled = ledger.lost_and_doubled(numbers, order.tasks)
    cut_off = order.mode == "drain" and seconds >= 0.9 * order.bound_s
    done = len(records) - (1 if since_ns is None else 0)
    return Outcome(done / seconds, len(records), seconds, filled, 0 if cut_off else lost, doubled, more=more)
