"""What systemd does to a daemon: stops it, starts it again, watches it, lets it be.

Law: a check leaves both units running, and raises what says how it was not. What it returns is for the table.
"""

from __future__ import annotations

import time

from tools.laboratory.guests import wait_until
from tools.laboratory.protocols import EXPORT
from tools.laboratory.systemd_boot import BEAT_S, ENDLESS, SETTINGS, UNITS, running, wait_started, works
from tools.laboratory.systemd_laptop import MASTER, NAME, README, SPOOL, WORKER, Laptop, blocks

HANG = "/run/netlab-hang"
# Python reads a module of this name at every start. The loop stops coming round as long as the file is there.
HANGING = f"""
import os, time
from spoold.daemon.loop import Loop
whole = Loop._round
def hanging(self):
    while os.path.exists("{HANG}"):
        time.sleep(0.1)
    return whole(self)
Loop._round = hanging
"""


def stopped(laptop: Laptop) -> str:
    """`systemctl stop` drains: what ends within the grace is done, the rest is handed back uncharged"""
    laptop.submit("short", "sh", "-c", "echo started; sleep 2")
    laptop.submit("long", *ENDLESS)
    wait_started(laptop, "short")
    wait_started(laptop, "long")
    began = time.monotonic()
    laptop.shell(f"systemctl stop {WORKER}")
    took = time.monotonic() - began
    assert laptop.state(WORKER) == ("inactive", "dead"), laptop.state(WORKER)
    assert laptop.show(WORKER, "Result")["Result"] == "success"
    assert any(path.startswith("completed/short.1.") for path in laptop.tokens("short")), laptop.tokens("short")
    wait_until("long is offered again", lambda: laptop.stands("long", "ready"), 30, 0.5)
    assert any(".a2f0c0" in path for path in laptop.tokens("long")), laptop.tokens("long")
    assert '"handed_back"' in laptop.results("long"), laptop.results("long")
    laptop.shell(f"systemctl start {WORKER}")
    laptop.wait_stands("long", "completed")
    return f"{took:.0f} s for a grace of 4 s"


def killed(laptop: Laptop) -> str:
    """kill -9 of the worker: systemd starts it again, and it has its own task back without waiting for the lease"""
    laptop.submit("killed", *ENDLESS)
    wait_started(laptop, "killed")
    before = laptop.pid()
    began = time.monotonic()
    laptop.shell(f"kill -9 {before}")
    wait_until("the task runs again", lambda: laptop.started("killed", 2), 60, 0.2)
    took = time.monotonic() - began
    assert laptop.pid() not in (before, "0")
    assert laptop.fails("pgrep -f 'sleep 4321'"), "what the dead worker ran is still there"
    laptop.wait_stands("killed", "completed")
    assert '"worker_died"' in laptop.results("killed"), laptop.results("killed")
    assert took < 3 * BEAT_S, f"it took {took:.0f} s: the lease, not its own host, told that the worker was dead"
    return f"second attempt {took:.0f} s after the kill (RestartSec=5, lease {3 * BEAT_S} s)"


def leader_killed(laptop: Laptop) -> str:
    """kill -9 of the master: systemd starts it again, and it leads at once"""
    before = laptop.pid(MASTER)
    began = time.monotonic()
    laptop.shell(f"kill -9 {before}")
    laptop.submit("after-leader", "sh", "-c", "echo started")
    wait_until("a task runs again", lambda: laptop.started("after-leader"), 60, 0.2)
    took = time.monotonic() - began
    running(laptop)
    return f"next task ran {took:.0f} s after the kill"


