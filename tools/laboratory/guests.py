"""One guest: a User Mode Linux kernel as a process of the host, started, frozen, ended.

Law: a guest is several processes in two sessions; all of them are meant, always. It ends by itself after its bound,
so that a lab which everybody forgot does not stay for ever.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from tools.laboratory import registers
from tools.laboratory.network import Network

HERE = Path(__file__).resolve().parent
KERNEL = "linux.uml"
# A guest's memory is a file that is deleted as soon as it is open; on a disk it would be written back all the time.
MEMORY = "/dev/shm"


@dataclass(frozen=True, slots=True)
class Guest:
    """One machine of the lab. `number` is the last part of its addresses; `folder` holds its console.

    `disk` is a second disk, `image` the first one of a guest that does not live on the host's files. `clone_of`: the
    guest whose machine id and host name it has. `boot_id`: it has that one, not its own.
    """

    name: str
    role: str
    number: int
    network: Network
    folder: Path
    memory_mb: int = 256
    disk: Path | None = None
    image: Path | None = None
    clone_of: str = ""
    boot_id: str = ""

    @property
    def console(self) -> Path:
        """What the guest's kernel and its init said."""
        return self.folder / f"{self.name}.console"

    @property
    def _root(self) -> list[str]:
        """What is its root, and who its init: the host's files and a script, or a Debian of its own and systemd."""
        if self.image is None:
            return ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={HERE}/guest/init"]
        # What it writes goes to a file of its own over the image, and outlives a power cut as a disk does.
        identity = hashlib.md5(self.name.encode(), usedforsecurity=False).hexdigest()
        return [
            f"ubda={self.folder}/{self.name}.cow,{self.image}", "root=/dev/ubda", "rw",
            "systemd.unit=multi-user.target", f"systemd.hostname={self.name}", f"systemd.machine_id={identity}",
        ]  # fmt: skip

    def boot(self, bound_s: float) -> None:
        """Start it; its agent answers some two seconds later. It is killed after bound_s seconds at the latest.

        Errors: OSError, RuntimeError.
        """
        storage, control = self.network.plug(self.name)
        kernel = [
            KERNEL, f"mem={self.memory_mb}M", *self._root, f"umid={self.name}", f"uml_dir={self.folder}/uml",
            f"eth0=tuntap,{storage},02:00:00:00:00:{self.number:02x}",
            f"eth1=tuntap,{control},02:00:00:00:01:{self.number:02x}",
            "con=null", "con0=null,fd:2", "con1=fd:0,fd:1", "quiet", "panic=1",
            f"guest={self.clone_of or self.name}", f"number={self.number}", f"role={self.role}", f"lab={HERE}",
            f"python={sys.executable}", f"boot_id={self.boot_id}",
        ]  # fmt: skip
        if self.disk is not None:
            kernel.append(f"ubdb={self.disk}")
        bound = f"{bound_s:.0f}"
        with self.console.open("ab") as console:
            # It outlives whoever started it, and is nobody's child that would have to be waited for.
            subprocess.run(
                ["setsid", "--fork", *self.network.command("timeout", "--foreground", "-s", "KILL", bound, *kernel)],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env={**os.environ, "TMPDIR": MEMORY, **registers.environment(self.folder)},
            )

    def processes(self) -> list[psutil.Process]:
        """All of it that lives: the kernel, what counts its time, and one process for each of the guest's."""
        # By its own words, since a kernel leaves the session that it was started in, and clocks and pids may jump.
        mine = {f"umid={self.name}", f"uml_dir={self.folder}/uml"}
        session: dict[psutil.Process, int] = {}
        own = set()
        # Not process_iter: it remembers who had a number before, refuses to signal its new owner, and then skips it.
        for pid in psutil.pids():
            with contextlib.suppress(psutil.Error, OSError):
                process = psutil.Process(pid)
                session[process] = os.getsid(pid)
                if mine.issubset(process.cmdline()):
                    own.add(session[process])
        return [process for process, number in session.items() if number in own and _lives(process)]

    @property
    def running(self) -> bool:
        """Whether any of it lives."""
        return bool(self.processes())

    def kill(self) -> None:
        """A power cut: nothing is written back, nobody is told. Returns when all of it is gone."""
        while processes := self.processes():
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(processes, timeout=5)

    def freeze(self) -> None:
        """Stop it as a laptop that sleeps: its clocks go on, nothing in it runs."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Wake it."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """To the kernel alone: the processes that it traces would get the signal as if it were their own."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error, OSError):
                if "\nTracerPid:\t0\n" in Path(f"/proc/{process.pid}/status").read_text():
                    process.send_signal(number)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def wait_until(what: str, condition: Callable[[], object], within_s: float, every_s: float = 0.1) -> None:
    """Wait for a condition. Errors: TimeoutError that says what was waited for."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {within_s:g} s: {what}")
        time.sleep(every_s)
