"""Which addresses a name may lead to: the special-purpose registries of IANA, and what is written within others."""

from __future__ import annotations

import random
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest

from spoold.agents.sandbox.sandbox_policy import may_connect

# iana-ipv4-special-registry, with multicast (RFC 5771): all that a name has no business in.
IPV4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
]
# iana-ipv6-special-registry, with what is reserved, local to a site (RFC 3879), IPv4-compatible, and multicast.
IPV6 = [
    "::/128",
    "::1/128",
    "::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001::/32",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:2::/48",
    "2001:3::/32",
    "2001:10::/28",
    "2001:20::/28",
    "2001:30::/28",
    "2001:db8::/32",
    "3fff::/20",
    "4000::/3",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "ff0e::/16",
    "::/8",
    "200::/7",
]
# fmt: on
# Which of these stand within an IPv6 address that is passed on to them.
WITHIN = ("::ffff:0:0/96", "64:ff9b::/96", "2002::/16", "::/96", "64:ff9b:1::/96", "2001::/32")


def inside(network: str, chance: random.Random) -> IPv4Address | IPv6Address:
    """A random address of a network; often one at its border."""
    found = ip_network(network)
    return found[chance.choice([0, -1, chance.randrange(found.num_addresses)])]


def within(network: str, address: IPv4Address, chance: random.Random) -> IPv6Address:
    """An IPv6 address of such a network that stands for an IPv4 one."""
    first = int(IPv6Network(network).network_address)
    if network == "2002::/16":
        return IPv6Address(first | int(address) << 80 | chance.getrandbits(80))
    if network == "2001::/32":  # Teredo has it inverted
        return IPv6Address(first | chance.getrandbits(32) << 64 | int(address) ^ 0xFFFFFFFF)
    return IPv6Address(first | int(address))


@pytest.mark.parametrize("network", [*IPV4, *IPV6])
def test_no_name_leads_to_a_special_address(network: str) -> None:
    """G34: NAT64, IPv4-compatible and site-local addresses and multicast counted as global."""
    chance = random.Random(network)
    for _ in range(50):
        address = inside(network, chance)
        assert not may_connect("api.example.com", str(address)), address
        if isinstance(address, IPv4Address):
            for outer in WITHIN:
                assert not may_connect("api.example.com", str(within(outer, address, chance))), (address, outer)
        else:
            assert not may_connect("api.example.com", f"{address}%eth0")


def test_a_name_leads_to_every_global_unicast_address() -> None:
    """G34: also where a network translates IPv4 (NAT64), or the address is a mapped one."""
    chance = random.Random(34)
    special = [ip_network(one) for one in (*IPV4, *IPV6)]
    for _ in range(2000):
        plain = IPv4Address(chance.getrandbits(32))
        if not any(plain in one for one in special if isinstance(one, IPv4Network)):
            assert may_connect("api.example.com", str(plain)), plain
            for outer in WITHIN[:3]:
                assert may_connect("api.example.com", str(within(outer, plain, chance))), (plain, outer)
        far = IPv6Address(1 << 125 | chance.getrandbits(125))
        if far not in ip_network("2002::/16") and not any(
            far in one for one in special if isinstance(one, IPv6Network)
        ):
            assert may_connect("api.example.com", str(far)), far


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.8.9.1"])
def test_localhost_leads_to_this_machine_and_nowhere_else(address: str) -> None:
    assert may_connect("localhost", address)
    assert not may_connect("localhost", "93.184.216.34")
    assert not may_connect("localhost", "64:ff9b::7f00:1")


def test_an_address_that_the_list_names_is_let_through() -> None:
    assert ip_address("64:ff9b::a00:1") in ip_network("64:ff9b::/96")
    assert may_connect("64:ff9b::a00:1", "64:ff9b::a00:1")
