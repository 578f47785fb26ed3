"""The picture of the cluster: the leader's own, while it lives, else one made by listing.

Law: a snapshot is only as good as the leader behind it. On its own host a process is looked up; elsewhere a snapshot
that is fresh by the wall clock is believed, since it is for people; else the token of leadership is watched, which a
live leader renames at least every 2.5 seconds. Nothing here decides a move, and no task file is opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import NOBODY, LeaseName
from spoold.protocol.request import halted_by, paused_by
from spoold.protocol.snapshot import Leadership, Node, Snapshot
from spoold.rules.disk import is_warning
from spoold.rules.lease import MISSING, MISSING_MEND
from spoold.rules.nodes import ASLEEP, count_workers, node_of
from spoold.store import beats, control, snapshots
from spoold.store.lease import read_lease
from spoold.store.mounting import mount_warnings, mounts_of
from spoold.store.presence import SAY_AGAIN, provably_gone, runs_here
from spoold.store.store import Store
from spoold.store.survey import census, list_claims
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem
from spoold.system.host import Host

FRESH_S = 15.0
RENEWED_WITHIN_S = 3.0
LOOK_EVERY_S = 0.1
# Long enough for a move to be over on a slow share, and for its directories to be listed anew.
LOOK_AGAIN_S = 0.5
# Stamps are of other machines' clocks: a node is called dead by them only when they are far behind.
PATIENCE = 2.0

Sleep = Callable[[float], None]


def status(store: Store, host: Host, clock: Clock, *, sleep: Sleep = time.sleep) -> Snapshot:
    """The cluster now; up to 0.3 s old where a leader lives, on a share a second or some. Errors: OSError.

    Whether a leader lives may take 3 s to find out.
    The room on the share is looked at here: on a full one no leader can publish what it sees.
    """
    picture = _picture(store, host, clock, sleep)
    others = (warning for warning in picture.warnings if not is_warning(warning))
    return picture.model_copy(update={"warnings": (*store.room_warnings(), *others)})


def _picture(store: Store, host: Host, clock: Clock, sleep: Sleep) -> Snapshot:
    """The leader's picture, while it lives, else one made by listing."""
    lease = sure_lease(store.fs, sleep)
    nodes = beats.read_all(store.fs)
    if lease is None or lease.holder == NOBODY:
        return _listing(store, host, clock, lease, nodes)
    holder = nodes.get(lease.holder)
    if holder is not None and provably_gone(holder, host):
        return _listing(store, host, clock, lease, nodes)
    told = _told(store.fs, lease)
    # On this host the stamp is of our own clock, and only says whether the leader has not stopped.
    patience_s = max(FRESH_S, 2 * holder.interval_s) if holder is not None and runs_here(holder, host) else FRESH_S
    if told is not None and abs(_age_s(told.generated_at, clock)) < patience_s:
        return told
    if _renewed(store.fs, lease, clock, sleep):
        now = read_lease(store.fs) or lease
        told = None if store.room().full else _told(store.fs, now)
        return told or _listing(store, host, clock, now, beats.read_all(store.fs), leads=True)
    return _listing(store, host, clock, lease, nodes)


def sure_lease(fs: FileSystem, sleep: Sleep) -> LeaseName | None:
    """The token of leadership; None where two looks show none: one between two of its names may show neither."""
    lease = read_lease(fs)
    if lease is None:
        sleep(LOOK_AGAIN_S)
        lease = read_lease(fs)
    return lease


def is_silent(beat: Heartbeat, host: Host, clock: Clock) -> bool:
    """Whether one look makes a node seem dead: its process is gone from this host, or its stamp is far behind.

    One that said that its machine goes to sleep is silent as it promised to be.
    """
    if provably_gone(beat, host):
        return True
    return (
        beat.status != ASLEEP
        and _age_s(beat.at, clock) > PATIENCE * beat.interval_s * SAY_AGAIN
        and not runs_here(beat, host)
    )


@dataclass(frozen=True, slots=True)
class Post:
    """One master: state is leader, standby or dead."""

    node: str
    host: str
    state: str


@dataclass(frozen=True, slots=True)
class Roster:
    """Every node that has a heartbeat."""

    workers: tuple[Node, ...]
    masters: tuple[Post, ...]


