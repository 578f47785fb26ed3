"""spoold on a lab: masters and workers as a user would start them, and the witnesses beside them.

May touch: one folder on the share, /run of the guests, and every process in a guest that was started here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.laboratory.channel import Done, Failed
from tools.laboratory.guest.tree import Tree
from tools.laboratory.guests import HERE, wait_until
from tools.laboratory.lab import SPOOL_COMMAND, Lab
from tools.laboratory.matrix.trace import Execution, parse_trace
from tools.laboratory.protocols import EXPORT, SHARE

FILL = f"{EXPORT}/fill"
SLOTS = 4
LEADER = "laptop1"
# A laptop is asked for its time until it answers so soon (s), and so often at most.
SURE_S, GUESSES = 0.1, 10


def _environment() -> dict[str, str]:
    """The caller's, without what it says of spools of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SPOOL_")}


@dataclass(slots=True)
class Pool:
    """The nodes of one cell, on the spool of that name.

    user: whose nodes they are; modes on the share bind everybody but 0. leader: who leads first: a laptop, or the
    server itself, on its own disk.
    kept: the traces of laptops that were killed, which are blind since.
    undone: the server was killed, and may have forgotten what it had done last.
    """

    lab: Lab
    name: str
    user: int = 0
    leader: str = LEADER
    pids: dict[tuple[str, str], int] = field(default_factory=dict)
    kept: list[Execution] = field(default_factory=list)
    blind: set[str] = field(default_factory=set)
    undone: bool = False
    _ahead_s: dict[str, float] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The spool as laptops see it."""
        return f"{SHARE}/{self.name}"

    @property
    def disk(self) -> str:
        """The spool as the server has it."""
        return f"{EXPORT}/{self.name}"

    def root_on(self, guest: str) -> str:
        """The spool as nodes of that guest see it."""
        return self.disk if guest == "server" else self.root

    @property
    def guests(self) -> list[str]:
        """Where nodes may run."""
        return [*self.lab.laptops, *(["server"] if self.leader == "server" else [])]

    @property
    def env(self) -> dict[str, str]:
        """Guests cannot write byte code, so they read what the host has compiled."""
        return {"PYTHONPYCACHEPREFIX": sys.pycache_prefix} if sys.pycache_prefix else {}

    def make(self, settings: str) -> None:
        """A fresh spool, with these settings in its spool.toml if any.

        `spool init` tries the mount out first, which takes a kernel that is a process long, so one spool is made on
        the host and copied, to the disk and not only to the server's memory, as `spool init` would have it; the
        doctor has tests of its own.
        """
        with tempfile.TemporaryDirectory(prefix="spoold-netlab-new-") as folder:
            subprocess.run(
                [SPOOL_COMMAND, "init", f"{folder}/spool"], check=True, capture_output=True, env=_environment()
            )
            if settings:
                Path(folder, "spool", "spool.toml").write_text(settings)
            self.lab.on("server").run("cp", "-r", f"{folder}/spool", self.disk)
            self.lab.on("server").run("chown", "-R", f"{self.user}:{self.user}", self.disk)
            self.lab.on("server").run("sync", "-f", self.disk)

    @property
    def command(self) -> tuple[str, ...]:
        """`spool` as that user, who may read the host's files all the same; no server knows of that capability."""
        if not self.user:
            return (SPOOL_COMMAND,)
        may_read = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")
        return *self.as_user("/usr/bin/setpriv"), *may_read, SPOOL_COMMAND

    def as_user(self, setpriv: str = "setpriv") -> tuple[str, ...]:
        """What goes before a command that is to run as that user."""
        return setpriv, "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups"

    def start(self, laptop: str, role: str) -> None:
        """Start a worker or a master there."""
        options = ("--slots", str(SLOTS), "--allow-command") if role == "worker" else ()
        self.lab.on(laptop).shell("touch /run/trace; chmod 666 /run/trace")
        self.pids[laptop, role] = self.lab.on(laptop).start(
            *self.command, "--spool", self.root_on(laptop), role, *options, log=f"/run/{role}.log", env=self.env
        )

    def start_all(self) -> None:
        """The leader first, so that it leads if nothing delays it; then the standby and the workers."""
        self.start(self.leader, "master")
        wait_until(f"{self.leader} leads", lambda: f".m-{self.leader}-" in self.on_disk("ls master"), 40)
        self.start("laptop2", "master")
        for laptop in self.lab.laptops:
            self.start(laptop, "worker")

    def kill(self, laptop: str, role: str) -> None:
        """kill -9 of one node."""
        self.lab.on(laptop).run("kill", "-9", str(self.pids.pop((laptop, role))))

    def power_cut(self, laptop: str) -> None:
        """kill -9 of a laptop, whose trace is fetched just before."""
        self.kept += self.trace(laptop)
        self.blind.add(laptop)
        del self._ahead_s[laptop]
        self.lab.kill(laptop)

    def boot(self, laptop: str) -> None:
        """The laptop again, and on it what ran there."""
        self.lab.boot(laptop)
        for name, role in list(self.pids):
            if name == laptop:
                self.start(laptop, role)

    def spool(self, laptop: str, *words: str, timeout: float = 60, check: bool = True) -> Done:
        """Run the command line on a laptop. Errors: Failed."""
        return self.lab.on(laptop).run(
            *self.command, "--spool", self.root, *words, env=self.env, timeout=timeout, check=check
        )

    def may_list(self, laptop: str) -> bool:
        """Whether the user may list the spool there; opening a directory makes the laptop's kernel ask the server."""
        return self.lab.on(laptop).run(*self.as_user(), "ls", self.root, check=False, timeout=30).code == 0

    def submit(self, batch: str) -> None:
        """A batch, through the command line of laptop1. Errors: Failed."""
        self.lab.on("laptop1").put(batch.encode(), "/run/batch.jsonl")
        self.spool("laptop1", "submit", "/run/batch.jsonl")

    def status(self, laptop: str) -> dict[str, Any]:
        """What `spool status` says there. Errors: Failed."""
        told: dict[str, Any] = json.loads(self.spool(laptop, "status", "--json").out)
        return told

    def on_disk(self, line: str) -> str:
        """A line of shell in the spool on the server's own disk. Errors: Failed."""
        return self.lab.on("server").shell(f"cd {self.disk} && {{ {line}; }}")

    def completed(self) -> int:
        """How many tasks are in completed/."""
        return int(self.on_disk("ls -U completed | wc -l"))

    def running_on(self, laptop: str) -> list[str]:
        """Tasks whose command started there and has not ended."""
        return [e.id for e in self.trace(laptop) if not e.ended]

    def trace(self, laptop: str) -> list[Execution]:
        """What the commands of a laptop wrote of themselves, since its boot."""
        self._compare_clocks(laptop)
        text = self.lab.on(laptop).shell("cat /run/trace 2>/dev/null || true")
        return parse_trace(text, laptop, self._ahead_s[laptop])

    def _compare_clocks(self, laptop: str) -> None:
        """How far the laptop's time since boot is behind this machine's clock, to within SURE_S if it is not busy.

        The guest looks at its clock some time after it was asked: of several guesses, the highest is the best.
        """
        for _ in range(GUESSES):
            asked = time.monotonic()
            guess = asked - float(self.lab.on(laptop).shell("read -r up rest </proc/uptime; echo $up"))
            self._ahead_s[laptop] = max(guess, self._ahead_s.get(laptop, guess))
            if time.monotonic() - asked <= SURE_S:
                return

    def log(self, laptop: str, role: str) -> str:
        """What a node there said."""
        return self.lab.on(laptop).shell(f"cat /run/{role}.log 2>/dev/null || true")

    def kernel(self, guest: str) -> str:
        """What its kernel said last, knows of SMB, and in which of its calls each thread of a node waits."""
        mine = " ".join(str(pid) for (name, _), pid in self.pids.items() if name == guest)
        return self.lab.on(guest).shell(
            "dmesg | tail -n 60; cat /proc/fs/cifs/DebugData 2>/dev/null;"
            f"for pid in {mine}; do for thread in /proc/$pid/task/*; do"
            " echo $thread; cat $thread/comm $thread/wchan $thread/stack 2>/dev/null; echo; done; done; true"
        )

    def stop_all(self) -> None:
        """SIGTERM to all, and wait until they have left; what does not leave is killed, and that is an error.

        Errors: TimeoutError that names them.
        """
        for guest in self.guests:
            mine = [str(pid) for (name, _), pid in self.pids.items() if name == guest]
            self.lab.on(guest).shell(f"kill {' '.join(mine)} 2>/dev/null || true")

        def left(guest: str) -> bool:
            line = f"! pgrep -f '[s]pool --spool {self.root_on(guest)}' >/dev/null"
            return self.lab.on(guest).run("bash", "-c", line, check=False).code != 0

        def gone() -> bool:
            still = [left(guest) for guest in self.guests]
            return not any(still)

        wait_until("masters and workers leave after SIGTERM", gone, 30)
        self.pids.clear()

    def witness(self) -> Tree:
        """What lies on the server's own disk. Errors: Failed."""
        done = self.lab.on("server").run(sys.executable, "-I", f"{HERE}/guest/tree.py", self.disk, timeout=120)
        told = json.loads(done.out)
        results = {name: (task, attempt, status) for name, (task, attempt, status) in told["results"].items()}
        return Tree(told["files"], results, [(task, attempt, writer) for task, attempt, writer in told["commits"]])

    def clean(self) -> None:
        """Make the lab as it was when it came up. What does not answer gets a new kernel."""
        self.pids.clear()
        self.lab.drop_clones()
        self.lab.guests["server"].thaw()
        if not self._answers("server"):
            self.lab.kill("server")
            self.lab.boot("server")
        for laptop in self.lab.laptops:
            self.lab.guests[laptop].thaw()
            self.lab.network.heal(laptop)
            if not self._answers(laptop) or not self.mounted(laptop):
                self.lab.kill(laptop)
                self.lab.boot(laptop)
            self.lab.on(laptop).shell(f"pkill -9 -f '[s]pool --spool'; rm -f /run/trace; date -s @{time.time():.2f}")
            self.lab.on(laptop).shell("rm -f /run/master.log /run/worker.log")
        self.lab.on("server").shell(
            f"pkill -9 -f '[s]pool --spool'; rm -f /run/*.log; rm -rf {EXPORT}/*", timeout=120
        )

    def _answers(self, guest: str) -> bool:
        try:
            self.lab.on(guest).run("true", timeout=5)
        except Failed:
            return False
        return True

    def mounted(self, laptop: str, within_s: float = 45) -> bool:
        """Whether the share answers there, within the time that a client needs to find its server again."""
        try:
            return self.lab.on(laptop).run("ls", SHARE, timeout=within_s, check=False).code == 0
        except Failed:
            return False
