"""dirq QueueSimple: the one peer that lists well. A queue only: no results, no retries, no heartbeats."""

from __future__ import annotations

import json

from dirq.QueueSimple import QueueSimple  # type: ignore[import-not-found, import-untyped, unused-ignore]

from tools.benchmark import draining, ledger
from tools.benchmark.order import Order, Outcome, serve

BODY = "x" * 200


def run(order: Order) -> Outcome:
    """Fill, then drain with forked consumers."""
    path, folder = f"{order.folder}/queue", order.ledger
    queue = QueueSimple(path)
    filled = draining.fill(order, lambda number: queue.add(json.dumps({"number": number, "body": BODY})))

    def consume(_: int) -> None:
        mine = QueueSimple(path)
        while True:
            for name in mine:
                if mine.lock(name):
                    number = json.loads(mine.get(name))["number"]
                    mine.remove(name)
                    ledger.note(folder, number)

    return draining.consumed(order, consume, filled)


if __name__ == "__main__":
    serve(run)
