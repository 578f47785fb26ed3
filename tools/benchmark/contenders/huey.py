"""huey on files (FileHuey): its storage alone (queue), its consumer with process workers and results (call).

Touches: its folder, processes of huey's own consumer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from tools.benchmark import draining, ledger
from tools.benchmark.draining import Pace
from tools.benchmark.order import Order, Outcome, serve

BODY = "x" * 200
PACE = Pace(start_s=1.0, life_s=(1.0, 1.5), quiet_s=4.0)


def run(order: Order) -> Outcome:
    """As ordered."""
    os.environ["HUEY_FOLDER"] = f"{order.folder}/huey"
    os.makedirs(os.environ["HUEY_FOLDER"])
    return _queue(order) if order.tier == "queue" else _call(order)


def _queue(order: Order) -> Outcome:
    from huey.storage import FileStorage  # type: ignore[import-not-found, import-untyped, unused-ignore]

    folder, path = order.ledger, os.environ["HUEY_FOLDER"]
    storage = FileStorage("queue", path)
    filled = draining.fill(
        order, lambda number: storage.enqueue(json.dumps({"number": number, "body": BODY}).encode())
    )

    def consume(_: int) -> None:
        mine = FileStorage("queue", path)
        while True:
            data = mine.dequeue()
            if data is not None:
                ledger.note(folder, json.loads(data)["number"])

    return draining.consumed(order, consume, filled)


def _call(order: Order) -> Outcome:
    from tools.benchmark.contenders import huey_app

    folder = order.ledger

    def produce(number: int) -> None:
        if order.nap_s:
            huey_app.nap(folder, number, order.nap_s)
        else:
            huey_app.noop(folder, number)

    return draining.served(order, produce, lambda: _consumer(order), PACE)


def _consumer(order: Order) -> subprocess.Popen[bytes]:
    """One consumer with a process for each worker; polls as often as it can be told to."""
    command = [sys.executable, "-P", "-m", "huey.bin.huey_consumer", "tools.benchmark.contenders.huey_app.huey"]
    command += ["-w", str(order.workers), "-k", "process", "-d", "0.001", "-m", "0.01", "-q"]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


if __name__ == "__main__":
    serve(run)
