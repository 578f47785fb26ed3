"""The meaning of who takes part: machines of one name or one identity, one machine twice, the server itself.

Law: as in `trial_findings`; but nothing here needs a trial, so it is judged and said before the first one. A member
that has just spoken lives: if its process is not found on a machine of its own identity, both are twins. Where an NFS
4 server takes several members for one client, no trial of theirs says anything about the share, so none is made; and
what was not tried is not safe.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from spoold.protocol.amount import some
from spoold.protocol.doctor_report import Remark, Strategy
from spoold.protocol.heartbeat import Heartbeat, HostId, MountFacts
from spoold.protocol.names import is_marked, unmarked
from spoold.rules.cluster.pool_clock import machine
from spoold.rules.share.mount_options import beside, by_name, family
from spoold.rules.share.remarks import BOTH, LOCK, bad, warning

NAME_EACH = "give each a host name of its own (`hostnamectl set-hostname NAME`)"
AGAIN = "mount the share there again, and let the doctor run again"


@dataclass(frozen=True, slots=True)
class Company:
    """The members by node: their hosts, and their mounts as far as known.

    missed: those whose process another member looked for in vain, on a machine of the same identity.
    """

    hosts: Mapping[str, HostId]
    mounts: Mapping[str, MountFacts]
    missed: Collection[str] = ()


def judge_company(company: Company) -> list[Remark]:
    """The remarks that follow from who takes part, those on twins first."""
    return [*_twins(company), *_one_client(company), *_namesakes(company), *_crowded(company), *_beside(company)]


def clients_of_one_name(company: Company) -> list[str]:
    """Return the host names of several machines that an NFS 4 server takes for one client."""
    at = company.mounts
    named = [node for node in company.hosts if node in at and by_name(at[node])]
    return _shared_names(company, named)


def _shared_names(company: Company, nodes: Collection[str]) -> list[str]:
    """Return the host names that several machines among these nodes have."""
    by_hostname: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        by_hostname[company.hosts[node].hostname].append(node)
    return sorted(name for name, same in by_hostname.items() if _several(company, same))


def _several(company: Company, nodes: Collection[str]) -> bool:
    boots = {company.hosts[node].boot_id for node in nodes}
    return len(boots) > 1 or (len(nodes) > 1 and not set(company.missed).isdisjoint(nodes))


def _one_client(company: Company) -> list[Remark]:
    names = clients_of_one_name(company)
    if not names:
        return []
    problem = f"no trial was made, because several machines are called {some(names)}, and {ONE_CLIENT}"
    return [bad("peers", problem, f"{NAME_EACH}, {AGAIN}", BOTH)]


def _namesakes(company: Company) -> list[Remark]:
    """Machines of one name where a server may know clients by it."""
    at, known = company.mounts, clients_of_one_name(company)
    nodes = [node for node in company.hosts if node not in at or family(at[node].fstype) == "nfs"]
    names = [name for name in _shared_names(company, nodes) if name not in known]
    if not names:
        return []
    problem = f"several machines are called {some(names)}, and an NFS server may take them for one"
    return [bad("peers", f"{problem}: both were seen to hold one lock", NAME_EACH, LOCK)]


def _twins(company: Company) -> list[Remark]:
    hosts = company.hosts
    cloned = {one.hostname for one, other in combinations(hosts.values(), 2) if are_twins(one, other)}
    names = sorted(cloned | {hosts[node].hostname for node in company.missed if node in hosts})
    if not names:
        return []
    return [warning("peers", f"several machines called {some(names)} {ALIKE}", MEND[0].lower() + MEND[1:])]


def _crowded(company: Company) -> list[Remark]:
    boots = Counter(host.boot_id for node, host in company.hosts.items() if node not in company.missed)
    if not any(count > 1 for boot, count in boots.items() if boot):
        return []
    problem = "some of the machines are one and the same, which proves less than two kernels would"
    return [warning("peers", problem, "run it on different machines")]


def _beside(company: Company) -> list[Remark]:
    """A member that works on the server's own disk."""
    found = []
    shared = [mount for mount in company.mounts.values() if mount.network]
    if any(not mount.network for mount in company.mounts.values()):
        for strategy in ("lock", "rename"):
            problem, mend = beside(shared, strategy)
            if problem:
                against: tuple[Strategy, ...] = LOCK if strategy == "lock" else ()
                grade = "bad" if against else "warning"
                text = f"one of the machines {problem}"
                found.append(Remark(grade=grade, probe="peers", problem=text, mend=mend, against=against))
    return found


# Machines with one identity: named to people, and never used to judge whether a node lives.
# Law: two machines are twins only if beats of both were seen to move after both were there. A machine that was
# started anew has another boot id too, but the beats of its former nodes stand still. Machines that were resumed
# from one image have one boot id. They are twins if a node on one of them says that the process of another is gone,
# which then beats. An NFS 4 server knows clients by their host names, so twins disturb each other there, and the
# warning must say so.


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
                found.append(warning_of_twins(hostname, named, one_client=len(clients) > 1))
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


def warning_of_twins(hostname: str, nodes: list[str], *, one_client: bool) -> str:
    """Return the warning about machines of one identity, with the fix. nodes: those that run on them.

    one_client: several of them mount the spool from a server that knows clients by their host names.
    """
    so = f"several machines called {machine(hostname, '(no host name)')} {ALIKE}. They run {some(nodes)}"
    if not one_client:
        return f"{so}, whose tasks run as on other nodes. {MEND}"
    dead = "A worker whose beats wait for too long is taken for dead, and its tasks run again"
    return f"{so}, which disturb each other, since {ONE_CLIENT}. {dead}. {MEND}"
