"""The picture of the cluster: the leader's own, while it lives, else one made by listing.

Law: a snapshot is only as good as the leader behind it. A leader on this host is looked up by its process. Elsewhere
a snapshot that is fresh by the wall clock is believed, since it is for people. Otherwise the token of leadership is
watched; a live leader renames it at least every 2.5 seconds. Nothing here decides a move or opens a task file.

Touches: the clock.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spoold.client.spool.living_nodes import LOOK_EVERY_S, Sleep, beating
from spoold.protocol import codec, layout, plain_status
from spoold.protocol.names import NOBODY, LeaseName
from spoold.protocol.timestamps import moment
from spoold.rules.cluster.pool_clock import agreed, is_fresh
from spoold.rules.share.free_space import is_warning
from spoold.store import heartbeats, snapshots
from spoold.store.leader_files import read_lease
from spoold.store.own_heartbeat import SAY_AGAIN, known_gone, runs_here
from spoold.store.path_conflicts import obstacles
from spoold.store.pool_clock import by_host, machine
from spoold.store.store import Store
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem
from spoold.system.host import Host

# The models are imported where they are needed: a look at a spool with a leader needs none.
if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat
    from spoold.protocol.snapshot import Node, Snapshot

FRESH_S = 15.0
RENEWED_WITHIN_S = 3.0
# Long enough for a move to be over on a slow share, and for its directories to be listed anew.
LOOK_AGAIN_S = 0.5
# Stamps are from other machines' clocks: a node whose stamp is so old, or in the future, is watched.
PATIENCE = 2.0
# The most that the settings allow; a beat that claims more is not believed.
INTERVAL_MOST_S = 3600.0

_BLOCKED = "the leader and the workers cannot be seen: a directory of the spool is no longer a directory"


def status(store: Store, host: Host, clock: Clock, *, sleep: Sleep = time.sleep, plainly: bool = False) -> Snapshot:
    """Return the cluster now; up to 0.3 s old where a leader lives, some seconds on a share. Errors: OSError.

    Takes up to 3 s to find out whether a leader lives, and without one 1.5 intervals to find the living nodes.
    The free space on the share is read here: on a full share no leader can publish. plainly: the picture is only
    shown, so a file that surely fits its model is read without it, which starts faster.
    """
    try:
        found = _picture(store, host, clock, sleep, plainly=plainly)
    except NotADirectoryError:
        if not obstacles(store.fs):
            raise
        from spoold.client.spool.offline_status import listing

        found = listing(store, None, {}, set(), leads=False, now=clock.wall(), why=_BLOCKED)
    others = (warning for warning in found.warnings if not is_warning(warning))
    return found.model_copy(update={"warnings": (*store.room_warnings(), *others)})


def _picture(store: Store, host: Host, clock: Clock, sleep: Sleep, *, plainly: bool) -> Snapshot:
    """The leader's picture, while it lives, else one made by listing."""
    nodes = heartbeats.read_all(store.fs, plain_status.load_beat if plainly else codec.load_beat)
    lease, told, leads = _leading(store, host, clock, nodes, sleep, plainly=plainly)
    if told is not None:
        gone = {node for node in told.master.standbys if node in nodes and known_gone(store.fs, nodes[node], host)}
        standbys = tuple(node for node in told.master.standbys if node not in gone)
        return told.model_copy(update={"master": told.master.model_copy(update={"standbys": standbys})})
    from spoold.client.spool.offline_status import as_models, listing, silence_warnings

    nodes = heartbeats.read_all(store.fs) if leads else as_models(nodes)
    dead = silent(store, host, clock, nodes, leads=leads, sleep=sleep)
    now = judged_at(store, clock, nodes) if leads else clock.wall()
    listed = listing(store, lease, nodes, dead, leads=leads, now=now)
    told_of = silence_warnings(store, host, clock, nodes, dead)
    return listed.model_copy(update={"warnings": (*listed.warnings, *told_of)})


