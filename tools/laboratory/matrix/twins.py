"""Two laptops of one identity: the fourth is a clone of the third, as from one disk image; or both were resumed from
one image of memory, and their nodes were started after that, as the manual says.

Each has a worker and, but for laptop1, a master. The first leader runs on a clone, then on a laptop that is none.

Law: machines of one identity all live, so each task is to end as its first attempt, and no node is ever reaped. Each
leader names the nodes of both clones in `spool status`, with the fix, in time. `spool doctor --with 2` on both, while
their nodes run, names them with the fix, too, and ends in time.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

from tools.laboratory.channel import Done
from tools.laboratory.guests import wait_until
from tools.laboratory.lab import BOOT_ID
from tools.laboratory.matrix.outages import lease, next_leader, nothing_left
from tools.laboratory.matrix.pool import Pool
from tools.laboratory.matrix.told import Told, Unproven
from tools.laboratory.matrix.workload import Workload

CLONED = "laptop3"
TASKS, TASK_S = 30, 2  # of each half: one under a leader on a clone, one under a leader that is none
NAMED_S, EXAMINED_S = 30, 120
FIX = "systemd-machine-id-setup"
# Where the server takes both for one client.
ONE_CLIENT = ("nfs4.0", "nfs4.1", "nfs4.2")


def first() -> Workload:
    """What is submitted under the first leader."""
    return _half("first")


def second() -> Workload:
    """What is submitted under the leader that is no clone."""
    return _half("second")


def _half(name: str) -> Workload:
    workload = Workload()
    for number in range(TASKS):
        workload.add(f"{name}-{number:02d}", TASK_S)
    return workload


def cloned(pool: Pool) -> Told:
    """Each of both has a boot of its own."""
    return _together(pool, boots=2)


def resumed(pool: Pool) -> Told:
    """Both have one boot id, so a process of one may be looked for on the other."""
    return _together(pool, boots=1)


def _together(pool: Pool, boots: int) -> Told:
    """A clone works, and its twin leads; then the leader's node is stopped, until none of both leads."""
    pair = [CLONED, *pool.lab.clones]
    _prove_alike(pool, pair, boots)
    for clone in pool.lab.clones:
        pool.start(clone, "master")
    wait_until("all nodes of both beat", lambda: len(_nodes(pool)) == 2 * len(pair), 60, every_s=0.5)
    began = time.monotonic()
    wait_until("both clones have worked", lambda: all(pool.trace(laptop) for laptop in pair), 90, every_s=0.5)
    times = [_named(pool, began)]
    stopped = _lead_elsewhere(pool, pair)
    began = time.monotonic()
    pool.submit(second().batch)
    times.append(_named(pool, began))
    wait_until("all tasks end", lambda: nothing_left(pool), 120, every_s=0.5)
    if reaped := pool.on_disk('grep -h \'"event":"REAPED"\' events/*.jsonl || true').splitlines():
        raise Unproven(f"{len(reaped)} nodes were reaped though all lived: {reaped[0]}")
    examined = _examine(pool, pair)
    named = " and ".join(f"{seconds:.0f} s" for seconds in times)
    stops = f"{stopped} leaders on clones stopped, {lease(pool)[1]} led then"
    return Told(1, f"named after {named}, by the doctor after {examined:.0f} s; {stops}")


def _prove_alike(pool: Pool, pair: list[str], boots: int) -> None:
    """Both say that they are one machine, with so many boots. Errors: Unproven."""
    told = {pool.lab.on(laptop).shell("hostname; cat /etc/machine-id") for laptop in pair}
    seen = {pool.lab.on(laptop).shell(f"cat {BOOT_ID}") for laptop in pair}
    if len(told) > 1 or len(seen) != boots:
        raise Unproven(f"these are no clones: {told}, boots {seen}")


def _named(pool: Pool, began: float) -> float:
    """Wait until the status names all nodes of both clones with the fix; after how many seconds since `began`.

    Errors: TimeoutError.
    """

    def told() -> bool:
        warnings = pool.status("laptop1")["warnings"]
        return any(FIX in warning and all(node in warning for node in _nodes(pool)) for warning in warnings)

    within_s = began + NAMED_S - time.monotonic()
    wait_until(f"spool status names {CLONED} and its clone with the fix", told, within_s, every_s=0.5)
    return time.monotonic() - began


def _nodes(pool: Pool) -> set[str]:
    """The nodes of both clones that beat, by the server's own disk."""
    return {name.split(".")[0] for name in pool.on_disk("ls heartbeats").split() if CLONED in name}


def _lead_elsewhere(pool: Pool, pair: list[str]) -> int:
    """Stop the leading master until it ran on no clone; how many were stopped. Errors: TimeoutError, Unproven."""
    stopped = 0
    for laptop in pair:  # its first one leads, and another can only be the one of its clone
        epoch, leader = lease(pool)
        if leader != CLONED:
            break
        pool.lab.on(laptop).run("kill", str(pool.pids.pop((laptop, "master"))))
        next_leader(pool, epoch)
        stopped += 1
    if lease(pool)[1] == CLONED:
        raise Unproven("a clone still leads though the masters of both were stopped")
    return stopped


def _examine(pool: Pool, pair: list[str]) -> float:
    """Let both clones ask the doctor at once, and demand a report from each that names them with the fix; the time.

    Errors: Failed, Unproven.
    """
    began = time.monotonic()

    def ask(laptop: str) -> Done:
        words = ("doctor", "--with", str(len(pair)), "--files", "200", "--json")
        return pool.spool(laptop, *words, timeout=EXAMINED_S, check=False)

    with ThreadPoolExecutor(len(pair)) as asking:
        told = dict(zip(pair, asking.map(ask, pair), strict=True))
    for laptop, done in told.items():
        if problem := _unnamed(pool, done):
            raise Unproven(f"spool doctor on {laptop}, after {time.monotonic() - began:.0f} s: {problem}")
    return time.monotonic() - began


def _unnamed(pool: Pool, done: Done) -> str:
    """What the doctor's answer lacks; or nothing."""
    try:
        report = json.loads(done.out)
    except ValueError:
        return f"no report within {EXAMINED_S} s: {done.err.strip()[-300:]}"
    if not any(FIX in remark["mend"] and CLONED in remark["problem"] for remark in report["remarks"]):
        return f"{report['verdict']}, and the twins are not named: {report['reason']}"
    if pool.lab.protocol.name in ONE_CLIENT and report["verdict"] != "not safe":
        return f"it says {report['verdict']} of what cannot be tried: {report['reason']}"
    return "" if FIX in done.err else "the twins are not named before the trials"
