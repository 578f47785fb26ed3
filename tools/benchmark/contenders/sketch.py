"""The ceiling: the calls that our protocol needs for a task, and no more, made by a leader and some workers.

A task is written by its submitter; the leader reads it, checks it with pydantic and renames it from pending/ to
ready/; a worker renames it to claimed/, reads it, writes its result and renames it to completed/; in the end the
leader reads every result. Three renames, two writes, three reads; for a process also its start and its end. No lease,
no heartbeat, no retry, no look at anything else: nothing of what spoold is for. Each process uses up a listing before
it makes the next.
"""

from __future__ import annotations

import os
import signal
import time

import orjson
from pydantic import BaseModel, ConfigDict

from tools.benchmark import draining, ledger
from tools.benchmark.order import Order, Outcome, serve

FOLDERS = ("pending", "ready", "claimed", "completed", "results")


class Task(BaseModel):
    """What is admitted."""

    model_config = ConfigDict(extra="forbid")
    id: str
    python: str
    args: list[str | int]


def read(path: str) -> bytes:
    """The whole file."""
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(source, 1 << 20)
    finally:
        os.close(source)


def write(path: str, data: bytes, durable: bool) -> None:
    """A new file."""
    sink = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    os.write(sink, data)
    if durable:
        os.fsync(sink)
    os.close(sink)


def lead(tasks: int) -> None:
    """Admit everything; then, once all has ended, read every result."""
    admitted = 0
    while admitted < tasks:
        for name in os.listdir("pending"):
            Task.model_validate_json(read(f"pending/{name}"))
            os.rename(f"pending/{name}", f"ready/{name}")
            admitted += 1
    while len(ended := os.listdir("completed")) < tasks:
        time.sleep(draining.LOOK_S)
    for name in ended:
        orjson.loads(read(f"results/{name}"))


def work(number: int, durable: bool, program: str) -> None:
    """Claim, run and commit for ever. Every other worker begins at the other end, so that they seldom meet.

    program: what is started for each task; '' for nothing.
    """
    while True:
        names = os.listdir("ready")
        for name in reversed(names) if number % 2 else names:
            try:
                os.rename(f"ready/{name}", f"claimed/{name}")
            except FileNotFoundError:
                continue
            folder, task = orjson.loads(read(f"claimed/{name}"))["args"]
            if program:
                os.waitpid(os.posix_spawn(program, [program], {}), 0)
            ledger.note(folder, task)
            write(f"results/{name}", orjson.dumps({"task_id": name, "status": "success", "output": task}), durable)
            os.rename(f"claimed/{name}", f"completed/{name}")


def run(order: Order) -> Outcome:
    """Fill pending/, then let them loose; counted from then on until every result was read."""
    os.chdir(order.folder)
    for folder in FOLDERS:
        os.mkdir(folder)
    began = time.monotonic()
    for number in range(order.tasks):
        task = {"id": f"noop-{number}", "python": "tools.benchmark.workload:noop", "args": [order.ledger, number]}
        write(f"pending/noop-{number}.json", orjson.dumps(task), durable=False)
    fill = order.tasks / (time.monotonic() - began)
    signal.alarm(max(1, round(3600 + order.bound_s)))
    program = "/bin/true" if order.tier == "process" else ""
    workers = draining.fork(lambda number: work(number, order.fsync, program), order.workers)
    since = time.time_ns()
    lead(order.tasks)
    seconds = (time.time_ns() - since) / 1e9
    draining.end(workers)
    lost, doubled = ledger.lost_and_doubled((number for number, _ in ledger.read(order.ledger)), order.tasks)
    return Outcome(order.tasks / seconds, order.tasks, seconds, fill, lost, doubled)


if __name__ == "__main__":
    serve(run)
