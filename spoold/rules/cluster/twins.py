"""Machines with one identity: named to people, and never used to judge whether a node lives.

Law: two machines are twins only if beats of both were seen to move after both were there. A machine that was started
anew has another boot id too, but the beats of its former nodes stand still. Machines that were resumed from one image
have one boot id. They are twins if a node on one of them says that the process of another is gone, which then beats.
An NFS 4 server knows clients by their host names, so twins disturb each other there, and the warning must say so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from spoold.protocol.amount import some
from spoold.protocol.heartbeat import Heartbeat, HostId
from spoold.protocol.names import is_marked, unmarked
from spoold.rules.cluster.clocks import machine
from spoold.rules.share.mount_options import by_name

MEND = (
    "On all of them but one, run `rm /etc/machine-id; systemd-machine-id-setup`, give it a host name of its own "
    "(`hostnamectl set-hostname NAME`), and reboot it"
)
ALIKE = "have one machine id, as clones of one disk or memory image do"
ONE_CLIENT = (
    "an NFS 4 server takes machines of one host name for one client: each loses its opens and locks to the other, "
    "and calls wait, for 10 s and more while both are busy"
)
# So many nodes of one identity are compared, each with each: beats can be forged by the thousand.
COMPARED = 64


@dataclass(slots=True)
class _Seen:
    """A node's last beat; when (monotonic, s) the node was first seen, and its beat last seen to change."""

    beat: int
    first: float
    moved: float | None = None


class Twins:
    """Which nodes of one identity run on several machines, by their beats."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._missed: dict[str, str] = {}

    def look(self, beats: Mapping[str, int], now: float) -> None:
        """Take in the beat of each node, as listed now (monotonic, s)."""
        self._seen = {node: self._seen.get(node) or _Seen(beat, now) for node, beat in beats.items()}
        self._missed = {node: by for node, by in self._missed.items() if node in beats}
        for node, beat in beats.items():
            seen = self._seen[node]
            if seen.beat != beat:
                seen.beat, seen.moved = beat, now

    def miss(self, node: str, by: str) -> None:
        """Take in that a node beats, though another one, on its own host, has said that its process is gone."""
        self._missed[node] = by

    def warnings(self, nodes: Iterable[Heartbeat]) -> list[str]:
        """Return a warning for each identity that several machines have, with the fix. nodes: the last beats."""
        alike: dict[tuple[str, str], list[Heartbeat]] = defaultdict(list)
        for beat in nodes:
            alike[beat.host.hostname, unmarked(beat.host.machine_id)].append(beat)
        found = []
        for (hostname, _), same in sorted(alike.items()):
            if named := self._of(same):
                clients = [beat for beat in same if beat.node in named and beat.mount and by_name(beat.mount)]
                found.append(warning(hostname, named, one_client=len(clients) > 1))
        return found

    def _of(self, same: list[Heartbeat]) -> list[str]:
        """Return the nodes among these that have a twin; of very many, those among the ones that moved last."""
        moved = {beat.node: at for beat in same if (at := self._moved_at(beat.node)) is not None}
        missed = {node for node in moved if self._missed.get(node) in moved}
        missed |= {self._missed[node] for node in missed}
        if len({(beat.host.machine_id, beat.host.boot_id) for beat in same if beat.node in moved}) < 2:
            return sorted(missed)  # else nodes of one machine
        latest = sorted((beat for beat in same if beat.node in moved), key=lambda beat: -moved[beat.node])[:COMPARED]
        pairs = [
            (one.node, other.node)
            for one, other in combinations(latest, 2)
            if are_twins(one.host, other.host) and self._both_move(one.node, other.node, moved)
        ]
        return sorted(missed.union(*pairs))

    def _moved_at(self, node: str) -> float | None:
        seen = self._seen.get(node)
        return None if seen is None else seen.moved

    def _both_move(self, one: str, other: str, moved: Mapping[str, float]) -> bool:
        return moved[one] > self._seen[other].first and moved[other] > self._seen[one].first


def are_twins(one: HostId, other: HostId) -> bool:
    """Return whether two identities are those of one machine, and yet of two that run.

    For nodes that both live: of one machine they would have one boot id, and neither would have marked it.
    """
    if one.hostname != other.hostname or unmarked(one.machine_id) != unmarked(other.machine_id):
        return False
    if one.boot_id != other.boot_id:
        return "" not in (unmarked(one.machine_id), one.boot_id, other.boot_id)
    return one.machine_id != other.machine_id and (is_marked(one.machine_id) or is_marked(other.machine_id))


def warning(hostname: str, nodes: list[str], *, one_client: bool) -> str:
    """Return the warning about machines of one identity, with the fix. nodes: those that run on them.

    one_client: several of them mount the spool from a server that knows clients by their host names.
    """
    so = f"several machines called {machine(hostname, '(no host name)')} {ALIKE}. They run {some(nodes)}"
    if not one_client:
        return f"{so}, whose tasks run as on other nodes. {MEND}"
    dead = "A worker whose beats wait for too long is taken for dead, and its tasks run again"
    return f"{so}, which disturb each other, since {ONE_CLIENT}. {dead}. {MEND}"
