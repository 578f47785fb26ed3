"""What spoold costs a file server: the round trips of its clients, and how soon a task starts.

Law: every figure is a difference of counters, read for every laptop in one run, or of the guests' clocks, which are
one clock: the host's. Of NFS the kernel counts itself (/proc/self/mountstats); of SMB it counts commands, of which
several go in one request, so the requests on the laptop's cable are counted (`wire`).
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from spoold.protocol.names import batch_drop
from spoold.store.step_timing import AT_REST_S
from tools.laboratory.guests import wait_until
from tools.laboratory.lab import CHECKOUT, SPOOL_COMMAND, Lab
from tools.laboratory.protocols import EXPORT, SHARE
from tools.laboratory.wire import Wire

SPOOL = f"{SHARE}/measured"
SERVER_SPOOL = f"{EXPORT}/measured"
SLOTS = 4
LEADS, LEADER = "laptop1", "leader"
_OPERATION = re.compile(r"^\s+(\w+): (\d+) ")

# Runs in a laptop: a client that submits tasks one by one, each when the one before has begun to matter to nobody.
_SUBMIT = """
import sys
from spoold.client.spool_client import SpoolClient
count, priority = int(sys.argv[2]), int(sys.argv[3])
with SpoolClient(sys.argv[1]) as spool:
    for _ in range(count):
        print(spool.submit(command=["true"], priority=priority))
"""

# Prints when each task was submitted and when its command began, on the guests' clock, in seconds.
_LATENCY = """
import sys, time
from spoold.client.spool_client import SpoolClient
with SpoolClient(sys.argv[1]) as spool:
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
    per_task: dict[int, dict[str, float]] = field(default_factory=dict)
    per_batch_task: dict[str, dict[str, float]] = field(default_factory=dict)
    batch_tasks_per_s: float = 0.0
    tasks_per_s: dict[int, float] = field(default_factory=dict)
    idle_per_s: dict[str, dict[str, float]] = field(default_factory=dict)
    delays_ms: dict[str, list[float]] = field(default_factory=dict)

    def rows(self) -> list[tuple[str, str, str]]:
        """What was measured, the figure, and what it is made of."""
        found = []
        for role, spent in self.idle_per_s.items():
            found.append((f"idle {role}", f"{sum(spent.values()):.1f} round trips a second", _told(spent)))
        for role, spent in self.per_batch_task.items():
            rate = f"at {self.batch_tasks_per_s:.1f} tasks a second: " if role == LEADER else ""
            found.append(
                (f"a task of a batch, {role}", f"{sum(spent.values()):.1f} round trips", rate + _told(spent))
            )
        for backlog, spent in self.per_task.items():
            what = f"a task over a backlog of {backlog:,}"
            rate = f"at {self.tasks_per_s[backlog]:.1f} tasks a second: "
            found.append((what, f"{sum(spent.values()):.1f} round trips", rate + _told(spent)))
        for when, delays in self.delays_ms.items():
            spread = f"of {len(delays)}, from {min(delays):.0f} to {max(delays):.0f} ms"
            found.append((f"submit to start, {when}", f"{statistics.median(delays):.0f} ms median", spread))
        return found


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


def measure(lab: Lab, *, tasks: int, backlogs: tuple[int, ...], samples: int) -> Figures:
    """All figures of a lab that is up. Errors: Failed, TimeoutError, RuntimeError when requests were not seen."""
    measuring = Measuring(lab)
    try:
        measuring.start()
        measuring.idle(30)
        if samples:
            measuring.delays("from idle", samples, 11.0)
            measuring.delays("within seconds of other work", samples, 0.5)
        measuring.batch(tasks)
        for backlog in backlogs:
            measuring.per_task(tasks, backlog)
    finally:
        measuring.close()
    return measuring.figures


