"""What a sandbox is asked to be, which hosts its list lets through, and one run in it.

A list of hosts has names, names below a name, and addresses, each with its ports. It is defence in depth: a host on
it may itself pass things on.

Law: plain values that check themselves; a sandbox that says less than it seems to is refused here.

What is compared with a list is what is resolved, byte for byte. A host is a name as RFC 1123 has it, with `_`, and
IDNA only as `xn--`; or an address in its one usual form. Anything else fits no list, and no resolver sees it: one
written in C ends a name at NUL, and takes `127.1` for an address.

A name leads only to global unicast addresses: an IPv4 address that is written within an IPv6 one is judged as what it
is. Any other address is let through only where the list has that very entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal

from spoold.agents.sandbox.protected_files import NOTHING, Guarded

Kind = Literal["none", "bwrap", "systemd", "podman"]
Network = Literal["none", "host", "proxy"]
KINDS: tuple[Kind, ...] = ("none", "bwrap", "systemd", "podman")
NETWORKS: tuple[Network, ...] = ("none", "host", "proxy")
# What begins so leads the loader, or the library, of whatever program is started with it: it must count inside alone.
LOADER = ("LD_", "GCONV_PATH", "LOCPATH", "NLSPATH", "GLIBC_TUNABLES")


class NoSandbox(Exception):
    """The sandbox that was asked for is not to be had. problem: what failed; fix: what to do about it."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}; {fix}")
        self.problem, self.fix = problem, fix


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What the owner of a machine asks for. network: 'none' unless said, and 'host' without a sandbox; hosts: which
    ones a proxy lets through, such as api.example.com, *.example.com or localhost:8377; image: of podman; nested: the
    agent may make sandboxes of its own; memory_mb, processes: how much all of it may use together (systemd, podman);
    podman: the variables with which podman itself is started, {} for those of this process (`containers`).

    Errors: ValueError.
    """

    kind: Kind = "none"
    network: Network | None = None
    hosts: tuple[str, ...] = ()
    image: str = ""
    nested: bool = False
    memory_mb: int | None = None
    processes: int | None = None
    podman: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"sandbox: {self.kind!r} is none of {', '.join(KINDS)}")
        if self.network is None:
            object.__setattr__(self, "network", "host" if self.kind == "none" else "none")
        if self.network not in NETWORKS:
            raise ValueError(f"network: {self.network!r} is none of {', '.join(NETWORKS)}")
        if self.kind == "none" and self.network != "host":
            raise ValueError(f'network: "{self.network}" needs a sandbox; set sandbox = "bwrap"')
        if self.kind == "podman" and self.network == "proxy":
            raise ValueError('network: podman has no "proxy" here; set sandbox = "bwrap", or network = "none"')
        if (self.kind == "podman") != bool(self.image):
            raise ValueError('image: the image of a container; sandbox = "podman" needs one, and no other takes one')
        if self.hosts and self.network != "proxy":
            problem = f'hosts: the list counts for network = "proxy", and the network is "{self.network}"'
            raise ValueError(f'{problem}; add network = "proxy", or remove hosts')
        if self.network == "proxy" and not self.hosts:
            problem = 'network: "proxy" lets through the hosts of a list, and there is no list'
            raise ValueError(f'{problem}; add hosts = ["api.example.com"] with the hosts that it needs')
        if self.kind in ("none", "bwrap") and (self.memory_mb is not None or self.processes is not None):
            raise ValueError('memory_mb, processes: the kernel counts them for sandbox = "systemd" or "podman" alone')
        for host in self.hosts:
            entry(host)


@dataclass(frozen=True, slots=True)
class SandboxRun:
    """One run. All paths are absolute.

    workspace, home: writable, and the agent's own; env: all its variables, also its secrets; shown: may be read;
    writable: may be written, too; fixed: parts of what is writable that may only be read (settings of the agent);
    hidden: what must not be shown, with all below it (the spool); way_out: the socket of a proxy, '' for none; held:
    what of the workspace is held; others: whether others may change its folders meanwhile; empty: a folder with
    nothing in it, where something is held that is not there; calls: the file that says to podman which system calls
    there are; memory_mb: how much /tmp and /dev/shm may each hold, 0 for a quarter of the machine's memory; attempt:
    whose run it is, as TASK.ATTEMPT; holder: what a container says of the process that made it.
    """

    workspace: str
    home: str
    env: Mapping[str, str] = field(default_factory=dict)
    shown: Sequence[str] = ()
    writable: Sequence[str] = ()
    fixed: Sequence[str] = ()
    hidden: Sequence[str] = ()
    way_out: str = ""
    held: Guarded = NOTHING
    others: bool = False
    empty: str = ""
    calls: str = ""
    memory_mb: int = 0
    attempt: str = ""
    holder: str = ""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A command in its sandbox: start argv with exactly these variables, and with no descriptor but 0, 1 and 2."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


# Which hosts a list lets through: names, names below a name, addresses, each with its ports.


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
