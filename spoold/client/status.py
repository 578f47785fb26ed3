"""The picture of the cluster: the leader's own, while it lives, else one made by listing.

Law: a snapshot is only as good as the leader behind it. On its own host a process is looked up; elsewhere a snapshot
that is fresh by the wall clock is believed, since it is for people; else the token of leadership is watched, which a
live leader renames at least every 2.5 seconds. Nothing here decides a move, and no task file is opened.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from spoold.client.living import LOOK_EVERY_S, Sleep, beating
from spoold.protocol import codec, layout
from spoold.protocol.names import NOBODY, LeaseName
from spoold.protocol.plain import picture
from spoold.rules.cluster.clocks import agreed, is_fresh
from spoold.rules.share.disk import is_warning
from spoold.store import beats, snapshots
from spoold.store.clocks import by_host
from spoold.store.leader_token import read_lease
from spoold.store.obstacles import obstacles
from spoold.store.presence import SAY_AGAIN, provably_gone, runs_here
from spoold.store.store import Store
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem
from spoold.system.host import Host

# The models are imported where they are needed: a look at a spool that is led needs none.
if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat
    from spoold.protocol.snapshot import Node, Snapshot

FRESH_S = 15.0
RENEWED_WITHIN_S = 3.0
# Long enough for a move to be over on a slow share, and for its directories to be listed anew.
LOOK_AGAIN_S = 0.5
# Stamps are of other machines' clocks: a node whose stamp is so old, or still to come, is watched.
PATIENCE = 2.0
# As the settings allow it; a beat that says more says nothing.
INTERVAL_MOST_S = 3600.0

_BLOCKED = "who leads and who works cannot be seen: a directory of the spool is none any more"


def status(store: Store, host: Host, clock: Clock, *, sleep: Sleep = time.sleep, plainly: bool = False) -> Snapshot:
    """The cluster now; up to 0.3 s old where a leader lives, on a share a second or some. Errors: OSError.

    Whether a leader lives may take 3 s to find out; and where none does, who else lives, one and a half intervals.
    The room on the share is looked at here: on a full one no leader can publish what it sees. plainly: the picture is
    only shown, so what surely fits its model is read without it, which starts faster.
    """
    try:
        found = _picture(store, host, clock, sleep, plainly=plainly)
    except NotADirectoryError:
        if not obstacles(store.fs):
            raise
        from spoold.client.counted import listing

        found = listing(store, None, {}, set(), leads=False, now=clock.wall(), why=_BLOCKED)
    others = (warning for warning in found.warnings if not is_warning(warning))
    return found.model_copy(update={"warnings": (*store.room_warnings(), *others)})


def _picture(store: Store, host: Host, clock: Clock, sleep: Sleep, *, plainly: bool) -> Snapshot:
    """The leader's picture, while it lives, else one made by listing."""
    nodes = beats.read_all(store.fs, picture.load_beat if plainly else codec.load_beat)
    lease, told, leads = _leading(store, host, clock, nodes, sleep, plainly=plainly)
    if told is not None:
        gone = {node for node in told.master.standbys if node in nodes and provably_gone(nodes[node], host)}
        standbys = tuple(node for node in told.master.standbys if node not in gone)
        return told.model_copy(update={"master": told.master.model_copy(update={"standbys": standbys})})
    from spoold.client.counted import as_models, listing
    from spoold.client.hearing import silence_warnings

    nodes = beats.read_all(store.fs) if leads else as_models(nodes)
    dead = silent(store, host, clock, nodes, leads=leads, sleep=sleep)
    now = judged_at(store, clock, nodes) if leads else clock.wall()
    listed = listing(store, lease, nodes, dead, leads=leads, now=now)
    told_of = silence_warnings(store, host, clock, nodes, dead)
    return listed.model_copy(update={"warnings": (*listed.warnings, *told_of)})