class Measuring:
    """laptop1 leads, laptop2 and laptop3 work, laptop3 submits too. The server's own disk tells what to wait for."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.figures = Figures(lab.protocol.name)
        smb = lab.protocol.fstype == "cifs"
        self._wires = {name: Wire(lab.network.tapped(name)) for name in lab.laptops if smb}

    def close(self) -> None:
        """Count no longer."""
        for wire in self._wires.values():
            wire.close()

    def start(self) -> None:
        """A spool with default settings, and its nodes."""
        first = self.lab.on(LEADS)
        first.run(SPOOL_COMMAND, "init", SPOOL)
        first.start(SPOOL_COMMAND, "--spool", SPOOL, "master", log="/run/master.log")
        for name in self.lab.laptops[1:]:
            words = ("worker", "--name", name, "--slots", str(SLOTS), "--allow-command")
            self.lab.on(name).start(SPOOL_COMMAND, "--spool", SPOOL, *words, log="/run/worker.log")
        nodes = len(self.lab.laptops) - 1
        wait_until("the workers are there", lambda: self._files("claimed", "-mindepth 1 -type d") == nodes, 90)

    def idle(self, seconds: float) -> None:
        """What nodes ask for that have nothing to do, once they rest: on SMB they look less often after a minute."""
        time.sleep(AT_REST_S + 15 if self._wires else 20)
        before = {name: self._count(name) for name in self.lab.laptops}
        began = time.monotonic()
        time.sleep(seconds)
        for name in self.lab.laptops:
            role = LEADER if name == LEADS else f"worker on {name}"
            passed = time.monotonic() - began
            spent = self._count(name) - before[name]
            self.figures.idle_per_s[role] = {what: count / passed for what, count in spent.most_common()}

    def delays(self, when: str, samples: int, pause_s: float) -> None:
        """From submission to the start of the command, with a pause before each."""
        self._script(_LATENCY, 1, pause_s)
        lines = self._script(_LATENCY, samples, pause_s, timeout=samples * (pause_s + 20)).splitlines()
        pairs = [tuple(map(float, line.split())) for line in lines]
        self.figures.delays_ms[when] = [1000 * (began - at) for at, began in pairs]

    def batch(self, tasks: int) -> None:
        """One batch of so many tasks, dropped by a copy and a rename: what each costs the leader, and all workers."""
        here = self.lab.on("laptop3")
        here.put((json.dumps({"command": ["true"]}) + "\n").encode() * tasks, "/run/batch")
        time.sleep(10)
        before, began = {name: self._count(name) for name in self.lab.laptops}, time.monotonic()
        self._drop("/run/batch", 1)
        self._drained("pending,admitting,waiting,ready,claimed,returned")
        self.figures.batch_tasks_per_s = tasks / (time.monotonic() - began)
        spent = {name: self._count(name) - before[name] for name in self.lab.laptops}
        roles = {LEADER: spent.pop(LEADS), "all workers": sum(spent.values(), Counter[str]())}
        for role, asked in roles.items():
            self.figures.per_batch_task[role] = {what: count / tasks for what, count in asked.most_common()}

    def per_task(self, tasks: int, backlog: int) -> None:
        """`tasks` urgent tasks over a backlog that is never touched: what one costs from submission to commit."""
        later = {"command": ["true"], "priority": -100, "not_before": "2099-01-01T00:00:00Z"}
        here = self.lab.on("laptop3")
        here.put((json.dumps(later) + "\n").encode() * backlog, "/run/backlog")
        self._drop("/run/backlog", backlog)
        wait_until("the backlog waits", lambda: self._files("waiting", "-type f") >= backlog, 300, 1)
        self._script(_SUBMIT, 40, 5)
        self._drained()
        before, began = sum((self._count(name) for name in self.lab.laptops), Counter[str]()), time.monotonic()
        self._script(_SUBMIT, tasks, 5, timeout=300)
        self._drained()
        self.figures.tasks_per_s[backlog] = tasks / (time.monotonic() - began)
        spent = sum((self._count(name) for name in self.lab.laptops), Counter[str]()) - before
        self.figures.per_task[backlog] = {what: count / tasks for what, count in spent.most_common()}

    def _drop(self, file: str, number: int) -> None:
        """As `spool submit` does: the batch of anybody else would be watched for ten minutes more."""
        there = f"{SPOOL}/pending/{batch_drop(number, 'measured')}"
        self.lab.on("laptop3").shell(f"cp {file} {there}.part && mv {there}.part {there}")

    def _drained(self, rooms: str = "pending,admitting,ready,claimed,returned") -> None:
        def drained() -> bool:
            return self._files(f"{{{rooms}}}", "-type f") == 0

        wait_until("all tasks have ended", drained, 600, 0.5)

    def _files(self, where: str, what: str) -> int:
        return int(self.lab.on("server").shell(f"find {SERVER_SPOOL}/{where} {what} | wc -l"))

    def _count(self, name: str) -> Counter[str]:
        if name in self._wires:
            return self._wires[name].count()
        return operations(self.lab.on(name).run("cat", "/proc/self/mountstats").out)

    def _script(self, script: str, *arguments: object, timeout: float = 120) -> str:
        words = (sys.executable, "-c", script, SPOOL, *map(str, arguments))
        return self.lab.on("laptop3").run(*words, env={"PYTHONPATH": str(CHECKOUT)}, timeout=timeout).out


def _told(spent: dict[str, float]) -> str:
    return ", ".join(f"{what} {count:.2f}" for what, count in spent.items() if count >= 0.05)
