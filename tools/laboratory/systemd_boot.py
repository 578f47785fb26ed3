"""What a machine that systemd runs goes through: it is set up, boots, loses its share, is switched off.

Law: a check leaves both units running, and raises what says how it was not. What it returns is for the table.
"""

from __future__ import annotations

from tools.laboratory.guests import wait_until
from tools.laboratory.protocols import EXPORT
from tools.laboratory.systemd_laptop import MASTER, MOUNT, NAME, SPOOL, WORKER, Laptop

UNITS = (WORKER, MASTER)
# Attempt 1 says that it has started and would go on for ever; any other ends at once.
ENDLESS = ("sh", "-c", "echo started; test $SPOOL_ATTEMPT -gt 1 || exec sleep 4321")
# Slower than the default, so that what a daemon knows at once is told from what it learns by silence.
BEAT_S = 10
SETTINGS = "slots = 2\nallow_command = true\ndrain_grace_s = 4\nkill_grace_s = 2\n"


def set_up(laptop: Laptop) -> str:
    """the README's commands, typed as they stand there, end in a worker that works"""
    laptop.shell("umount /mnt/share; hostname -f")
    laptop.install()
    laptop.shell(f"ln -sf /opt/spoold/bin/spool /usr/local/bin/spool; echo '{laptop.fstab()}' >>/etc/fstab")
    laptop.follow(1, 2, 3, 4)
    running(laptop)
    who = laptop.spool("run", "--", "sh", "-c", "id -un; pwd; umask")
    assert who.split() == ["spool", who.split()[1], "0002"], who
    laptop.settle(SETTINGS)
    laptop.shell(f"printf '[heartbeat]\\ninterval_s = {BEAT_S}\\n' >>{SPOOL}/spool.toml")
    laptop.shell(f"systemctl restart {WORKER} {MASTER}")
    running(laptop)
    return f"`spool run` answered {' '.join(who.split())}"


def verified(laptop: Laptop) -> str:
    """systemd-analyze verify finds nothing to say about the installed units"""
    units = "/etc/systemd/system/spool-master.service /etc/systemd/system/spool-sleep.service"
    said = laptop.shell(f"systemd-analyze verify --man=no {units} /etc/systemd/system/{WORKER}.service 2>&1")
    assert said == "", said
    scores = laptop.shell("systemd-analyze security --no-pager | awk '/^spool/{print $1, $2}'")
    return "exposure: " + ", ".join(scores.splitlines())


def boots(laptop: Laptop) -> str:
    """at boot the units start, after the mount"""
    laptop.power_off()
    laptop.power_on()
    running(laptop)
    mounted = int(laptop.show(MOUNT, "ActiveEnterTimestampMonotonic")["ActiveEnterTimestampMonotonic"])
    for unit in UNITS:
        shown = laptop.show(unit, "ExecMainStartTimestampMonotonic", "NRestarts")
        assert int(shown["ExecMainStartTimestampMonotonic"]) > mounted > 0, (unit, shown, mounted)
        assert shown["NRestarts"] == "0", (unit, shown)
    works(laptop, "after-boot")
    ready = int(laptop.show(WORKER, "ActiveEnterTimestampMonotonic")["ActiveEnterTimestampMonotonic"])
    return f"mounted {mounted / 1e6:.0f} s, worker ready {ready / 1e6:.0f} s after the kernel"


def late_server(laptop: Laptop) -> str:
    """a server that is away at boot: the mount fails, is tried again, and the units follow it"""
    laptop.drop_in(MOUNT, "TimeoutSec=8")
    laptop.power_off()
    laptop.lab.kill("server")
    laptop.power_on()
    for unit in UNITS:
        laptop.wait_logged(unit, "is the share mounted", 120)
    tries = laptop.shell(f"journalctl -b -u {MOUNT} | grep -c Mounting")
    empty = laptop.shell(f"find {SPOOL} -mindepth 1")
    assert empty == "", f"the folder below the mount was written to: {empty}"
    laptop.lab.boot("server")
    running(laptop, 120)
    works(laptop, "after-late-server")
    laptop.drop_in(MOUNT)
    return f"{tries} mount tries before the server came"