def _leading(
    store: Store, host: Host, clock: Clock, nodes: dict[str, Heartbeat], sleep: Sleep, *, plainly: bool = False
) -> tuple[LeaseName | None, Snapshot | None, bool]:
    """Return the token of leadership, its holder's snapshot if that is fresh, and whether the holder leads."""
    lease = sure_lease(store.fs, sleep)
    if lease is None or lease.holder == NOBODY:
        return lease, None, False
    holder = nodes.get(lease.holder)
    if holder is not None and known_gone(store.fs, holder, host):
        return lease, None, False
    told = _told(store.fs, lease, plainly=plainly)
    # On this host the stamp is from our own clock, and only shows that the leader has not stopped.
    patience_s = max(FRESH_S, 2 * holder.interval_s) if holder is not None and runs_here(holder, host) else FRESH_S
    if told is not None and _is_fresh(told.generated_at, holder, nodes, host, clock, patience_s):
        return lease, told, True
    if _renewed(store.fs, lease, clock, sleep):
        now = read_lease(store.fs) or lease
        return now, None if store.room().full else _told(store.fs, now, plainly=plainly), True
    return lease, None, False


def sure_lease(fs: FileSystem, sleep: Sleep) -> LeaseName | None:
    """Return the token of leadership; None where two looks show none: one during a rename may show neither name."""
    lease = read_lease(fs)
    if lease is None:
        sleep(LOOK_AGAIN_S)
        lease = read_lease(fs)
    return lease


def silent(
    store: Store, host: Host, clock: Clock, nodes: dict[str, Heartbeat], *, leads: bool, sleep: Sleep = time.sleep
) -> set[str]:
    """Return the dead ones of these nodes. Errors: OSError.

    A node of this host is dead if its process is gone. While a leader lives, all nodes of other hosts count as alive:
    the leader removes the heartbeats of dead nodes. Without a leader, a node with a stamp far from our own clock is
    watched for 1.5 intervals (see `living`): a node that only has a wrong clock still beats. A sleeping node is not
    dead.
    """
    dead = {node for node, beat in nodes.items() if known_gone(store.fs, beat, host)}
    if leads:
        return dead
    from spoold.rules.cluster.node_status import ASLEEP

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


def present(
    store: Store, host: Host, clock: Clock, *, sleep: Sleep = time.sleep
) -> tuple[dict[str, Heartbeat], set[str]]:
    """Return every node's heartbeat, and which of the nodes are dead. Errors: OSError."""
    nodes = heartbeats.read_all(store.fs)
    leads = _leading(store, host, clock, nodes, sleep)[2]
    return nodes, silent(store, host, clock, nodes, leads=leads, sleep=sleep)


def judged_at(store: Store, clock: Clock, nodes: dict[str, Heartbeat]) -> float:
    """Return the time by which a living leader judges deadlines, estimated without a write. Errors: OSError.

    The file server stamped the leader's newest snapshot some seconds ago. Our clock is right if it is near that.
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
    """Return the nodes as their own heartbeats show them; silent ones count as dead. Errors: OSError."""
    from spoold.rules.cluster.node_status import node_of
    from spoold.store.state_counts import list_claims

    nodes, dead = present(store, host, clock, sleep=sleep)
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
    """Return the last snapshot of the token's holder; None when it has published none in its epoch."""
    found = snapshots.latest(fs, plain_status.load_snapshot if plainly else snapshots.load)
    return found[1] if found is not None and found[0].epoch == lease.epoch else None


def _is_fresh(
    stamp: str, by: Heartbeat | None, nodes: dict[str, Heartbeat], host: Host, clock: Clock, patience_s: float
) -> bool:
    """Return whether a stamp is fresh. Clocks that are known to be wrong are corrected."""
    ahead = by_host(nodes.values())
    theirs, mine = machine(by) if by is not None else "", host.identity().hostname
    age_s = _age_s(stamp, clock)
    return is_fresh(age_s, theirs_s=ahead.get(theirs, 0.0), mine_s=ahead.get(mine, 0.0), patience_s=patience_s)


def _age_s(stamp: str, clock: Clock) -> float:
    """Return the age (s) of a stamp by this machine's wall clock; infinite for text that is no stamp."""
    at = moment(stamp)
    return float("inf") if at is None else clock.wall() - at


def _renewed(fs: FileSystem, lease: LeaseName, clock: Clock, sleep: Sleep) -> bool:
    """Return whether the token changes while it is watched."""
    until = clock.monotonic() + RENEWED_WITHIN_S
    while clock.monotonic() < until:
        sleep(LOOK_EVERY_S)
        now = read_lease(fs)
        if now is not None and now != lease:
            return now.holder != NOBODY
    return False
