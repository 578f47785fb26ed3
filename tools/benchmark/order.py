"""What a contender is told to do, and what it answers: one JSON object each way.

Every contender is a module that is run as a process of its own (`python -m tools.benchmark.contenders.NAME ORDER`),
in the environment that it needs, and prints its outcome as the last line. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Order:
    """What to do in an empty folder. bound_s: a drain is cut off after so many seconds, and its rate still counts.

    tier: queue (no execution), call (a Python callable in a warm process) or process (`/bin/true`).
    mode: drain (a backlog stands, then it is drained), live (a producer works meanwhile) or kill (workers are killed
    with -9 meanwhile). fsync: whether what is written shall survive a power cut. slots: tasks at once per worker.
    chunk: calls per task, each of which counts as one of `tasks`.
    """

    folder: str
    tier: str = "call"
    mode: str = "drain"
    tasks: int = 1000
    workers: int = 2
    bound_s: float = 60.0
    fsync: bool = False
    slots: int | None = None
    nap_s: float = 0.0
    chunk: int = 1

    @property
    def ledger(self) -> str:
        """The folder of the ledger, made if need be."""
        path = os.path.join(self.folder, "ledger")
        os.makedirs(path, exist_ok=True)
        return path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. rate: tasks a second, of `done` tasks in `seconds`; fill: tasks a second while filling.

    lost: tasks that never ran or never ended; doubled: committed twice, or where nothing is committed, run twice.
    more: further figures by name. missing: why it could not be done at all; then nothing else counts.
    """

    rate: float = 0.0
    done: int = 0
    seconds: float = 0.0
    fill: float = 0.0
    lost: int = 0
    doubled: int = 0
    missing: str = ""
    more: Mapping[str, float] = field(default_factory=dict)


def serve(carry_out: Callable[[Order], Outcome]) -> None:
    """The main program of a contender."""
    # Whoever ends us early wants what we started to end, too: each contender sees to that on its way out.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    order = Order(**json.loads(sys.argv[1]))
    if not order.fsync:
        # Some peers call fsync without being asked to; where nobody is to wait for the disk, they need not either.
        os.fsync = lambda fd: None
    outcome = carry_out(order)
    print(json.dumps(asdict(outcome)), flush=True)


def parse(text: str) -> Outcome:
    """The outcome in the last line of what a contender printed. Errors: ValueError."""
    lines = text.strip().splitlines()
    if not lines:
        raise ValueError("it printed nothing")
    found: dict[str, Any] = json.loads(lines[-1])
    return Outcome(**found)
