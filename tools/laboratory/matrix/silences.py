"""Silences of the share for everybody: the server is away, no laptop reaches it, nothing can be written to it, or
nobody may enter the spool.

Law: long tasks run on every laptop, under the settings that a user has. Nobody could take a task over, so each is to
end as its first attempt, and none is to move once its lease is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tools.laboratory.guests import wait_until
from tools.laboratory.matrix.outages import SLACK_S, lease
from tools.laboratory.matrix.pool import SLOTS, Pool
from tools.laboratory.matrix.told import Told, Unproven
from tools.laboratory.matrix.workload import STEADY
from tools.laboratory.protocols import SHARE

LEASE_S = 12.5  # by default
SETTLED_S = 8  # then the disk has what was claimed: a server that forgets is another cell's matter
EXPORTS = "no_root_squash,sync,fsid=0,insecure,no_subtree_check 10.98.0.0/24:/srv/disk/share"


def server_away(seconds: float) -> Callable[[Pool], Told]:
    """The server loses its power, and comes back after so long."""

    def inflict(pool: Pool) -> Told:
        began = _begin(pool)
        pool.undone = True
        pool.lab.kill("server")
        told = _silent(pool, began, seconds)
        pool.lab.boot("server")
        return told

    return inflict


def laptops_cut_off(seconds: float) -> Callable[[Pool], Told]:
    """No laptop reaches the server for so long, as when the Wi-Fi is gone."""

    def inflict(pool: Pool) -> Told:
        began = _begin(pool)
        for laptop in pool.lab.laptops:
            pool.lab.network.cut(laptop)
        told = _silent(pool, began, seconds)
        for laptop in pool.lab.laptops:
            pool.lab.network.heal(laptop)
        return told

    return inflict


def share_read_only(seconds: float) -> Callable[[Pool], Told]:
    """The NFS server lets nobody write for so long."""

    def inflict(pool: Pool) -> Told:
        began = _begin(pool)
        _let_write(pool, False)
        try:
            wait_until("a laptop cannot write", lambda: _refused(pool), 8, every_s=0.5)
            return _silent(pool, began, seconds)
        finally:
            _let_write(pool, True)

    return inflict


def share_denied(seconds: float) -> Callable[[Pool], Told]:
    """Nobody may enter the spool for so long, and every kernel has heard of it; then the leader's alone is told that
    all is well, so that it waits for beats at once. The others have to find out by themselves.
    """

    def inflict(pool: Pool) -> Told:
        _begin(pool)
        leader = lease(pool)[1]
        mode = pool.on_disk("stat -c %a .").strip()
        pool.lab.on("server").shell(f"chmod 000 {pool.disk}")
        try:
            if any(map(pool.may_list, pool.lab.laptops)):
                raise Unproven("a laptop could list a spool of mode 000")
            time.sleep(seconds)
        finally:
            pool.lab.on("server").shell(f"chmod {mode} {pool.disk}")
        if not pool.may_list(leader):
            raise Unproven(f"{leader} could not list the spool though its mode was back")
        return Told(1, f"{STEADY} tasks; {leader} leads")

    return inflict


def _refused(pool: Pool) -> bool:
    probe = pool.lab.on("laptop2").run("dd", "if=/dev/zero", f"of={SHARE}/probe", "count=1", check=False, timeout=30)
    return "Read-only file system" in probe.err


def _let_write(pool: Pool, may: bool) -> None:
    pool.lab.on("server").shell(f"exportfs -i -o {'rw' if may else 'ro'},{EXPORTS}; exportfs -f")


def _begin(pool: Pool) -> float:
    """Wait until every slot of every laptop has a task, and all of that is settled; when."""

    def all_run() -> bool:
        return all(len(pool.running_on(laptop)) >= SLOTS for laptop in pool.lab.laptops)

    wait_until("every slot has a task", all_run, 90, every_s=0.5)
    time.sleep(SETTLED_S)
    return time.monotonic()


def _silent(pool: Pool, began: float, seconds: float) -> Told:
    """Wait until the silence is over; meanwhile no task may move once its lease is over. Errors: Unproven."""
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    last = 0.0
    for laptop in pool.lab.laptops:
        for execution in pool.trace(laptop):
            last = max(last, execution.last - began)
            if execution.last > began + LEASE_S + SLACK_S:
                raise Unproven(
                    f"{execution.id} still moved on {laptop} {execution.last - began:.1f} s into the silence, "
                    f"with a lease of {LEASE_S:g} s"
                )
    return Told(1, f"{STEADY} tasks; the last sign of one came {last:.1f} s into a silence of {seconds:g} s")