def roster(store: Store, host: Host, clock: Clock) -> Roster:
    """The nodes as their own heartbeats show them; the silent ones are called dead. Errors: OSError."""
    nodes = beats.read_all(store.fs)
    dead = {node for node, beat in nodes.items() if is_silent(beat, host, clock)}
    claims, lease = list_claims(store.fs), read_lease(store.fs)
    leader = lease.holder if lease is not None else NOBODY
    return Roster(
        tuple(node_of(b, claims.get(n, ()), dead=n in dead) for n, b in sorted(nodes.items()) if b.role == "worker"),
        tuple(
            Post(n, b.host.hostname, "dead" if n in dead else "leader" if n == leader else "standby")
            for n, b in sorted(nodes.items())
            if b.role == "master"
        ),
    )


def living(store: Store, host: Host, clock: Clock, *, sleep: Sleep = time.sleep) -> list[str]:
    """The nodes that surely live: on this host by their process, elsewhere by a beat that comes. Errors: OSError.

    Takes up to one and a half heartbeat intervals where there are nodes of other hosts.
    """
    before, nodes = beats.list_beats(store.fs), beats.read_all(store.fs)
    alive = {node for node, beat in nodes.items() if runs_here(beat, host)}
    doubtful = {node: beat for node, beat in nodes.items() if node not in alive and not provably_gone(beat, host)}
    until = clock.monotonic() + 1.5 * max((beat.interval_s for beat in doubtful.values()), default=0.0)
    while doubtful and clock.monotonic() < until:
        sleep(LOOK_EVERY_S)
        now = beats.list_beats(store.fs)
        alive |= {node for node in doubtful if now.get(node, before.get(node)) != before.get(node)}
        doubtful = {node: beat for node, beat in doubtful.items() if node in now and node not in alive}
    return sorted(alive)


def _told(fs: FileSystem, lease: LeaseName) -> Snapshot | None:
    """What the holder of the token told last; None when it has told nothing in its epoch."""
    found = snapshots.latest(fs)
    return found[1] if found is not None and found[0].epoch == lease.epoch else None


def _age_s(stamp: str, clock: Clock) -> float:
    """How long ago (s) a stamp was, by this machine's wall clock; endless for one that is none."""
    try:
        return clock.wall() - datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return float("inf")


def _renewed(fs: FileSystem, lease: LeaseName, clock: Clock, sleep: Sleep) -> bool:
    """Whether the token changes while it is watched."""
    until = clock.monotonic() + RENEWED_WITHIN_S
    while clock.monotonic() < until:
        sleep(LOOK_EVERY_S)
        now = read_lease(fs)
        if now is not None and now != lease:
            return now.holder != NOBODY
    return False


def _listing(
    store: Store,
    host: Host,
    clock: Clock,
    lease: LeaseName | None,
    nodes: dict[str, Heartbeat],
    *,
    leads: bool = False,
) -> Snapshot:
    """The picture made by listing, and a warning that says why. leads: whether the lease's holder does."""
    counted = census(store.fs)
    requests = control.list_requests(store.fs)
    workers = [beat for _, beat in sorted(nodes.items()) if beat.role == "worker"]
    shown = tuple(
        node_of(beat, counted.claims.get(beat.node, ()), dead=is_silent(beat, host, clock)) for beat in workers
    )
    types = {kind: dict(states) for kind, states in counted.types.items()}
    for task in (task for node in shown for task in node.tasks if "type" in task):
        types.setdefault(task["type"], {"waiting": 0, "active": 0})["active"] += 1
    masters = [n for n, beat in sorted(nodes.items()) if beat.role == "master" and not is_silent(beat, host, clock)]
    name = lease.holder if lease is not None and leads else None
    mounts = mounts_of({n: beat for n, beat in nodes.items() if not is_silent(beat, host, clock)})
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
        paused=tuple(sorted(paused_by(requests))),
        halted=halted_by(requests),
        warnings=(_why_listed(name, lease), *mount_warnings(store, mounts)),
    )


def _why_listed(leader: str | None, lease: LeaseName | None) -> str:
    if leader is not None:
        return f"{leader} leads but has told nothing new; these figures were counted just now"
    why, mend = "no leader is seen, so", "start `spool master` or `spool up` on any machine that mounts the spool"
    if lease is None:
        why, mend = f"{MISSING}, and", MISSING_MEND
    counted = "these figures were counted just now"
    return f"{why} nothing is admitted, retried or taken back; {counted}. {mend[0].upper()}{mend[1:]}"