def watched(laptop: Laptop) -> str:
    """the watchdog is satisfied by daemons that are idle, and by one that runs a task"""
    for unit in UNITS:
        laptop.drop_in(unit, "WatchdogSec=4")
    laptop.shell(f"systemctl restart {WORKER} {MASTER}")
    before = [laptop.pid(unit) for unit in UNITS]
    laptop.submit("watched", "sh", "-c", "echo started; sleep 20")
    laptop.wait_stands("watched", "completed", 90)
    for unit, pid in zip(UNITS, before, strict=True):
        shown = laptop.show(unit, "MainPID", "WatchdogUSec", "NRestarts")
        assert shown == {"MainPID": pid, "WatchdogUSec": "4s", "NRestarts": "0"}, (unit, shown)
        laptop.drop_in(unit)
    laptop.shell(f"systemctl restart {WORKER} {MASTER}")
    return "20 s with WatchdogSec=4"


def frozen(laptop: Laptop) -> str:
    """a worker whose process stands still is killed by the watchdog, started again, and has its task back"""
    laptop.drop_in(WORKER, "WatchdogSec=6")
    laptop.shell(f"systemctl restart {WORKER}")
    laptop.submit("frozen", *ENDLESS)
    wait_started(laptop, "frozen")
    before = laptop.pid()
    began = time.monotonic()
    laptop.shell(f"kill -STOP {before}")
    laptop.wait_restarted(before, 60)
    took = time.monotonic() - began
    laptop.wait_logged(WORKER, "Watchdog timeout", 5)
    laptop.wait_stands("frozen", "completed")
    laptop.drop_in(WORKER)
    laptop.shell(f"systemctl restart {WORKER}")
    return f"started again {took:.0f} s after SIGSTOP, WatchdogSec=6"


def hung(laptop: Laptop) -> str:
    """a worker whose loop hangs, while its process looks well, is killed by the watchdog and started again"""
    laptop.shell("mkdir -p /opt/hang")
    laptop.lab.on(NAME).put(HANGING.encode(), "/opt/hang/sitecustomize.py")
    laptop.drop_in(WORKER, "WatchdogSec=6", "Environment=PYTHONPATH=/opt/hang")
    laptop.shell(f"systemctl restart {WORKER}")
    works(laptop, "before-hang")
    before = laptop.pid()
    began = time.monotonic()
    laptop.shell(f"touch {HANG}")
    wait_until("the watchdog has killed it", lambda: laptop.pid() != before, 150, 0.5)
    took = time.monotonic() - began
    laptop.shell(f"rm {HANG}")
    laptop.drop_in(WORKER)
    laptop.shell(f"systemctl restart {WORKER}")
    works(laptop, "after-hang")
    return f"killed {took:.0f} s after the loop hung (60 s of patience, WatchdogSec=6)"


def mistaken(laptop: Laptop) -> str:
    """a mistake in the configuration, exit status 2, stays down; mended, it starts"""
    laptop.settle("slots = 'many'\n")
    code = laptop.fails(f"systemctl restart {WORKER}")
    assert code != 0, "it started"
    # A unit that waits for its next start is "activating", not "failed".
    laptop.wait_state(WORKER, ("failed", "failed"), 30)
    assert laptop.show(WORKER, "ExecMainStatus")["ExecMainStatus"] == "2"
    said = laptop.shell(f"journalctl -b -u {WORKER} | grep lab.toml | tail -1")
    laptop.settle(SETTINGS)
    laptop.shell(f"systemctl restart {WORKER}")
    works(laptop, "after-mistake")
    return said.partition("]: ")[2][:90]


def drained(laptop: Laptop) -> str:
    """a worker that was drained by request stays away"""
    laptop.spool("drain", NAME)
    laptop.wait_state(WORKER, ("inactive", "dead"), 60)
    assert laptop.show(WORKER, "Result", "ExecMainStatus") == {"Result": "success", "ExecMainStatus": "0"}
    laptop.shell(f"systemctl start {WORKER}")
    works(laptop, "after-drain")
    return ""


