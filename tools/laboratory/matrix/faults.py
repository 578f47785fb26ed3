"""The faults, by name: what each does to a pool in the middle of its work, and what then has to be seen.

Law: a fault proves that it took place, or the cell fails. `outages` holds those that take the network or the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from tools.laboratory.guests import HERE, wait_until
from tools.laboratory.matrix import exclusion, names, outages, silences, twins, undone, writers
from tools.laboratory.matrix.pool import FILL, LEADER, Pool
from tools.laboratory.matrix.told import Told, Unproven
from tools.laboratory.matrix.workload import Workload, steady, under_fault
from tools.laboratory.protocols import EXPORT, NFS, PASSWORD, SERVER, SHARE, SMB, USER

Inflict = Callable[[Pool], Told]
RESTART_S = 3
HELD_S = 8
ORDINARY = 1000  # a user whom modes bind


@dataclass(frozen=True, slots=True)
class Fault:
    """One line of the matrix. protocols: where it exists, all if empty.

    overlap_s: how long two attempts of one task may run at once: nobody can stop a command on a laptop that sleeps,
    and a worker has to see first that its claim was undone.
    fences: at least one attempt must have been taken from a worker; unbroken: each task must end as its first one.
    workload, settings: what the pool has to do, and its spool.toml; lasts_s: how long the fault itself takes;
    more: what the fault itself submits; user: whose the nodes are; leader: which guest leads first, also the server;
    cloned: the laptop of which a fourth one is a clone; resumed: and has its boot id.
    """

    name: str
    inflict: Inflict
    fences: bool = False
    overlap_s: float = 0.0
    protocols: tuple[str, ...] = ()
    unbroken: bool = False
    workload: Callable[[], Workload] = under_fault
    settings: str = outages.SETTINGS
    lasts_s: float = 0.0
    more: Callable[[], Workload] = Workload
    user: int = 0
    leader: str = LEADER
    cloned: str = ""
    resumed: bool = False


def none(pool: Pool) -> Told:
    """Nothing goes wrong."""
    return Told(0)


def worker_killed(pool: Pool) -> Told:
    """kill -9 of a worker that has commands running; it is started again, as systemd would."""
    running = outages.busy(pool, "laptop3")
    pool.kill("laptop3", "worker")
    time.sleep(RESTART_S)
    pool.start("laptop3", "worker")
    return Told(1, f"{len(running)} commands ran under it")


def laptop_killed(pool: Pool) -> Told:
    """The power of a laptop fails under its commands; it boots again."""
    running = outages.busy(pool, "laptop3")
    pool.power_cut("laptop3")
    time.sleep(outages.DEAD_S + 2)
    pool.boot("laptop3")
    return Told(1, f"{len(running)} commands ran on it")


def leader_killed(pool: Pool) -> Told:
    """kill -9 of the leading master; it comes back as a standby, or leads again."""
    outages.busy(pool, "laptop1")
    epoch, leader = outages.lease(pool)
    pool.kill(leader, "master")
    time.sleep(RESTART_S)
    pool.start(leader, "master")
    return Told(1, outages.next_leader(pool, epoch))


def leader_laptop_killed(pool: Pool) -> Told:
    """The power of the leader's laptop fails, which also works; the standby leads; it boots again."""
    epoch, leader = outages.lease(pool)
    outages.busy(pool, leader)
    pool.power_cut(leader)
    told = outages.next_leader(pool, epoch)
    pool.boot(leader)
    return Told(1, told)


def clocks_apart(pool: Pool) -> Told:
    """Two laptops are hours off, one each way, and the leader's clock jumps while it leads."""
    outages.busy(pool, "laptop2")
    hours = {"laptop2": 5, "laptop3": -7, "laptop1": 1}
    for laptop, ahead in hours.items():
        pool.lab.on(laptop).run("date", "-s", f"@{time.time() + 3600 * ahead:.0f}")
    told = [int(pool.lab.on(laptop).shell("date +%s")) - time.time() for laptop in hours]
    if max(told) - min(told) < 11 * 3600:
        raise Unproven(f"the clocks are only {max(told) - min(told):.0f} s apart")
    return Told(3, f"{(max(told) - min(told)) / 3600:.0f} hours apart")


