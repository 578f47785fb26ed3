"""A lab: one server, some laptops, and a folder that remembers them between two commands.

May touch: its folder, its namespace, its guests.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.laboratory.channel import Channel
from tools.laboratory.guests import Guest
from tools.laboratory.network import Network
from tools.laboratory.protocols import PROTOCOLS, SHARE, Protocol

CHECKOUT = Path(__file__).resolve().parents[2]
# Of the environment that this runs in; guests that see the host's files have it under the same path.
SPOOL_COMMAND = str(Path(sys.executable).with_name("spool"))
SERVER_NUMBER, FIRST_LAPTOP = 2, 11
DISK_MB = 3072
# Of a laptop; one with systemd has more to run.
MEMORY_MB, SYSTEMD_MEMORY_MB = 256, 512
BOUND_S = 4 * 3600
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Lab:
    """A lab by its name; `up` makes it, `Lab.find` finds one that another command made.

    With an image, the laptops are machines of their own that systemd runs (see `systemd_image`). memory_mb: of each
    laptop; None for what spoold and small commands need. disk_mb: of a disk of each laptop's own, at /srv/disk, which
    outlives a power cut; 0 for none.
    """

    def __init__(
        self,
        name: str,
        protocol: Protocol,
        laptops: int,
        options: str = "",
        bound_s: float = BOUND_S,
        image: Path | None = None,
        memory_mb: int | None = None,
        disk_mb: int = 0,
    ) -> None:
        self.name = name
        self.protocol = protocol
        self.options = options
        self.bound_s = bound_s
        self.image = image
        self.memory_mb = memory_mb or (MEMORY_MB if image is None else SYSTEMD_MEMORY_MB)
        self.disk_mb = disk_mb
        self.folder = folder_of(name)
        self.network = Network(f"spoold-{name}")
        common = (self.network, self.folder)
        self.guests = {"server": Guest("server", "server", SERVER_NUMBER, *common, disk=self.folder / "server.ext4")}
        for number in range(laptops):
            laptop = f"laptop{number + 1}"
            disk = self.folder / f"{laptop}.ext4" if disk_mb else None
            self.guests[laptop] = Guest(laptop, "laptop", FIRST_LAPTOP + number, *common, self.memory_mb, disk, image)
        self.clones: list[str] = []

    @classmethod
    def find(cls, name: str) -> Lab:
        """The lab that `up` made. Errors: SystemExit when there is none."""
        try:
            kept = json.loads((folder_of(name) / "lab.json").read_text())
        except FileNotFoundError:
            raise SystemExit(f"netlab: there is no lab called {name}; `tools/netlab up` makes one") from None
        image = Path(kept["image"]) if kept["image"] else None
        protocol, sizes = PROTOCOLS[kept["protocol"]], (kept["memory_mb"], kept["disk_mb"])
        return cls(name, protocol, kept["laptops"], kept["options"], kept["bound_s"], image, *sizes)

    @property
    def laptops(self) -> list[str]:
        """Their names."""
        return [name for name, guest in self.guests.items() if guest.role == "laptop"]

    def on(self, name: str) -> Channel:
        """The agent of a guest. Errors: SystemExit for a name that the lab does not have."""
        if name not in self.guests:
            raise SystemExit(f"netlab: no guest is called {name}; there are {', '.join(self.guests)}")
        return Channel(self.network, name, self.guests[name].number)

    def up(self) -> None:
        """Make all of it and mount the share. Errors: Failed, RuntimeError, OSError; then nothing is left behind."""
        if self.network.up or self.folder.exists():
            raise SystemExit(f"netlab: a lab called {self.name} is up; `tools/netlab down` ends it")
        self.folder.mkdir(parents=True, mode=0o700)
        kept = {
            "protocol": self.protocol.name,
            "laptops": len(self.laptops),
            "options": self.options,
            "bound_s": self.bound_s,
            "image": str(self.image) if self.image else None,
            "memory_mb": self.memory_mb,
            "disk_mb": self.disk_mb,
        }
        (self.folder / "lab.json").write_text(json.dumps(kept))
        try:
            self.network.make()
            for guest in self.guests.values():
                if guest.disk is not None:
                    _make_disk(guest.disk, DISK_MB if guest.role == "server" else self.disk_mb)
            for guest in self.guests.values():
                guest.boot(self.bound_s)
            for name in self.guests:
                self.on(name).wait()
            for name in self.laptops:
                self.mount(name)
        except BaseException:
            self._show_consoles()
            self.down()
            raise

    def mount(self, laptop: str, options: str | None = None) -> None:
        """Mount the share on a laptop, with these options or the lab's. Errors: Failed."""
        # A server that has just come up refuses for a moment; what users have there is systemd, which tries again.
        command = self.protocol.command(self.options if options is None else options)
        end = time.monotonic() + 40
        while True:
            done = self.on(laptop).run(*command, timeout=40, check=False)
            if done.code == 0 or time.monotonic() > end:
                break
            time.sleep(0.5)
        if done.code:
            self.on(laptop).run(*command, timeout=40)

    def remount(self, laptop: str, options: str) -> None:
        """Unmount, and mount with other options. Errors: Failed."""
        self.on(laptop).run("umount", SHARE)
        self.mount(laptop, options)

    def boot(self, name: str) -> None:
        """Start a guest that was killed, and mount the share again if it is a laptop. Errors: Failed."""
        self.guests[name].boot(self.bound_s)
        self.on(name).wait()
        if name in self.laptops:
            self.mount(name)

    def kill(self, name: str) -> None:
        """Power cut of one guest."""
        self.guests[name].kill()

    def clone(self, laptop: str, *, boot: bool = False) -> str:
        """Boot one more laptop, with the machine id and the host name of another; its name. Errors: Failed.

        boot: its boot id is that of the other one, too, as after both were resumed from one image of memory.
        """
        number, boot_id = len(self.laptops), self.on(laptop).shell(f"cat {BOOT_ID}").strip() if boot else ""
        clone = f"laptop{number + 1}"
        common = (self.network, self.folder, self.memory_mb)
        self.guests[clone] = Guest(clone, "laptop", FIRST_LAPTOP + number, *common, clone_of=laptop, boot_id=boot_id)
        self.clones.append(clone)
        self.boot(clone)
        return clone

    def drop_clones(self) -> None:
        """Power cut of all clones, which are no guests of the lab any more."""
        while self.clones:
            self.kill(self.clones[-1])
            del self.guests[self.clones.pop()]

    def down(self) -> None:
        """End and remove all of it. Works on half a lab too."""
        for guest in self.guests.values():
            guest.kill()
        self.network.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _show_consoles(self) -> None:
        for guest in self.guests.values():
            with contextlib.suppress(OSError):
                print(
                    f"--- console of {guest.name}\n{guest.console.read_text(errors='replace')[-2000:]}",
                    file=sys.stderr,
                )


def _make_disk(path: Path, size_mb: int) -> None:
    with path.open("wb") as disk:
        disk.truncate(size_mb << 20)
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", str(path)], check=True, capture_output=True)


def folder_of(name: str) -> Path:
    """Where a lab keeps its disk, its consoles and its pids."""
    return Path(tempfile.gettempdir()) / f"spoold-netlab-{name}"
