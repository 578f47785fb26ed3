"""What a sandbox is asked to be, and one run in it.

Law: plain values that check themselves; a sandbox that says less than it seems to is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from spoold.agents.sandbox.guarded import NOTHING, Guarded
from spoold.agents.sandbox.hosts import entry

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
class Sandbox:
    """What the owner of a machine asks for. network: 'none' unless said, and 'host' without a sandbox; hosts: which
    ones a proxy lets through, such as api.example.com, *.example.com or localhost:8377; image: of podman; nested: the
    agent may make sandboxes of its own; memory_mb, processes: how much all of it may use together (systemd, podman).

    Errors: ValueError.
    """

    kind: Kind = "none"
    network: Network | None = None
    hosts: tuple[str, ...] = ()
    image: str = ""
    nested: bool = False
    memory_mb: int | None = None
    processes: int | None = None

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
class Scene:
    """One run. All paths are absolute.

    workspace, home: writable, and the agent's own; env: all its variables, also its secrets; shown: may be read;
    writable: may be written, too; fixed: parts of what is writable that may only be read (settings of the agent);
    hidden: what must not be shown, with all below it (the spool); way_out: the socket of a proxy, '' for none; held:
    what of the workspace is held; others: whether others may change its folders meanwhile; empty: a folder with
    nothing in it, where something is held that is not there; calls: the file that says to podman which system calls
    there are; memory_mb: how much /tmp and /dev/shm may each hold, 0 for a quarter of the machine's memory.
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


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A command in its sandbox: start argv with exactly these variables, and with no descriptor but 0, 1 and 2."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