def suspended(pool: Pool) -> Told:
    """A laptop's lid is closed while commands run, for longer than it takes to be taken for dead; then it wakes."""
    running = outages.busy(pool, "laptop3")
    pool.lab.guests["laptop3"].freeze()
    outages.taken_for_dead(pool, "laptop3")
    time.sleep(2)
    pool.lab.guests["laptop3"].thaw()
    return Told(1, f"{len(running)} commands slept with it")


def in_turn(pool: Pool) -> Told:
    """The leader dies, then a worker, then the cable of the laptop that leads is pulled, all under tasks that exclude
    each other.
    """
    wait_until("laptop3 has a command running", lambda: pool.running_on("laptop3"), 60)
    epoch, leader = outages.lease(pool)
    pool.kill(leader, "master")
    outages.next_leader(pool, epoch)
    pool.start(leader, "master")
    wait_until("laptop3 has a command running", lambda: pool.running_on("laptop3"), 60)
    pool.kill("laptop3", "worker")
    time.sleep(RESTART_S)
    pool.start("laptop3", "worker")
    epoch, leader = outages.lease(pool)
    wait_until(f"{leader} has a command running", lambda: pool.running_on(leader), 60)
    pool.lab.network.cut(leader)
    told = outages.next_leader(pool, epoch)
    time.sleep(outages.DEAD_S)
    left = len(pool.on_disk("ls waiting ready claimed").split())
    pool.lab.network.heal(leader)
    return Told(3, f"{told}; with {left} tasks left")


def share_full(pool: Pool) -> Told:
    """The share is full to the last block while tasks run, for longer than the lease; then it is freed."""
    outages.busy(pool, "laptop3")
    server = pool.lab.on("server")
    server.shell(
        f"fallocate -l $(($(stat -f -c '%f * %S' {EXPORT}) - (8 << 20))) {FILL}; "
        f"dd if=/dev/zero of={FILL}.rest bs=64k conv=fsync status=none; "
        f"dd if=/dev/zero of={FILL}.last bs=1k status=none",
        check=False,
    )
    free = int(server.shell(f"stat -f -c %f {EXPORT}"))
    refused = pool.lab.on("laptop2").run(
        "dd", "if=/dev/zero", f"of={SHARE}/probe", "bs=64k", "count=1", "conv=fsync", check=False
    )
    if "No space left" not in refused.err:
        raise Unproven(f"with {free} blocks free a laptop could still write: {refused.err.strip()}")
    before = pool.completed()
    time.sleep(outages.DEAD_S * 2)
    after = pool.completed()
    server.shell(f"rm -f {FILL} {FILL}.rest {FILL}.last")
    return Told(1, f"{after - before} tasks completed on a full share")


def held_open(pool: Pool) -> Told:
    """A client as Windows has them holds tokens, also that of leadership, open while they are to be renamed."""
    outages.busy(pool, "laptop3")
    _prove_sharing_violation(pool)
    refused = 0
    for _ in range(3):
        listing = "find ready claimed returned master -type f | head -40"
        paths = [f"{pool.name}/{path}" for path in pool.on_disk(listing).split()]
        held = _hold(pool, HELD_S / 2, paths)
        refused += len(held)
        time.sleep(HELD_S / 2)
    if not refused:
        raise Unproven("no file of the spool could be held open")
    return Told(refused, f"{refused} files held, {HELD_S / 2:g} s each")


def _prove_sharing_violation(pool: Pool) -> None:
    """While the holder has a file open, a rename by a laptop must be refused; else the cell shows nothing."""
    laptop = pool.lab.on("laptop1")
    laptop.shell(f"echo held >{SHARE}/probe")
    _hold(pool, 3, ["probe"])
    moved = laptop.run(
        "python3", "-I", "-c", f"import os; os.rename('{SHARE}/probe', '{SHARE}/probe-moved')", check=False
    )
    if "Errno 16" not in moved.err:
        raise Unproven(f"a rename of a file that is held open was not refused as busy: {moved.err.strip()}")


