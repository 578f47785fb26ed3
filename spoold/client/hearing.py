"""How long a worker has been silent, where that is longer than its lease: its attempts may be frozen by now.

Law: no state is derived from a stamp alone. A beat that was renewed since it was written counts from its last
renewal. A node on this host stamps with our own clock. A node elsewhere is watched, and one that beats is not silent.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from dataclasses import replace

from spoold.client.living import Sleep, beating
from spoold.protocol.amount import amount, length, some
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.timestamps import moment
from spoold.rules.answers.task_facts import Case
from spoold.rules.attempts.attempt_costs import BEAT_EVERY
from spoold.rules.cluster.node_status import ASLEEP
from spoold.rules.cluster.pool_clock import EQUAL_S
from spoold.store import beats
from spoold.store.clocks import by_host, machine
from spoold.store.presence import known_gone, runs_here
from spoold.store.store import Store
from spoold.system.clock import Clock
from spoold.system.host import Host


def with_silence(
    case: Case, store: Store, host: Host, clock: Clock, nodes: dict[str, Heartbeat], *, sleep: Sleep = time.sleep
) -> Case:
    """Return the case, with its worker's silence where that is longer than a lease. Errors: OSError."""
    claim = case.claim
    silent_s = None if claim is None else _silences(store, host, clock, nodes).get(claim.worker)
    if claim is None or silent_s is None or known_gone(store.fs, nodes[claim.worker], host):
        return case
    node = {claim.worker: nodes[claim.worker]}
    # A worker that counts as dead was watched already.
    if claim.alive and not runs_here(node[claim.worker], host) and beating(store, clock, node, sleep):
        return case
    return replace(case, claim=replace(claim, silent_s=silent_s))


def silence_warnings(
    store: Store, host: Host, clock: Clock, nodes: dict[str, Heartbeat], dead: Container[str]
) -> Iterator[str]:
    """Yield the warning about silent workers, where no node leads. dead: watched, and not seen to beat."""
    silences = _silences(store, host, clock, nodes)
    silent = sorted(
        node
        for node, beat in nodes.items()
        if beat.role == "worker"
        and not known_gone(store.fs, beat, host)
        and (node in dead or (node in silences and runs_here(beat, host)))
    )
    if silent:
        since = min((silences[node] for node in silent if node in silences), default=0.0)
        ago = f" for {length(since)}" if since else ""
        have, then = "have", "their attempts are frozen there if their leases are over"
        if len(silent) == 1:
            have, then = "has", "its attempts are frozen there if its lease is over"
        yield f"{amount(len(silent), 'worker')} {have} not been heard of{ago} ({some(silent)}): {then}"


def _silences(store: Store, host: Host, clock: Clock, nodes: dict[str, Heartbeat]) -> dict[str, float]:
    """Return the workers whose last beat seems older than a lease, with its apparent age (s)."""
    ahead = by_host(nodes.values())
    mine_s = ahead.get(host.identity().hostname, 0.0)
    ages: dict[str, float] = {}
    for node, beat in nodes.items():
        if beat.role == "worker" and beat.status != ASLEEP:
            stamp = moment(beat.at)
            if stamp is None:
                continue
            ages[node] = clock.wall() - mine_s - (stamp - ahead.get(machine(beat), 0.0))
    lease_s = store.settings.heartbeat.lease_s
    old = {node: age for node, age in ages.items() if age > lease_s + EQUAL_S}
    names = beats.list_beats(store.fs) if old else {}
    for node in old:
        renewals = max(0, names[node].beat - nodes[node].beat) if node in names else 0
        old[node] -= renewals * nodes[node].interval_s * BEAT_EVERY
    return {node: age for node, age in old.items() if age > lease_s + EQUAL_S}
