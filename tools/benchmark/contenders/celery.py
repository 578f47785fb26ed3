"""Celery on kombu's filesystem transport: kombu alone (queue), a prefork worker with results in files (call).

In kill mode it acknowledges late and rejects what a lost worker had, the safest that celery can be set to.
Touches: its folder, processes of celery's own worker.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from queue import Empty

from tools.benchmark import draining, ledger
from tools.benchmark.draining import Pace
from tools.benchmark.order import Order, Outcome, serve

BODY = "x" * 200
# After a message that it cannot read it connects anew; so that long it is given to come back.
PACE = Pace(start_s=4.0, life_s=(3.0, 3.5), quiet_s=12.0)


def run(order: Order) -> Outcome:
    """As ordered."""
    os.environ["CELERY_FOLDER"] = f"{order.folder}/celery"
    os.environ["CELERY_LATE"] = "1" if order.mode == "kill" else "0"
    return _queue(order) if order.tier == "queue" else _call(order)


def _queue(order: Order) -> Outcome:
    from kombu import Connection  # type: ignore[import-not-found, import-untyped, unused-ignore]

    folder, path, control = order.ledger, f"{order.folder}/messages", f"{order.folder}/control"
    os.makedirs(path)
    os.makedirs(f"{order.folder}/processed")
    options: dict[str, object] = {"data_folder_in": path, "data_folder_out": path, "control_folder": control}
    options |= {"store_processed": True, "processed_folder": f"{order.folder}/processed"}
    os.makedirs(control)

    def connect() -> Connection:
        return Connection("filesystem://", transport_options=options)

    with connect() as connection, connection.SimpleQueue("queue") as queue:
        filled = draining.fill(order, lambda number: queue.put({"number": number, "body": BODY}))

    def consume(_: int) -> None:
        with connect() as connection, connection.SimpleQueue("queue") as queue:
            while True:
                try:
                    message = queue.get(block=False)
                except Empty:
                    continue
                message.ack()
                ledger.note(folder, message.payload["number"])

    return draining.consumed(order, consume, filled)


def _call(order: Order) -> Outcome:
    from tools.benchmark.contenders import celery_app

    folder = order.ledger

    def produce(number: int) -> None:
        if order.nap_s:
            celery_app.nap.delay(folder, number, order.nap_s)
        else:
            celery_app.noop.delay(folder, number)

    return draining.served(order, produce, lambda: _worker(order), PACE)


def _worker(order: Order) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "celery", "-A", "tools.benchmark.contenders.celery_app", "worker"]
    command += ["-c", str(order.workers), "--loglevel", "ERROR", "--without-gossip", "--without-mingle"]
    command += ["--without-heartbeat", "-n", f"worker{time.time_ns()}@here"]
    quiet = subprocess.DEVNULL
    environ = {**os.environ, "C_FORCE_ROOT": "1"}
    return subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, env=environ, cwd=order.folder
    )


if __name__ == "__main__":
    serve(run)
