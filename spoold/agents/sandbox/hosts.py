"""Which hosts a list lets through: names, names below a name, addresses, each with its ports.

A list of hosts is defence in depth: a host on it may itself pass things on.

Law: pure. A name leads only to global unicast addresses: an IPv4 address that is written within an IPv6 one is judged
as what it is. Any other address is let through only where the list has that very entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

HTTPS = 443
# What IANA has given out; the rest of IPv6 is reserved, local to a site or a group.
_UNICAST = ip_network("2000::/3")
# The networks through which a translator or a relay (NAT64, 6to4) passes a packet on to the IPv4 address within it,
# and the bits behind that address.
_WITHIN = ((ip_network("64:ff9b::/96"), 0), (ip_network("2002::/16"), 80))
# Special, and global for some release of Python: protocol assignments, such as the router that is nearest, relays
# of 6to4, and documentation.
_SPECIAL = tuple(ip_network(one) for one in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20"))
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
    return found.is_loopback if host == "localhost" else _is_global_unicast(found)


def _is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        for network, behind in _WITHIN:
            if address in network:
                return _is_global_unicast(IPv4Address(int(address) >> behind & 0xFFFFFFFF))
        if address not in _UNICAST:
            return False
    special = address.is_multicast or address.is_reserved or any(address in network for network in _SPECIAL)
    return address.is_global and not special


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
