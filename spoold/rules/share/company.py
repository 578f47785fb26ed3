"""The meaning of who takes part: machines of one name or one identity, one machine twice, the server itself.

Law: as in `checkup`; but nothing here needs a trial, so it is judged and said before the first one. A member that has
just spoken lives: if its process is not found on a machine of its own identity, both are twins. Where an NFS 4 server
takes several members for one client, no trial of theirs says anything about the share, so none is made; and what was
not tried is not safe.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations

from spoold.protocol.amount import some
from spoold.protocol.heartbeat import HostId, MountFacts
from spoold.protocol.report import Remark, Strategy
from spoold.rules.cluster.twins import ALIKE, MEND, ONE_CLIENT, are_twins
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
