"""The lab's network: one namespace, a bridge that stands for the storage network and one for control.

May touch: the namespace of that name and nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

STORAGE, CONTROL = "10.98.0", "10.99.0"
_CLONE_NEWNET = 0x40000000
_EVERY_PROTOCOL = 3


@dataclass(frozen=True, slots=True)
class Network:
    """One namespace, by the name that ip-netns(8) knows."""

    name: str

    @property
    def up(self) -> bool:
        """Whether it is there."""
        return os.path.exists(f"/run/netns/{self.name}")

    def make(self) -> None:
        """The namespace and both bridges; the host itself is .1 on each. Errors: RuntimeError."""
        _ip("netns", "add", self.name)
        _ip("-n", self.name, "link", "set", "lo", "up")
        for bridge, prefix in (("storage", STORAGE), ("control", CONTROL)):
            _ip("-n", self.name, "link", "add", bridge, "type", "bridge")
            _ip("-n", self.name, "addr", "add", f"{prefix}.1/24", "dev", bridge)
            _ip("-n", self.name, "link", "set", bridge, "up")

    def plug(self, guest: str) -> tuple[str, str]:
        """Two sockets for a guest's cables: the names of its taps on storage and on control. Errors: RuntimeError."""
        taps = f"s-{guest}", f"c-{guest}"
        for tap, bridge in zip(taps, ("storage", "control"), strict=True):
            with contextlib.suppress(RuntimeError):
                _ip("-n", self.name, "link", "del", tap)
            _ip("-n", self.name, "tuntap", "add", tap, "mode", "tap")
            _ip("-n", self.name, "link", "set", tap, "master", bridge, "up")
        return taps

    def cut(self, guest: str) -> None:
        """Pull the guest's storage cable."""
        _ip("-n", self.name, "link", "set", f"s-{guest}", "down")

    def heal(self, guest: str) -> None:
        """Plug it in again."""
        _ip("-n", self.name, "link", "set", f"s-{guest}", "up")

    def remove(self) -> None:
        """The namespace with all that is in it. It need not be there."""
        with contextlib.suppress(RuntimeError):
            _ip("netns", "del", self.name)

    def command(self, *argv: str) -> list[str]:
        """The command line that runs argv inside."""
        return ["ip", "netns", "exec", self.name, *argv]

    def connect(self, address: str, port: int, timeout: float) -> socket.socket:
        """A connection from inside the namespace, usable from outside. Errors: OSError."""
        with self.inside():
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.settimeout(timeout)
            made.connect((address, port))
        except OSError:
            made.close()
            raise
        return made

    def tapped(self, guest: str) -> socket.socket:
        """All packets on the guest's storage cable, both ways, from now on. Errors: OSError."""
        with self.inside():
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL))
            made.bind((f"s-{guest}", 0))
        return made

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """A socket belongs to the namespace that its thread was in when it was made; only this thread goes there."""
        setns = ctypes.CDLL(None, use_errno=True).setns
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.name}") as there:
            if setns(there.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"cannot enter the namespace {self.name}")
            try:
                yield
            finally:
                if setns(home.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "cannot come back from the namespace")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