def _hold(pool: Pool, seconds: float, paths: list[str]) -> list[str]:
    """Which of the paths laptop2 now holds, for that long. Errors: TimeoutError."""
    laptop = pool.lab.on("laptop2")
    log = f"/run/holder.{time.monotonic_ns()}"
    laptop.start(
        "/usr/bin/python3", "-I", f"{HERE}/guest/holder.py", SERVER, PurePosixPath(EXPORT).name, USER, PASSWORD,
        str(seconds), *paths, log=log,
    )  # fmt: skip

    def lines() -> list[str]:
        return laptop.shell(f"cat {log}").splitlines()

    wait_until("the holder has opened its files", lambda: len(lines()) >= len(paths), 20)
    return [line.removeprefix("held ") for line in lines() if line.startswith("held ")]


def silence(name: str, inflict: Callable[[float], Inflict], seconds: float, *protocols: str, user: int = 0) -> Fault:
    """The share is silent for everybody, under the settings that a user has."""
    return Fault(
        f"{name}-{seconds:g}",
        inflict(seconds),
        protocols=protocols,
        unbroken=True,
        workload=steady,
        settings="",
        lasts_s=seconds,
        user=user,
    )


def clones(name: str, inflict: Inflict, *, resumed: bool) -> Fault:
    """Two laptops are one machine by what they say of themselves, under the settings that a user has."""
    return Fault(
        name,
        inflict,
        unbroken=True,
        workload=twins.first,
        settings="",
        more=twins.second,
        leader=twins.CLONED,
        cloned=twins.CLONED,
        resumed=resumed,
    )


def reuse(name: str, leader: str) -> Fault:
    """Names are used again in pending/, under the settings that a user has."""
    return Fault(
        name,
        names.names_reused,
        unbroken=True,
        workload=names.beside,
        settings="",
        more=names.reused,
        leader=leader,
    )


# Those that take minutes stand apart, since a slow machine plays some in a row.
FAULTS = {
    fault.name: fault
    for fault in (
        Fault("plain", none),
        Fault("worker-killed", worker_killed, fences=True),
        Fault("laptop-killed", laptop_killed, fences=True),
        silence("server-away", silences.server_away, 180),
        Fault("leader-killed", leader_killed),
        Fault("leader-laptop-killed", leader_laptop_killed, fences=True),
        Fault("cut-off", outages.cut_off, fences=True),
        Fault(
            "exclusive",
            in_turn,
            fences=True,
            workload=exclusion.exclusive,
            settings=outages.SETTINGS + exclusion.SETTINGS,
        ),
        Fault("hung-mount", outages.hung_mount, fences=True),
        silence("server-away", silences.server_away, 40),
        Fault("server-frozen", outages.server_frozen),
        Fault("server-killed", outages.server_killed),
        Fault("share-full", share_full),
        Fault("clocks-apart", clocks_apart),
        silence("wifi-gone", silences.laptops_cut_off, 60),
        Fault("suspended", suspended, fences=True, overlap_s=2.0),
        Fault("renames-undone", undone.renames_undone, overlap_s=2.0),
        Fault("copied-then-power", writers.copied_then_power, more=writers.copied),
        Fault("slow-writers", writers.slow_writers, more=writers.slowly),
        reuse("names-reused", LEADER),
        reuse("names-reused-hosted", "server"),
        clones("twins", twins.cloned, resumed=False),
        clones("twins-resumed", twins.resumed, resumed=True),
        Fault("slow-writers-hosted", writers.slow_writers, more=writers.slowly, leader="server"),
        silence("read-only", silences.share_read_only, 60, *NFS),
        silence("chmod", silences.share_denied, 12, *NFS, user=ORDINARY),
        Fault("held-open", held_open, protocols=SMB),
    )
}
