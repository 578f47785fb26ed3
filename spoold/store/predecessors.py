"""Nodes that ran on this host by what they say, and whose process is not found here: gone, or alive on a twin.

Law: on a share, a process that is not found proves nothing beside a beat that moves. Machines that were resumed from
one image of memory have one boot id, and each looks in vain for the other's processes. So a node is gone only if it
left traces on this machine; and a master, if its beat stands still, too. A node that is not found and beats makes
this host doubt its own identity. On a local disk all nodes are on this machine: the look is proof.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Literal

from spoold.protocol.request import Verb
from spoold.rules.cluster.liveness import Watch
from spoold.store import control, heartbeats
from spoold.store.own_heartbeat import identity_of, provably_gone
from spoold.store.store import Store
from spoold.system.host import Host, twins

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat

# A node beats at least once an interval; it is watched for so many of them.
STILL = 1.5
LOOK_EVERY_S = 1.0


class Standstill:
    """Watches the beats of nodes whose process is not found on this host. Times in seconds, monotonic."""

    def __init__(self, store: Store, host: Host) -> None:
        interval_s = store.settings.heartbeat.interval_s
        self._store = store
        self._host = host
        self._watch = Watch(interval_s, STILL * interval_s)
        self._first: dict[str, int] = {}

    def gone(self, missing: Mapping[str, int], now: float) -> list[str]:
        """Return the nodes that are gone. missing: all whose process is not found, with their beats as listed now."""
        if not self._store.fs.remote:
            return list(missing)
        self._first = {node: self._first.get(node, beat) for node, beat in missing.items()}
        if self._first != dict(missing):
            self._host.doubt()
            self._first.clear()
            return []
        self._watch.look(missing, (), now)
        return self._watch.dead()


class Predecessors:
    """Reports to the leader, which may be on another host, the nodes of a role that ran here and are gone.

    None of them where a node says that this machine is not the only one with its identity. On a share a worker is
    reported only if it left traces on this machine: what it ran might go on, if it beats again later. A master has no
    tasks, and is reported once it stands still.
    """

    def __init__(self, store: Store, host: Host, role: Literal["worker", "master"]) -> None:
        self._store = store
        self._host = host
        self._role = role
        self._standstill = Standstill(store, host)
        self._missing: dict[str, Heartbeat] | None = None
        self._looked_at = 0.0

    def step(self, left: Collection[str] = ()) -> None:
        """Look, at most once a second and only while there are any. Errors: OSError, after which it goes on.

        left: the nodes that left traces on this machine, for the first look.
        """
        now = self._store.clock.monotonic()
        if self._missing is None:
            found = heartbeats.read_all(self._store.fs)
            if any(twins(identity_of(beat), self._host.identity()) for beat in found.values()):
                self._host.doubt()
            self._missing = {node: beat for node, beat in found.items() if beat.role == self._role}
        elif now - self._looked_at < LOOK_EVERY_S:
            return
        self._missing = {node: beat for node, beat in self._missing.items() if provably_gone(beat, self._host)}
        for node in [node for node in self._missing if node in left or not self._store.fs.remote]:
            self._report(node)
        if self._missing:
            self._looked_at = now
            self._watch(self._missing, now)

    def _watch(self, missing: dict[str, Heartbeat], now: float) -> None:
        listed = heartbeats.list_beats(self._store.fs)
        shown = {node: listed[node].beat for node in missing if node in listed}
        for node in missing.keys() - shown.keys():
            del missing[node]
        for node in self._standstill.gone(shown, now):
            if self._role == "master":
                self._report(node)
            else:
                del missing[node]  # its silence shows

    def _report(self, node: str) -> None:
        """Report it once: a report that failed may be there, and the next one has the same name."""
        assert self._missing is not None
        del self._missing[node]
        with contextlib.suppress(OSError):
            control.post(self._store, Verb.REAP, node, self._store.writer, reason="its process is gone from its host")