def server_power_cut(laptop: Laptop) -> str:
    """a server that loses power and comes back costs no daemon its life"""
    before = [laptop.pid(unit) for unit in UNITS]
    laptop.submit("through-power-cut", "sh", "-c", "echo started; sleep 6")
    wait_started(laptop, "through-power-cut")
    laptop.lab.kill("server")
    laptop.lab.boot("server")
    laptop.wait_stands("through-power-cut", "completed", 120)
    works(laptop, "after-power-cut")
    assert [laptop.pid(unit) for unit in UNITS] == before, "a daemon was started anew"
    return "same processes before and after"


def unmounted(laptop: Laptop) -> str:
    """a share that is unmounted under the daemons: a task is frozen, nothing is written below, all goes on"""
    before = [laptop.pid(unit) for unit in UNITS]
    laptop.submit("unmounted", *ENDLESS)
    wait_started(laptop, "unmounted")
    laptop.shell(f"umount -l {SPOOL}")
    for unit in UNITS:
        laptop.wait_says(unit, "trouble")
    wait_until("the lease has frozen the task", lambda: _frozen(laptop), 60, 0.5)
    below = laptop.shell(f"find {SPOOL} -mindepth 1")
    assert below == "", f"the folder below the mount was written to: {below}"
    laptop.shell(f"mount {SPOOL}")
    wait_until("the task goes on", lambda: not _frozen(laptop), 60, 0.5)
    assert any(".a1f0c0" in path for path in laptop.tokens("unmounted")), "it is another attempt"
    laptop.shell("pkill -f '[s]leep 4321'")
    laptop.wait_stands("unmounted", "completed", 120)
    works(laptop, "after-unmount")
    assert [laptop.pid(unit) for unit in UNITS] == before, "a daemon was started anew"
    return "same processes before and after"


def _frozen(laptop: Laptop) -> bool:
    """Whether the control group of a slot is frozen: the shipped unit lets the worker make one."""
    return not laptop.fails("grep -rqs 'frozen 1' /sys/fs/cgroup/system.slice --include=cgroup.events")


def powered_off(laptop: Laptop) -> str:
    """switching off drains: the task gets its grace, goes back uncharged, and the leader resigns; then it goes on"""
    laptop.submit("powered-off", *ENDLESS)
    wait_started(laptop, "powered-off")
    laptop.power_off()
    tokens = laptop.tokens("powered-off")
    back = [path for path in tokens if path.split("/")[0] in ("returned", "waiting", "ready")]
    assert len(back) == 1, tokens
    assert ".a2f0c0" in back[0], tokens
    assert '"handed_back"' in laptop.results("powered-off"), laptop.results("powered-off")
    left = laptop.lab.on("server").shell(f"ls {EXPORT}/claimed {EXPORT}/master {EXPORT}/heartbeats")
    assert ".nobody." in left, f"the leader did not resign: {left}"
    assert NAME not in left, f"a node did not sign off: {left}"
    laptop.power_on()
    running(laptop)
    laptop.wait_stands("powered-off", "completed")
    return f"off: {back[0]}"


def running(laptop: Laptop, within_s: float = 120) -> None:
    """Wait until both units are up."""
    for unit in UNITS:
        laptop.wait_state(unit, within_s=within_s)


def works(laptop: Laptop, name: str) -> None:
    """A task goes all the way."""
    laptop.submit(name, "true")
    laptop.wait_stands(name, "completed", 90)


def wait_started(laptop: Laptop, name: str, attempt: int = 1) -> None:
    """Wait until an attempt has said so."""
    wait_until(f"{name} has started", lambda: laptop.started(name, attempt), 60, 0.3)


CHECKS = (set_up, verified, boots, late_server, server_power_cut, unmounted, powered_off)
