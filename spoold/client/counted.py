"""The picture of the cluster where the leader has none: made by listing, with a warning that says why.

Law: looks and never touches, and opens no task file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import LeaseName
from spoold.protocol.snapshot import Leadership, Snapshot, no_tasks
from spoold.rules.cluster.election import MISSING, MISSING_MEND
from spoold.rules.cluster.node_status import count_workers, node_of
from spoold.rules.cluster.pool_clock import warnings as clock_warnings
from spoold.rules.gates.standing_requests import halted_by, paused_by
from spoold.store import control
from spoold.store.census import census
from spoold.store.clocks import by_host
from spoold.store.mount_facts import mount_warnings, mounts_of
from spoold.store.obstacles import barriers, named, obstacles
from spoold.store.store import Store

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
    requests, others = control.list_control(store.fs)
    counted.misnamed.see_requests(others)
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
    name = lease.holder if lease is not None and leads else None
    mounts = mounts_of({n: beat for n, beat in nodes.items() if n not in dead})
    return Snapshot(
        generated_at=store.stamp(),
        spool_id=store.marker.spool_id,
        source="listing",
        master=Leadership(
            leader=name, epoch=lease.epoch if lease else 0, standbys=tuple(n for n in masters if n != name)
        ),
        tasks=counted.tasks,
        workers=count_workers(node.state for node in shown),
        nodes=shown,
        types=dict(sorted(types.items())),
        paused=tuple(sorted(paused)),
        halted=halted_by(requests),
        warnings=(
            *blocked,
            why or _why_listed(name, lease, store.read_only, mend_first=bool(blocked)),
            *named(barriers(store.fs, counted.blocked)),
            *counted.misnamed.warnings(),
            *store.revisions.warnings[:SETTINGS_TOLD],
            *clock_warnings(by_host(nodes.values())),
            *mount_warnings(store, mounts),
        ),
    )


def _why_listed(leader: str | None, lease: LeaseName | None, read_only: bool, *, mend_first: bool) -> str:
    """mend_first: a directory of the spool is not a directory, which keeps a running master from leading."""
    if leader is not None:
        return f"{leader} leads but has reported nothing new; these figures were counted just now"
    why, mend = "no leader is seen, so", "start `spool master` or `spool up` on any machine that mounts the spool"
    if lease is None:
        why, mend = f"{MISSING}, and", MISSING_MEND
    counted = "these figures were counted just now"
    if read_only:  # no master could lead here, and perhaps none elsewhere
        return f"{why} nothing is admitted, retried or taken back; {counted}"
    if mend_first:
        alone = "; then" if lease is None else ": a master that runs leads again by itself. If none runs,"
        mend = f"first fix the directories named above{alone} {mend}"
    return f"{why} nothing is admitted, retried or taken back; {counted}. {mend[0].upper()}{mend[1:]}"
