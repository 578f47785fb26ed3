"""The nodes that are alive, for a person who asks: a process on this host is looked up, a node elsewhere is watched.

It stands apart from `offline_status`, which imports the models that `spool_status` must not load at its start.

Law: a beat may claim any interval; a client waits for it at most 60 s, or 1.5 intervals of the spool's settings. A
node that was watched for less than its own interval demands is neither dead nor alive, and the answer says so.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from spoold.store import heartbeats
from spoold.store.own_heartbeat import known_gone, runs_here
from spoold.store.store import Store
from spoold.system.clock import Clock
from spoold.system.host import Host

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat

LOOK_EVERY_S = 0.1
# A node is watched for so many of its intervals, but at most for so long (s), or for so many of the spool's own.
WATCHED = 1.5
WATCH_MOST_S = 60.0

Sleep = Callable[[float], None]


def living(
    store: Store, host: Host, clock: Clock, *, sleep: Sleep = time.sleep, slow: dict[str, float] | None = None
) -> list[str]:
    """Return the nodes that are alive: on this host by their process, elsewhere by a new beat. Errors: OSError.

    Takes up to 1.5 heartbeat intervals where there are nodes of other hosts. A node whose beat claims a longer
    interval than this watch covers counts as alive. slow: receives those nodes, with the interval (s) they claim.
    """
    nodes = heartbeats.read_all(store.fs)
    alive = {node for node, beat in nodes.items() if runs_here(beat, host)}
    doubtful = {
        node: beat for node, beat in nodes.items() if node not in alive and not known_gone(store.fs, beat, host)
    }
    alive |= beating(store, clock, doubtful, sleep)
    seldom = {
        n: b.interval_s
        for n, b in doubtful.items()
        if n not in alive and WATCHED * b.interval_s > watch_most_s(store)
    }
    if slow is not None:
        slow |= seldom
    return sorted(alive | seldom.keys())


def watch_most_s(store: Store) -> float:
    """Return how long (s) nodes are watched at most."""
    return max(WATCH_MOST_S, WATCHED * store.settings.heartbeat.interval_s)


def beating(store: Store, clock: Clock, nodes: dict[str, Heartbeat], sleep: Sleep) -> set[str]:
    """Return the nodes whose beat changes in a watch of 1.5 intervals. Errors: OSError."""
    before = heartbeats.list_beats(store.fs) if nodes else {}
    alive: set[str] = set()
    watch_s = WATCHED * max((beat.interval_s for beat in nodes.values()), default=0.0)
    until = clock.monotonic() + min(watch_s, watch_most_s(store))
    while nodes and clock.monotonic() < until:
        sleep(LOOK_EVERY_S)
        now = heartbeats.list_beats(store.fs)
        alive |= {node for node in nodes if now.get(node, before.get(node)) != before.get(node)}
        nodes = {node: beat for node, beat in nodes.items() if node in now and node not in alive}
    return alive
