"""Which hosts a list lets through: names, names below a name, addresses, each with its ports.

A list of hosts is defence in depth: a host on it may itself pass things on.

Law: pure. An address of this machine or of a private network is let through only where the list has that very entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

HTTPS = 443
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list. below: it stands for all names below this one, and not for itself."""

    host: str
    port: int
    below: bool = False

    def fits(self, host: str, port: int) -> bool:
        """Return whether it lets this host and port through."""
        if port != self.port:
            return False
        return host.endswith(f".{self.host}") if self.below else host == self.host


def entry(text: str) -> Entry:
    """Read HOST, *.HOST or HOST:PORT; without a port it is 443. Errors: ValueError."""
    host, port = split(text)
    if not _is_address(host) and not _NAME.fullmatch(host):
        raise ValueError(f"hosts: {text!r} is no host; write api.example.com, *.example.com or localhost:8377")
    return Entry(host.removeprefix("*."), port, host.startswith("*."))


def split(text: str) -> tuple[str, int]:
    """Return host and port of HOST, HOST:PORT or [ADDRESS]:PORT, the host in lower case. Errors: ValueError."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+))(?::([0-9]{1,5}))?", text)
    if not found or not 0 < int(found[3] or HTTPS) < 65536:
        raise ValueError(f"hosts: {text!r} is no host; write api.example.com, *.example.com or localhost:8377")
    return (found[1] or found[2]).lower().rstrip("."), int(found[3] or HTTPS)


def lets_through(host: str, port: int, entries: Iterable[Entry]) -> bool:
    """Return whether a list lets a host, as `split` has it, through."""
    return any(each.fits(host, port) for each in entries)


def may_connect(host: str, address: str) -> bool:
    """Return whether a host that is let through may have this address: one on the internet, unless the list names
    the address itself or `localhost`. Else a name that someone else answers for would reach this machine's network.
    """
    if _is_address(host):
        return True
    found = ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback if host == "localhost" else found.is_global


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
