"""Outages of the network and of the server, and what all faults wait for.

Law: what a laptop did while nobody could reach the share is read from its own trace, afterwards or over `control`.
"""

from __future__ import annotations

import time

from tools.laboratory.guests import wait_until
from tools.laboratory.matrix.pool import Pool
from tools.laboratory.matrix.told import Told, Unproven

# The settings of cells with a fault: short, so that a cell is; long enough for kernels that share two cores.
INTERVAL_S, MISSES = 1, 6
DEAD_S = INTERVAL_S * MISSES
LEASE_S = INTERVAL_S * (MISSES - 0.5)
SETTINGS = f"""
[heartbeat]
interval_s = {INTERVAL_S}
misses = {MISSES}

[retry]
crash_limit = 10
"""
CUT_S = 30
SLACK_S = 3.0  # from the end of the lease to the death of the last process, on a busy machine
SEEN_DEAD_S = 40
UNDER_LOAD = 8  # completed tasks, of which a third are long: then all slots are in use


def busy(pool: Pool, *laptops: str) -> list[str]:
    """Wait until commands of length run on one of them; which run on all. Errors: TimeoutError."""
    found: list[str] = []

    def running() -> list[str]:
        found[:] = [task for laptop in laptops for task in pool.running_on(laptop)]
        found[:] = [task for task in found if task.startswith(("long", "middle"))]
        return found

    wait_until(f"{' or '.join(laptops)} has commands running", running, 60)
    return found


def taken_for_dead(pool: Pool, laptop: str) -> None:
    """Wait until `spool status` on laptop1 says so of the laptop's worker. Errors: TimeoutError."""

    def dead() -> bool:
        states = [node["state"] for node in pool.status("laptop1")["nodes"] if node["host"] == laptop]
        return not states or "dead" in states

    wait_until(f"spool status calls {laptop} dead", dead, SEEN_DEAD_S, every_s=0.5)


def lease(pool: Pool) -> tuple[int, str]:
    """The epoch and the laptop of whoever leads. Errors: TimeoutError when nobody does."""
    found: list[tuple[int, str]] = []

    def led() -> bool:
        # A listing may miss the one name that is being renamed.
        for name in pool.on_disk("ls master").split():
            epoch, holder, _ = name.split(".")
            if holder.startswith("m-"):
                found.append((int(epoch), holder.split("-")[1]))
        return bool(found)

    wait_until("somebody leads", led, 60)
    return max(found)


def next_leader(pool: Pool, epoch: int) -> str:
    """Wait until somebody leads a later epoch than this; who. Errors: TimeoutError."""
    wait_until("there is a new leader", lambda: lease(pool)[0] > epoch, 60)
    return f"{lease(pool)[1]} led next"


def cut_off(pool: Pool) -> Told:
    """The cable of a laptop is pulled for 30 s while commands run there, and plugged in again."""
    began, running = _cut(pool, "laptop3")
    taken_for_dead(pool, "laptop3")
    told = _stopped(pool, ["laptop3"], began, running)
    time.sleep(max(0.0, began + CUT_S - time.monotonic()))
    pool.lab.network.heal("laptop3")
    return Told(1, f"{told}; called dead by status")


def hung_mount(pool: Pool) -> Told:
    """The share hangs on one laptop, for as long as the others need to do all its work; they say so in `status`."""
    began, running = _cut(pool, "laptop3")
    taken_for_dead(pool, "laptop3")
    told = _stopped(pool, ["laptop3"], began, running)
    wait_until("the others complete everything", lambda: nothing_left(pool), 120, every_s=1)
    pool.lab.network.heal("laptop3")
    return Told(1, f"{told}; called dead by status; the others did its work")


def server_frozen(pool: Pool) -> Told:
    """The server stops for longer than all leases: every mount hangs, and every worker stops its own commands."""
    # Not one after the other: on a busy host what runs on the first has ended when the last one has answered.
    running = busy(pool, *pool.lab.laptops)
    pool.lab.guests["server"].freeze()
    began = time.monotonic()
    told = _stopped(pool, pool.lab.laptops, began, running)
    pool.lab.guests["server"].thaw()
    return Told(1, told)


def server_killed(pool: Pool) -> Told:
    """The power of the server fails under load, and comes back."""
    wait_until("the pool has found its pace", lambda: pool.completed() >= UNDER_LOAD, 90, every_s=0.5)
    before = pool.completed()
    pool.undone = True
    pool.lab.kill("server")
    time.sleep(2)
    pool.lab.boot("server")
    return Told(1, f"with {before} tasks completed")


def _cut(pool: Pool, laptop: str) -> tuple[float, list[str]]:
    """Pull the cable when commands have just begun there: when, and which run."""
    running = busy(pool, laptop)
    pool.lab.network.cut(laptop)
    return time.monotonic(), running


def _stopped(pool: Pool, laptops: list[str], began: float, running: list[str]) -> str:
    """Wait until the lease of these laptops is over since `began`: by then no command may live. Errors: Unproven."""
    time.sleep(max(0.0, began + LEASE_S + SLACK_S + 1 - time.monotonic()))
    last = 0.0
    for laptop in laptops:
        for execution in pool.trace(laptop):
            last = max(last, execution.last - began)
            if execution.last > began + LEASE_S + SLACK_S:
                raise Unproven(
                    f"{execution.id} still ran on {laptop} {execution.last - began:.1f} s after the share was gone, "
                    f"with a lease of {LEASE_S:g} s"
                )
    return (
        f"{len(running)} commands ran; the last sign of one came {last:.1f} s into the outage (lease {LEASE_S:g} s)"
    )


def nothing_left(pool: Pool) -> bool:
    """Whether every task has ended."""
    return not int(pool.on_disk("find pending admitting waiting ready claimed returned -type f | wc -l"))
