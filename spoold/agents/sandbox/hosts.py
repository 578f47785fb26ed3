"""Which hosts a list lets through: names, names below a name, addresses, each with its ports.

A list of hosts is defence in depth: a host on it may itself pass things on.

Law: pure. What is compared with a list is what is resolved, byte for byte. A host is a name as RFC 1123 has it, with
`_`, and IDNA only as `xn--`; or an address in its one usual form. Anything else fits no list, and no resolver sees
it: one written in C ends a name at NUL, and takes `127.1` for an address.

A name leads only to global unicast addresses: an IPv4 address that is written within an IPv6 one is judged as what it
is. Any other address is let through only where the list has that very entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

HTTPS = 443
# How the fix for a host that is not listed ends.
UNLISTED = "to hosts in the sandbox of the profile"
# What IANA has given out; the rest of IPv6 is reserved, local to a site or a group.
_UNICAST = ip_network("2000::/3")
# The networks through which a translator or a relay (NAT64, 6to4) passes a packet on to the IPv4 address within it,
# and the bits behind that address.
_WITHIN = ((ip_network("64:ff9b::/96"), 0), (ip_network("2002::/16"), 80))
# Special, and global for some release of Python: protocol assignments, such as the router that is nearest, relays
# of 6to4, and documentation.
_SPECIAL = tuple(ip_network(one) for one in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20"))
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+))(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NAME_MOST = 253
# A name that ends so is an address for `inet_aton`.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_WRONG = "is no host; write api.example.com, *.example.com or localhost:8377"


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
    below = text.startswith("*.")
    try:
        host, port = split(text.removeprefix("*."))
    except ValueError:
        raise ValueError(f"hosts: {text!r} {_WRONG}") from None
    if below and _is_address(host):
        raise ValueError(f"hosts: {text!r}: no name is below an address; write {host}")
    return Entry(host, port, below)


def split(text: str, port: int = HTTPS) -> tuple[str, int]:
    """Return host and port of HOST, HOST:PORT or [ADDRESS]:PORT, the host as lists compare it: a name in lower case
    without the dot at its end, or an address. port: where the text has none; with 0 it needs one. Errors: ValueError.
    """
    found = _HOST.fullmatch(text)
    host = found and (_address(found[1], 6) if found[1] else _address(found[2], 4) or _name(found[2]))
    if not found or not host or not 0 < int(found[3] or port) < 65536:
        raise ValueError(f"hosts: {text!r} {_WRONG}")
    return host, int(found[3] or port)


def is_host(text: str) -> bool:
    """Return whether `split` takes it."""
    try:
        split(text)
    except ValueError:
        return False
    return True


def _name(text: str) -> str:
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    fine = len(name) <= _NAME_MOST and all(map(_LABEL.fullmatch, labels)) and not _NUMBER.fullmatch(labels[-1])
    return name if fine else ""


def _address(text: str, version: int) -> str:
    try:
        found = ip_address(text)
    except ValueError:
        return ""
    return str(found) if found.version == version else ""


def lets_through(host: str, port: int, entries: Iterable[Entry]) -> bool:
    """Return whether a list lets a host, as `split` has it, through."""
    return any(each.fits(host, port) for each in entries)


def may_connect(host: str, address: str) -> bool:
    """Return whether a host that is let through may have this address: one on the internet, unless the list names
    the address itself or `localhost`. Else a name that someone else answers for would reach this machine's network.
    """
    if _is_address(host):
        return True
    found = meant(address)
    return found[0].is_loopback if host == "localhost" else _is_global_unicast(found[-1])


def leads_where_it_says(host: str) -> bool:
    """Return whether a host is an address or `localhost`: a list with it says itself which machine that is."""
    return host == "localhost" or _is_address(host)


def meant(address: str) -> tuple[IPv4Address | IPv6Address, ...]:
    """Return the address that a connection to this one has (an IPv4 one, where it is mapped), and after it the one to
    which a translator or a relay passes it on, if there is one.
    """
    found = ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    for network, behind in _WITHIN:
        if found in network:
            return found, IPv4Address(int(found) >> behind & 0xFFFFFFFF)
    return (found,)


def _is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    special = address.is_multicast or address.is_reserved or any(address in network for network in _SPECIAL)
    return address.is_global and not special


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
