"""The laptop that systemd runs, and the share as its server sees it: what the checks ask of them, and do to them.

May touch: one lab, through its agents.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.laboratory.channel import Failed
from tools.laboratory.guests import wait_until
from tools.laboratory.lab import Lab
from tools.laboratory.protocols import EXPORT, SERVER
from tools.laboratory.systemd_image import CHECKOUT, ENVIRONMENT

NAME = "laptop1"
SPOOL = "/mnt/spool"
WORKER, MASTER, MOUNT = "spool-worker@lab", "spool-master", "mnt-spool.mount"
README = CHECKOUT / "systemd/README.md"


def blocks(text: str, heading: str) -> list[str]:
    """The shell commands of a section of a Markdown text, block by block."""
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Laptop:
    """laptop1 of a lab. Calls raise Failed or TimeoutError when something is not as it should be."""

    lab: Lab

    def shell(self, line: str, timeout: float = 120) -> str:
        """What a line of shell printed there, as root."""
        return self.lab.on(NAME).shell(line, timeout=timeout).strip()

    def fails(self, line: str) -> int:
        """The exit status of a line of shell that need not succeed."""
        return self.lab.on(NAME).run("bash", "-c", line, timeout=120, check=False).code

    def spool(self, *words: str, stdin: str = "") -> str:
        """What `spool` printed, run as somebody who belongs to the group."""
        command = ("runuser", "-u", "spool", "--", "spool", "--spool", SPOOL, *words)
        return self.lab.on(NAME).run(*command, stdin=stdin, timeout=120).out.strip()

    def submit(self, name: str, *command: str) -> None:
        """Submit a command under an id that says which check it belongs to."""
        self.spool("submit", "--id", name, "--", *command)

    def install(self) -> None:
        """The checkout as a wheel into the environment, as `pip install .` does it where there is an index."""
        with tempfile.TemporaryDirectory() as folder:
            build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
            subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
            self.shell(f"mkdir -p /run/wheel && mount -t hostfs -o ro,{folder} none /run/wheel")
            install = f"{ENVIRONMENT}/bin/pip install --quiet --no-index --no-deps --force-reinstall"
            self.shell(f"{install} /run/wheel/{next(Path(folder).glob('*.whl')).name}; umount /run/wheel")

    def settle(self, text: str) -> None:
        """The worker's configuration."""
        self.lab.on(NAME).put(text.encode(), "/etc/spoold/lab.toml")

    def drop_in(self, unit: str, *lines: str) -> None:
        """What `systemctl edit` would write: lines of [Service] (or [Mount]); none takes it away."""
        section, suffix = ("Mount", "") if unit.endswith(".mount") else ("Service", ".service")
        folder = f"/etc/systemd/system/{unit}{suffix}.d"
        text = "\\n".join((f"[{section}]", *lines)) + "\\n"
        write = (
            f"mkdir -p {folder} && printf '{text}' >{folder}/90-lab.conf" if lines else f"rm -f {folder}/90-lab.conf"
        )
        self.shell(f"{write}; systemctl daemon-reload")

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit, as systemd says them."""
        lines = self.shell(f"systemctl show {unit} {' '.join(f'-p {name}' for name in names)}").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def state(self, unit: str) -> tuple[str, str]:
        """ActiveState and SubState."""
        shown = self.show(unit, "ActiveState", "SubState")
        return shown["ActiveState"], shown["SubState"]

    def pid(self, unit: str = WORKER) -> str:
        """The process that systemd takes for the daemon; "0" if there is none."""
        return self.show(unit, "MainPID")["MainPID"]

    def wait_state(self, unit: str, state: tuple[str, str] = ("active", "running"), within_s: float = 90) -> None:
        """Wait until a unit is so."""
        wait_until(f"{unit} is {'/'.join(state)}", lambda: self.state(unit) == state, within_s, 0.5)

    def wait_restarted(self, before: str, within_s: float) -> None:
        """Wait until the worker runs as another process than before."""
        wait_until(f"{WORKER} runs anew", lambda: self.pid() not in (before, "0"), within_s, 0.5)
        self.wait_state(WORKER, within_s=60)

    def wait_says(self, unit: str, first: str, within_s: float = 60) -> None:
        """Wait until a unit's line in `systemctl status` begins like this."""
        wait_until(f"{unit} says {first}", lambda: self._status(unit).startswith(first), within_s, 0.5)

    def _status(self, unit: str) -> str:
        return self.show(unit, "StatusText")["StatusText"]

    def wait_logged(self, unit: str, text: str, within_s: float) -> None:
        """Wait until a unit has said this since the boot."""
        command = f"journalctl -b -u {unit} | grep -qi '{text}'"
        wait_until(f"{unit} has said {text}", lambda: not self.fails(command), within_s, 1)

    def tokens(self, name: str) -> list[str]:
        """Where the task's token and its records are, below the spool: asked of the server's own disk."""
        found = self.lab.on("server").shell(
            f"cd {EXPORT} && find . -name '*{name}.*' ! -path './tmp/*' -printf '%P\\n'"
        )
        return sorted(found.split())

    def stands(self, name: str, state: str) -> bool:
        """Whether the task's token is in this state."""
        return any(path.startswith(f"{state}/") for path in self.tokens(name))

    def wait_stands(self, name: str, state: str, within_s: float = 60) -> None:
        """Wait until the task's token is in this state."""
        wait_until(f"{name} is in {state}/", lambda: self.stands(name, state), within_s, 0.5)

    def started(self, name: str, attempt: int = 1) -> bool:
        """Whether this attempt has written something: the tasks of the checks say so when they start."""
        log = f"{EXPORT}/logs/{name}.{attempt}.*.log"
        return self.lab.on("server").run("bash", "-c", f"grep -qs . {log}", check=False).code == 0

    def results(self, name: str) -> str:
        """All records of the task's attempts, as they are on the server's disk."""
        return self.lab.on("server").shell(f"cat {EXPORT}/results/{name}.*.json")

    def power_off(self) -> None:
        """As the button does it; returns when the machine is off."""
        with contextlib.suppress(Failed):  # it may be gone before it has answered
            self.shell("systemctl poweroff", timeout=10)
        wait_until("the laptop is off", lambda: not self.lab.guests[NAME].running, 150, 0.5)

    def power_on(self) -> None:
        """Returns when its agent answers, which is long before all of it is up."""
        self.lab.guests[NAME].boot(self.lab.bound_s)
        self.lab.on(NAME).wait(120)

    def follow(self, *numbers: int) -> None:
        """Type the README's blocks of commands for a machine of one's own, by number, as they stand there."""
        for number in numbers:
            self.shell("set -e\n" + blocks(README.read_text(), "Your own machine")[number], timeout=180)

    def fstab(self) -> str:
        """The README's line for /etc/fstab, with the lab's server in it."""
        (line,) = re.findall(r"^```fstab\n(.*?)\n```$", README.read_text(), re.MULTILINE | re.DOTALL)
        return f"{SERVER}:/ {' '.join(line.split()[1:])}"
