"""What the picture of the pool needs only at times: a picture made by listing where the leader has none, with a
warning that says why; and how long a worker has been silent, where that is longer than its lease.

It stands apart from `spool_status`, which loads it when it needs it: it imports models.

Law: looks and never touches, and opens no task file. No state is derived from a stamp alone. A beat that was renewed
since it was written counts from its last renewal. A node on this host stamps with our own clock. A node elsewhere is
watched, and one that beats is not silent.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from spoold.client.spool.living_nodes import Sleep, beating
from spoold.protocol.amount import amount, length, some
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import LeaseName
from spoold.protocol.snapshot import Leadership, Snapshot, no_tasks
from spoold.protocol.timestamps import moment
from spoold.rules.answers.task_facts import Case
from spoold.rules.attempts.attempt_costs import BEAT_EVERY
from spoold.rules.cluster.election import MISSING, MISSING_MEND, takes_over
from spoold.rules.cluster.node_status import ASLEEP, count_workers, left_warnings, node_of
from spoold.rules.cluster.pool_clock import EQUAL_S
from spoold.rules.cluster.pool_clock import warnings as clock_warnings
from spoold.rules.gates.standing_requests import halted_by, paused_by
from spoold.store import control, heartbeats
from spoold.store.doctor_reports import mount_warnings, mounts_of
from spoold.store.own_heartbeat import known_gone, runs_here
from spoold.store.path_conflicts import barriers, named, obstacles
from spoold.store.pool_clock import by_host, machine
from spoold.store.state_counts import census
from spoold.store.store import Store
from spoold.system.clock import Clock
from spoold.system.host import Host

# So many faults of settings/ are named.
SETTINGS_TOLD = 5


def as_models(nodes: Mapping[str, Any]) -> dict[str, Heartbeat]:
    """Return the same beats, all as models; some may have been read plainly."""
    return {
        node: beat if isinstance(beat, Heartbeat) else Heartbeat.model_validate(beat.model_dump(mode="json"))
        for node, beat in nodes.items()
    }


def listing(
    store: Store,
    lease: LeaseName | None,
    nodes: dict[str, Heartbeat],
    dead: set[str],
    *,
    leads: bool,
    now: float,
    why: str = "",
) -> Snapshot:
    """Return a picture made by listing, with a warning that says why. leads: whether the lease's holder leads; now:
    the time (s since 1970) by which pauses end.
    """
    counted, blocked = census(store.fs), obstacles(store.fs)
    requests, foreign = control.list_control(store.fs)
    counted.misnamed.see_requests(foreign)
    with suppress(OSError):
        store.revisions.look()
    paused = paused_by(requests, control.ends_of(store.fs, requests), now)
    workers = [beat for _, beat in sorted(nodes.items()) if beat.role == "worker"]
    shown = tuple(node_of(beat, counted.claims.get(beat.node, ()), dead=beat.node in dead) for beat in workers)
    types = {kind: dict(states) for kind, states in counted.types.items()}
    for task in (task for node in shown for task in node.tasks if "type" in task):
        kind = types.setdefault(task["type"], no_tasks())
        kind["running"] += 1
        kind["active"] += 1
    masters = [n for n, beat in sorted(nodes.items()) if beat.role == "master" and n not in dead]
    holder = lease.holder if lease is not None else None
    name, others = holder if leads else None, [node for node in masters if node != holder]
    mounts = mounts_of({n: beat for n, beat in nodes.items() if n not in dead})
    return Snapshot(
        generated_at=store.stamp(),
        spool_id=store.marker.spool_id,
        source="listing",
        master=Leadership(leader=name, epoch=lease.epoch if lease else 0, standbys=tuple(others)),
        tasks=counted.tasks,
        workers=count_workers(node.state for node in shown),
        nodes=shown,
        types=dict(sorted(types.items())),
        paused=tuple(sorted(paused)),
        halted=halted_by(requests),
        warnings=(
            *blocked,
            why or _why_listed(store, name, lease, others, mend_first=bool(blocked)),
            *left_warnings(workers),
            *named(barriers(store.fs, counted.blocked)),
            *counted.misnamed.warnings(),
            *store.revisions.warnings[:SETTINGS_TOLD],
            *clock_warnings(by_host(nodes.values())),
            *mount_warnings(store, mounts),
        ),
    )


def _why_listed(
    store: Store, leader: str | None, lease: LeaseName | None, standbys: list[str], *, mend_first: bool
) -> str:
    """standbys: masters that are alive and hold no token; mend_first: a directory of the spool is not a directory,
    which keeps them from leading.
    """
    if leader is not None:
        return f"{leader} leads but has reported nothing new; these figures were counted just now"
    why, mend = "no leader is seen, so", "start `spool master` or `spool up` on any machine that mounts the spool"
    if lease is None:
        why, mend = f"{MISSING}, and", MISSING_MEND
    counted = "these figures were counted just now"
    if lease is not None and standbys and not mend_first:
        soon = takes_over(standbys, store.settings.heartbeat.dead_after_s)
        return f"{why} nothing is admitted, retried or taken back; {counted}. {soon}"
    if store.read_only:  # no master could lead here, and perhaps none elsewhere
        return f"{why} nothing is admitted, retried or taken back; {counted}"
    if mend_first:
        alone = "; then" if lease is None else ": a master that runs leads again by itself. If none runs,"
        mend = f"first fix the directories named above{alone} {mend}"
    return f"{why} nothing is admitted, retried or taken back; {counted}. {mend[0].upper()}{mend[1:]}"


# How long a worker has been silent, where that is longer than its lease: its attempts may be frozen by now.


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
    names = heartbeats.list_beats(store.fs) if old else {}
    for node in old:
        renewals = max(0, names[node].beat - nodes[node].beat) if node in names else 0
        old[node] -= renewals * nodes[node].interval_s * BEAT_EVERY
    return {node: age for node, age in old.items() if age > lease_s + EQUAL_S}
