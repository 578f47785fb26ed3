"""huey on files (FileHuey): its storage alone (queue), its consumer with process workers and results (call).

Touches: its folder, processes of huey's own consumer.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

from tools.benchmark import draining, ledger
from tools.benchmark.order import Order, Outcome, serve

BODY = "x" * 200
QUIET_S = 4.0
KILLS = 3


def run(order: Order) -> Outcome:
    """As ordered."""
    os.environ["HUEY_FOLDER"] = f"{order.folder}/huey"
    os.makedirs(os.environ["HUEY_FOLDER"])
    return _queue(order) if order.tier == "queue" else _call(order)


def _queue(order: Order) -> Outcome:
    from huey.storage import FileStorage  # type: ignore[import-not-found, import-untyped, unused-ignore]

    folder, path = order.ledger, os.environ["HUEY_FOLDER"]
    storage = FileStorage("queue", path)
    began = time.monotonic()
    for number in range(order.tasks):
        storage.enqueue(json.dumps({"number": number, "body": BODY}).encode())
    fill = order.tasks / (time.monotonic() - began)

    def consume(_: int) -> None:
        mine = FileStorage("queue", path)
        while True:
            data = mine.dequeue()
            if data is not None:
                ledger.note(folder, json.loads(data)["number"])

    consumers = draining.fork(consume, order.workers)
    draining.watch(order)
    draining.end(consumers)
    return draining.told(order, fill)


def _call(order: Order) -> Outcome:
    from tools.benchmark.contenders import huey_app

    folder = order.ledger

    def produce(number: int) -> None:
        if order.nap_s:
            huey_app.nap(folder, number, order.nap_s)
        else:
            huey_app.noop(folder, number)

    consumers = [_consumer(order)] if order.mode == "live" else []
    if consumers:
        time.sleep(1.0)
    began = time.monotonic()
    for number in range(order.tasks):
        produce(number)
    fill = order.tasks / (time.monotonic() - began)
    consumers = consumers or [_consumer(order)]
    try:
        if order.mode == "kill":
            for _ in range(KILLS):
                time.sleep(random.uniform(1.0, 1.5))
                draining.stop(consumers)
                consumers = [_consumer(order)]
        draining.watch(order, quiet_s=None if order.mode == "drain" else QUIET_S)
    finally:
        draining.stop(consumers)
    return draining.told(order, fill)


def _consumer(order: Order) -> subprocess.Popen[bytes]:
    """One consumer with a process for each worker; polls as often as it can be told to."""
    command = [sys.executable, "-P", "-m", "huey.bin.huey_consumer", "tools.benchmark.contenders.huey_app.huey"]
    command += ["-w", str(order.workers), "-k", "process", "-d", "0.001", "-m", "0.01", "-q"]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


if __name__ == "__main__":
    serve(run)