def _leading(
    store: Store, host: Host, clock: Clock, nodes: dict[str, Heartbeat], sleep: Sleep, *, plainly: bool = False
) -> tuple[LeaseName | None, Snapshot | None, bool]:
    """The token of leadership, what its holder told if that is of now, and whether the holder leads."""
    lease = sure_lease(store.fs, sleep)
    if lease is None or lease.holder == NOBODY:
        return lease, None, False
    holder = nodes.get(lease.holder)
    if holder is not None and provably_gone(holder, host):
        return lease, None, False
    told = _told(store.fs, lease, plainly=plainly)
    # On this host the stamp is of our own clock, and only says whether the leader has not stopped.
    patience_s = max(FRESH_S, 2 * holder.interval_s) if holder is not None and runs_here(holder, host) else FRESH_S
    if told is not None and _is_fresh(told.generated_at, holder, nodes, host, clock, patience_s):
        return lease, told, True
    if _renewed(store.fs, lease, clock, sleep):
        now = read_lease(store.fs) or lease
        return now, None if store.room().full else _told(store.fs, now, plainly=plainly), True
    return lease, None, False


def sure_lease(fs: FileSystem, sleep: Sleep) -> LeaseName | None:
    """The token of leadership; None where two looks show none: one between two of its names may show neither."""
    lease = read_lease(fs)
    if lease is None:
        sleep(LOOK_AGAIN_S)
        lease = read_lease(fs)
    return lease


def silent(
    store: Store, host: Host, clock: Clock, nodes: dict[str, Heartbeat], *, leads: bool, sleep: Sleep = time.sleep
) -> set[str]:
    """Which of these nodes are dead. Errors: OSError.

    A process that is gone from this host is dead. Of other hosts, where somebody leads, nobody is: the leader removes
    the heartbeats of the dead. Where nobody leads, a stamp far from our own clock is a reason to watch for one and a
    half intervals (see `living`), and no more: a node with a wrong clock is seen to beat. A sleeper is no dead node.
    """
    from spoold.rules.cluster.nodes import ASLEEP

    dead = {node for node, beat in nodes.items() if provably_gone(beat, host)}
    if leads:
        return dead
    doubtful = {
        node: beat
        for node, beat in nodes.items()
        if node not in dead
        and beat.status != ASLEEP
        and not _is_fresh(
            beat.at, beat, nodes, host, clock, PATIENCE * min(beat.interval_s, INTERVAL_MOST_S) * SAY_AGAIN
        )
        and not runs_here(beat, host)
    }
    return dead | (doubtful.keys() - beating(store, clock, doubtful, sleep))


def judged_at(store: Store, clock: Clock, nodes: dict[str, Heartbeat]) -> float:
    """The time by which a living leader judges deadlines, as far as that shows without a write. Errors: OSError.

    The file server stamped the leader's newest snapshot some seconds ago. A clock of ours that is near that is right.
    """
    newest = next(iter(snapshots.list_snapshots(store.fs)), None)
    if newest is None:
        return clock.wall()
    with contextlib.suppress(FileNotFoundError):
        stamped = store.fs.stat(layout.join(layout.STATUS, newest.encode())).mtime_ns / 1e9
        right = stamped + agreed(sorted(by_host(nodes.values()).values()))
        return clock.wall() if abs(clock.wall() - right) < FRESH_S else right
    return clock.wall()


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


def roster(store: Store, host: Host, clock: Clock, *, sleep: Sleep = time.sleep) -> Roster:
    """The nodes as their own heartbeats show them; the silent ones are called dead. Errors: OSError."""
    from spoold.rules.cluster.nodes import node_of
    from spoold.store.census import list_claims

    nodes = beats.read_all(store.fs)
    leads = _leading(store, host, clock, nodes, sleep)[2]
    dead = silent(store, host, clock, nodes, leads=leads, sleep=sleep)
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


def _told(fs: FileSystem, lease: LeaseName, *, plainly: bool) -> Snapshot | None:
    """What the holder of the token told last; None when it has told nothing in its epoch."""
    found = snapshots.latest(fs, picture.load_snapshot if plainly else snapshots.load)
    return found[1] if found is not None and found[0].epoch == lease.epoch else None


def _is_fresh(
    stamp: str, by: Heartbeat | None, nodes: dict[str, Heartbeat], host: Host, clock: Clock, patience_s: float
) -> bool:
    """Whether a node has said something just now. Clocks that are known to be wrong are put right."""
    ahead = by_host(nodes.values())
    theirs, mine = by.host.hostname if by is not None else "", host.identity().hostname
    age_s = _age_s(stamp, clock)
    return is_fresh(age_s, theirs_s=ahead.get(theirs, 0.0), mine_s=ahead.get(mine, 0.0), patience_s=patience_s)


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