def greedy(laptop: Laptop) -> str:
    """a task that eats the unit's memory loses its life, its worker does not, nor does its neighbour"""
    laptop.drop_in(WORKER, "MemoryMax=160M")
    laptop.shell(f"systemctl restart {WORKER}")
    before = laptop.pid()
    laptop.submit("neighbour", "sh", "-c", "echo started; sleep 8")
    wait_started(laptop, "neighbour")
    laptop.spool(
        "submit", "--id", "greedy", "--retries", "0", "--", "python3", "-c", "print(len(b'x' * (300 << 20)))"
    )
    laptop.wait_stands("greedy", "failed")
    assert "killed by SIGKILL" in laptop.results("greedy"), laptop.results("greedy")
    laptop.wait_logged(WORKER, "killed by the OOM killer", 5)
    laptop.wait_stands("neighbour", "completed")
    assert any(path.startswith("completed/neighbour.1.") for path in laptop.tokens("neighbour"))
    assert laptop.pid() == before, "the worker died with it"
    laptop.drop_in(WORKER)
    laptop.shell(f"systemctl restart {WORKER}")
    return "MemoryMax=160M, a task of 300 MB; its record says killed by SIGKILL"


def asleep(laptop: Laptop) -> str:
    """`spool-sleep` has tasks handed back before the machine sleeps, and work go on when it is awake"""
    laptop.submit("asleep", *ENDLESS)
    wait_started(laptop, "asleep")
    began = time.monotonic()
    laptop.shell("systemctl start spool-sleep")
    took = time.monotonic() - began
    for unit in UNITS:
        laptop.wait_says(unit, "asleep", 10)
    assert laptop.fails("pgrep -f 'sleep 4321'"), "its task still runs"
    assert any(".a2f0c0" in path for path in laptop.tokens("asleep")), laptop.tokens("asleep")
    laptop.shell("systemctl stop spool-sleep")
    laptop.wait_stands("asleep", "completed", 90)
    return f"asleep after {took:.0f} s"


def of_a_user(laptop: Laptop) -> str:
    """the README's commands for a user without root, as they stand there; another member's master reaps it"""
    laptop.shell("useradd -m -s /bin/bash -G spool ada && loginctl enable-linger ada")
    laptop.shell("install -d -o ada -g ada /home/ada/.config /home/ada/.config/spoold")
    laptop.shell("printf 'name = \"ada\"\\nallow_command = true\\n' >/home/ada/.config/spoold/lab.toml")
    uid = laptop.shell("id -u ada")
    wait_until("ada's manager", lambda: not laptop.fails(f"test -S /run/user/{uid}/bus"), 60, 0.5)
    as_ada = f"runuser -u ada -- env -C /home/ada HOME=/home/ada XDG_RUNTIME_DIR=/run/user/{uid} "
    laptop.shell(f"systemctl stop {WORKER}")
    (block,) = blocks(README.read_text(), "A laptop without root")
    for line in block.splitlines():
        if not line.startswith("loginctl"):  # that asks polkit, which is not on this disk; root has done it above
            laptop.shell(as_ada + line)
    laptop.submit("ada", "sh", "-c", "echo started; id -un; test $SPOOL_ATTEMPT -gt 1 || exec sleep 4321")
    wait_started(laptop, "ada")
    laptop.shell(f"{as_ada} systemctl --user kill -s KILL {WORKER}")
    laptop.wait_stands("ada", "completed", 90)
    laptop.shell(f"{as_ada} systemctl --user stop {WORKER}")
    left = laptop.lab.on("server").shell(f"ls {EXPORT}/claimed {EXPORT}/heartbeats")
    assert "ada-" not in left, left
    who = laptop.spool("logs", "ada").split()
    assert who[-1] == "ada", who
    laptop.shell(f"systemctl start {WORKER}")
    works(laptop, "after-ada")
    return ""


def sound(laptop: Laptop) -> str:
    """after all this the spool breaks no law"""
    said = laptop.spool("fsck")
    laptop.shell(f"test -z \"$(find {SPOOL}/claimed -name '*.json')\"")
    return said.splitlines()[-1] if said else ""


CHECKS = (
    stopped, killed, leader_killed, watched, frozen, hung, mistaken, drained, greedy, asleep, of_a_user, sound,
)  # fmt: skip
