"""A node's own heartbeat: who it is, and when the next beat is due."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

from spoold.protocol.heartbeat import Heartbeat, HostId
from spoold.protocol.version import __version__
from spoold.store import beats
from spoold.store.store import Store
from spoold.system.host import Host, HostIdentity, ProcessIdentity, surely_gone


class Presence:
    """Beats for one node. Times in seconds on the node's monotonic clock."""

    def __init__(self, store: Store, host: Host, role: Literal["worker", "master"]) -> None:
        self._store = store
        self._host = host
        self._role = role
        self._beat = 0
        self._standing: list[int] = []
        self._at: float | None = None
        self._every_s = store.settings.heartbeat.interval_s
        # A third of the interval is kept in hand, so that a slow share does not turn a beat into a miss.
        self._period_s = self._every_s * 2 / 3

    def due(self, now: float) -> bool:
        """Whether the next beat should be published."""
        return self._at is None or now - self._at >= self._period_s

    def next_due(self) -> float:
        """When the next beat is due."""
        return 0.0 if self._at is None else self._at + self._period_s

    def beat(self, now: float, status: str, **fields: Any) -> None:
        """Publish a beat. Errors: OSError, ShutOut; the beat then still is due."""
        identity, process = self._host.identity(), self._host.process()
        heartbeat = Heartbeat.model_validate(
            {
                "node": self._store.writer,
                "role": self._role,
                "beat": self._beat,
                "at": self._store.stamp(),
                "host": host_id(identity),
                "pid": process.pid,
                "process_start": process.start_time,
                "version": __version__,
                "status": status,
                "interval_s": self._every_s,
                **fields,
            }
        )
        self._beat += 1
        before, self._standing = self._standing, [*self._standing, heartbeat.beat]
        beats.publish(self._store, heartbeat, before)
        self._standing = [heartbeat.beat]
        self._at = now

    def leave(self) -> None:
        """Take the heartbeat away: nobody need wait for this node. Never raises OSError."""
        with contextlib.suppress(OSError):
            beats.remove(self._store.fs, self._store.writer)


def host_id(identity: HostIdentity) -> HostId:
    """A host's identity as a heartbeat carries it."""
    return HostId(
        hostname=identity.hostname,
        machine_id=identity.machine_id,
        boot_id=identity.boot_id,
        pid_namespace=identity.pid_namespace,
    )


def provably_gone(beat: Heartbeat, host: Host) -> bool:
    """Whether the process behind a heartbeat ran on this very host and is no more. False in doubt."""
    then = HostIdentity(beat.host.hostname, beat.host.machine_id, beat.host.boot_id, beat.host.pid_namespace)
    return surely_gone(then, ProcessIdentity(beat.pid, int(beat.process_start)), host)
