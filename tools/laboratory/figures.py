"""What spoold costs a file server: the round trips that the NFS clients counted, and how soon a task starts.

Law: every figure is a difference of the kernel's own counters (/proc/self/mountstats), read on every laptop in one
run, or of the guests' clocks, which are one clock: the host's.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.laboratory.guests import wait_until
from tools.laboratory.lab import CHECKOUT, Lab
from tools.laboratory.protocols import SHARE

SPOOL = f"{SHARE}/measured"
SPOOL_COMMAND = str(Path(sys.executable).with_name("spool"))
SLOTS = 4
_OPERATION = re.compile(r"^\s+(\w+): (\d+) ")

# Runs in a laptop: a client that submits tasks one by one, each when the one before has begun to matter to nobody.
_SUBMIT = """
import sys
from spoold.client.spool import Spool
count, priority = int(sys.argv[2]), int(sys.argv[3])
with Spool(sys.argv[1]) as spool:
    for _ in range(count):
        print(spool.submit(command=["true"], priority=priority))
"""

# Prints when each task was submitted and when its command began, on the guests' clock, in seconds.
_LATENCY = """
import sys, time
from spoold.client.spool import Spool
with Spool(sys.argv[1]) as spool:
    for _ in range(int(sys.argv[2])):
        time.sleep(float(sys.argv[3]))
        at = time.time()
        task = spool.submit(command=["date", "+%s.%N"])
        spool.wait([task])
        print(at, spool.result(task).output.strip())
"""


@dataclass
class Figures:
    """One protocol: round trips per task by size of the backlog, per second of an idle node; delays in ms."""

    protocol: str
    per_task: dict[int, Counter[str]] = field(default_factory=dict)
    tasks: dict[int, int] = field(default_factory=dict)
    rate: dict[int, float] = field(default_factory=dict)
    idle: dict[str, float] = field(default_factory=dict)
    delays_ms: dict[str, list[float]] = field(default_factory=dict)


def operations(mountstats: str) -> Counter[str]:
    """Round trips by operation, summed over all NFS mounts."""
    counted: Counter[str] = Counter()
    inside = False
    for line in mountstats.splitlines():
        if line.startswith("device"):
            inside = False
        elif "per-op statistics" in line:
            inside = True
        elif inside and (found := _OPERATION.match(line)):
            counted[found[1]] += int(found[2])
    return counted


class Measuring:
    """Measures one lab whose protocol is an NFS: laptop1 leads, laptop2 and laptop3 work, laptop3 submits too."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.figures = Figures(lab.protocol.name)

    def run(self, *, tasks: int, backlogs: tuple[int, ...], idle_s: float, samples: int) -> Figures:
        """All figures. Errors: Failed, TimeoutError."""
        self._start()
        self._idle(idle_s)
        self._delays("idle", samples, 11.0)
        self._delays("active", samples, 0.5)
        for backlog in backlogs:
            self._per_task(tasks, backlog)
        return self.figures

    def _start(self) -> None:
        first = self.lab.on("laptop1")
        first.run(SPOOL_COMMAND, "init", SPOOL)
        first.start(SPOOL_COMMAND, "--spool", SPOOL, "master", log="/run/master.log")
        for name in self.lab.laptops[1:]:
            self._worker(name)
        wait_until(
            "the workers are there", lambda: self._status()["workers"]["alive"] == len(self.lab.laptops) - 1, 60
        )

    def _worker(self, name: str) -> None:
        words = ("worker", "--name", name, "--slots", str(SLOTS), "--allow-command")
        self.lab.on(name).start(SPOOL_COMMAND, "--spool", SPOOL, *words, log="/run/worker.log")

    def _status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.lab.on("laptop1").run(SPOOL_COMMAND, "--spool", SPOOL, "status", "--json").out
        )
        return found

    def _count(self, name: str) -> Counter[str]:
        return operations(self.lab.on(name).run("cat", "/proc/self/mountstats").out)

    def _count_all(self) -> Counter[str]:
        return sum((self._count(name) for name in self.lab.laptops), Counter())

    def _idle(self, idle_s: float) -> None:
        time.sleep(20)  # what follows a start, and the ten seconds after anything happened, are not idle
        before = {name: self._count(name) for name in self.lab.laptops}
        began = time.monotonic()
        time.sleep(idle_s)
        for name in self.lab.laptops:
            role = "master" if name == "laptop1" else f"worker on {name}"
            spent = self._count(name) - before[name]
            self.figures.idle[role] = spent.total() / (time.monotonic() - began)

    def _delays(self, what: str, samples: int, pause_s: float) -> None:
        self._script("laptop3", _LATENCY, 1, pause_s)
        lines = self._script("laptop3", _LATENCY, samples, pause_s, timeout=samples * (pause_s + 20)).splitlines()
        pairs = [tuple(map(float, line.split())) for line in lines]
        self.figures.delays_ms[what] = [1000 * (began - at) for at, began in pairs]

    def _per_task(self, tasks: int, backlog: int) -> None:
        """`tasks` urgent tasks over a backlog that is never touched: what one task costs from submit to commit."""
        batch = "".join(
            json.dumps({"command": ["true"], "priority": -100, "not_before": "2099-01-01T00:00:00Z"}) + "\n"
            for _ in range(backlog)
        )
        self.lab.on("laptop3").put(batch.encode(), "/run/backlog.jsonl")
        self.lab.on("laptop3").run("cp", "/run/backlog.jsonl", f"{SPOOL}/pending/{backlog}.part")
        self.lab.on("laptop3").run("mv", f"{SPOOL}/pending/{backlog}.part", f"{SPOOL}/pending/{backlog}.whole.jsonl")
        wait_until("the backlog waits", lambda: self._status()["tasks"]["waiting"] >= backlog, 300, 2)
        self._script("laptop3", _SUBMIT, 40, 5)
        self._drained()
        done, before, began = self._status()["tasks"]["completed"], self._count_all(), time.monotonic()
        self._script("laptop3", _SUBMIT, tasks, 5, timeout=300)
        self._drained()
        self.figures.rate[backlog] = tasks / (time.monotonic() - began)
        self.figures.per_task[backlog] = self._count_all() - before
        self.figures.tasks[backlog] = self._status()["tasks"]["completed"] - done

    def _drained(self) -> None:
        def drained() -> bool:
            counts: dict[str, int] = self._status()["tasks"]
            return counts["pending"] + counts["ready"] + counts["claimed"] == 0

        wait_until("all tasks have ended", drained, 300, 1)

    def _script(self, laptop: str, script: str, *arguments: object, timeout: float = 120) -> str:
        env = {"PYTHONPATH": str(CHECKOUT)}
        words = (sys.executable, "-c", script, SPOOL, *map(str, arguments))
        return self.lab.on(laptop).run(*words, env=env, timeout=timeout).out
