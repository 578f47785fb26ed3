"""Whether an address is this machine's own.

Law: the kernel is asked each time: an address may come or go at any moment. What it routes to itself is its own also
where no interface has that address (AnyIP), and what an interface has is its own also behind a route of another table
(VRF). Whether a socket can be bound to it proves nothing: `ip_nonlocal_bind` allows that for any.

Touches: processes, the network.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from ipaddress import ip_address

import psutil

from spoold.agents.sandbox import hosts

# linux/rtnetlink.h, linux/netlink.h
_GET_ROUTE, _NEW_ROUTE, _REQUEST, _ERROR, _TO = 26, 24, 1, 2, 1
_UNICAST = 1
_HEADER, _ROUTE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBBBBBI"), struct.Struct("=HH")
_ANSWER_S = 5.0


def is_own(address: str) -> bool:
    """Return whether packets to this address, or to the IPv4 address that is written within it, stay on this machine.

    Errors: OSError, where there is no route to it, or the kernel does not say.
    """
    to, *within = map(str, hosts.meant(address))
    interfaces = {each.address for some in psutil.net_if_addrs().values() for each in some}
    if not interfaces.isdisjoint((to, *within)) or _kind_of_route(to) != _UNICAST:
        return True
    with suppress(OSError):  # a network that translates needs no route to it
        return any(_kind_of_route(one) != _UNICAST for one in within)
    return False


def _kind_of_route(address: str) -> int:
    """Return the type of the route that a connection to it would take (RTN_…). Errors: OSError."""
    to = ip_address(address)
    family = socket.AF_INET if to.version == 4 else socket.AF_INET6
    route = _ROUTE.pack(family, to.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    body = route + _ATTRIBUTE.pack(_ATTRIBUTE.size + len(to.packed), _TO) + to.packed
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_ANSWER_S)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), _GET_ROUTE, _REQUEST, 1, 0) + body)
        answer = kernel.recv(1 << 16)
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _ERROR:
        number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        raise OSError(number, os.strerror(number))
    if kind != _NEW_ROUTE:
        raise OSError(f"the kernel answered with a message of type {kind} when it was asked for a route")
    return int(_ROUTE.unpack_from(answer, _HEADER.size)[7])
