"""What a sandbox says of itself is what it is: everything else is refused with a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from spoold.agents.sandbox.sandbox_policy import SandboxPolicy


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"kind": "docker"}, "is none of"),
        ({"kind": "bwrap", "network": "lan"}, "is none of"),
        ({"network": "none"}, "needs a sandbox"),
        ({"kind": "bwrap", "network": "proxy"}, r"there is no list; add hosts = \["),
        ({"kind": "bwrap", "hosts": ("api.example.com",)}, 'network is "none"; add network = "proxy"'),
        ({"kind": "bwrap", "network": "proxy", "hosts": ("https://api.example.com",)}, "is no host"),
        ({"kind": "bwrap", "network": "proxy", "hosts": ("*",)}, "is no host"),
        ({"kind": "bwrap", "network": "proxy", "hosts": ("a.example.com:0",)}, "is no host"),
        ({"kind": "podman"}, "the image of a container"),
        ({"kind": "bwrap", "image": "x"}, "the image of a container"),
        ({"kind": "podman", "image": "x", "network": "proxy", "hosts": ("a.example.com",)}, "podman has no"),
        ({"kind": "bwrap", "memory_mb": 100}, "the kernel counts them"),
        ({"processes": 10}, "the kernel counts them"),
    ],
)
def test_a_sandbox_that_would_not_do_what_it_says(said: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        SandboxPolicy(**said)


def test_what_is_not_said_of_the_network() -> None:
    assert SandboxPolicy().network == "host"
    assert SandboxPolicy("bwrap").network == "none"
    assert SandboxPolicy("podman", image="agents:1").network == "none"
