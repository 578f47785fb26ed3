"""A machine whose kernel files cannot be read: python broken_machine.py SEED|NAME…, in its own mount namespace.

NAME: of a machine that exists, see NAMED. For each seed some files of /proc, /sys and /etc are covered by others: by
nothing, by noise, by figures that no machine has, by a file that answers EIO, by a socket that cannot be opened. Then
a master admits a task, and a worker runs it. Prints one line of JSON for each seed: what was covered, and how the
task ended, or the error.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from spoold.daemon.master_actor import MasterActor
from spoold.daemon.progress_watch import Pulse
from spoold.daemon.worker_actor import WorkerActor, abilities
from spoold.runner.job_runner import sweep
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.host import SystemHost
from spoold.system.posix import PosixFileSystem
from spoold.worker.handlers.worker_config import WorkerConfig

FILES = (
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/stat",
    "/proc/cpuinfo",
    "/proc/net/rpc/nfsd",
    "/proc/sys/kernel/random/boot_id",
    "/proc/{pid}/cgroup",
    "/proc/{pid}/mountinfo",
    "/proc/{pid}/status",
    "/proc/{pid}/stat",
    "/etc/machine-id",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/unified/cpu.max",
)
# lxcfs died; systemd's ProcSubset=pid.
NAMED = {"meminfo": FILES[:1], "subset": FILES[:7]}
KINDS = ("nothing", "noise", "huge", "damaged", "socket", "cut")
POWER = "/sys/class/power_supply"
HUGE = "9" * 30
WITHIN_S = 60.0


def cover(chance: random.Random, path: str, where: Path, kinds: tuple[str, ...] = KINDS) -> str:
    """Cover one file; returns by what."""
    kind = chance.choice(kinds)
    made = where / str(chance.getrandbits(64))
    if kind == "damaged":
        made = Path("/proc/self/mem")  # its first byte is mapped nowhere: EIO
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(made))
    elif kind == "huge":
        name = {"/proc/meminfo": "MemTotal: {0} kB\nMemFree: {0} kB\nMemAvailable: {0} kB\n"}.get(
            path, "{0} {0} {0}\n"
        )
        made.write_text(name.format(HUGE))
    elif kind == "cut":
        text = Path(path).read_bytes()
        made.write_bytes(text[: chance.randrange(len(text) or 1)])
    else:
        made.write_bytes(chance.randbytes(chance.randrange(400)) if kind == "noise" else b"")
    return kind if mount(made, path) else ""


def power(chance: random.Random, where: Path) -> str:
    """Give the machine a battery whose driver writes anything."""
    battery = where / f"power{chance.getrandbits(64)}" / "BAT0"
    battery.mkdir(parents=True)
    for name in ("energy_now", "energy_full", "power_now", "capacity", "status", "charge_now", "online", "type"):
        if chance.random() < 0.7:
            said = chance.choice((b"", b"-1\n", HUGE.encode(), b"Unknown\n", chance.randbytes(20), b"0\n", b"50\n"))
            (battery / name).write_bytes(said)
    return "battery" if mount(battery.parent, POWER) else ""


def mount(made: Path, path: str) -> bool:
    return subprocess.run(["mount", "--bind", made, path], capture_output=True, check=False).returncode == 0


def play(root: Path) -> str:
    """Have a task admitted and run; returns where it ended."""
    root.mkdir()
    initialise(PosixFileSystem(str(root)), SystemClock(), "test", str(root))
    (root / "pending/t.json").write_text(json.dumps({"id": "t", "command": ["true"]}))
    config = WorkerConfig(name="laptop", slots=1, allow_command=True, kill_grace_s=0, drain_grace_s=0)
    host = SystemHost()
    abilities(config, host)
    host.identity(), host.process(), host.alive(host.process()), host.battery()
    leader, worker = MasterActor(str(root), "desk", Pulse()), WorkerActor(str(root), config, Pulse(), [])
    until = time.monotonic() + WITHIN_S
    try:
        while not (ended := [path for state in ("completed", "failed") for path in root.glob(f"{state}/*")]):
            assert time.monotonic() < until, "nothing has ended"
            leader.step()
            worker.step()
            worker.wait(0.05)
        sweep({"SPOOL_ROOT": str(root)})
        return f"{ended[0].parent.name}/{ended[0].name.split('.')[0]} of {len(list(root.glob('heartbeats/*')))} nodes"
    finally:
        worker.close()
        leader.close()


def cover_some(seed: str, where: Path) -> dict[str, str]:
    """Cover files as the seed or the name says; returns which, and by what."""
    chance = random.Random(seed)
    files = [path.format(pid=os.getpid()) for path in NAMED.get(seed, FILES)]
    some = [path for path in files if os.path.exists(path) and (seed in NAMED or chance.random() < 0.4)]
    kinds = ("damaged",) if seed in NAMED else KINDS
    covered = {path: kind for path in some if (kind := cover(chance, path, where, kinds))}
    return covered | ({POWER: power(chance, where)} if seed not in NAMED and chance.random() < 0.3 else {})


def main(seeds: list[str]) -> None:
    """Play each in a process of its own."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as made:
            if child := os.fork():
                os.waitpid(child, 0)
                continue
            where = Path(made)
            covered = cover_some(seed, where)
            try:
                came = play(where / "spool")
            except BaseException:  # noqa: BLE001  whatever ended the node is the result
                came = traceback.format_exc()
            for path in covered:
                subprocess.run(["umount", path], capture_output=True, check=False)
            print(json.dumps({"seed": seed, "covered": covered, "came": came}), flush=True)
            os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
