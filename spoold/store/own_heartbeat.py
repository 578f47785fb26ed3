"""A node's own heartbeat: its identity, and when the next beat is due.

Law: a beat is due until one was surely published. Its number is used once, also after an error. A process is gone
only if that is proved on this very host.

Two machines that were resumed from one image of memory run one node, under one name and with one counter. Each takes
the other's beats away. A node whose last beat has gone leaps ahead by a number drawn by chance, and looks again after
the next beat. A node that finds a beat of its own that is higher than any that it made gives up the name, and leaves
all that bears it. Until it has looked, it moves no task.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

from spoold.protocol.names import BeatName
from spoold.protocol.version import __version__
from spoold.rules.cluster.pool_clock import EQUAL_S
from spoold.store import heartbeats
from spoold.store.pool_clock import by_host
from spoold.store.store import Store
from spoold.system import kernel_random
from spoold.system.host import Host, HostIdentity, ProcessIdentity, same_host, surely_gone

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat, HostId
    from spoold.system.filesystem import FileSystem

# Values that change without being news: if a beat differs from the last in these alone, it need not be written again
# until it is this many intervals old. Polling at a single stamp call a node dead at twice that age.
_PASSING = {"load", "mem_available_mb", "disk_free_mb", "spent"}
SAY_AGAIN = 3
# How far a node leaps whose beat another process may have taken away, at most; both would hardly leap as far.
LEAP = 1 << 24
_LEAPS = 2


class Presence:
    """Beats for one node. Times in seconds on the node's monotonic clock."""

    def __init__(self, store: Store, host: Host, role: Literal["worker", "master"]) -> None:
        self._store = store
        self._host = host
        self._role = role
        self._started = store.stamp()
        self._beat = 0
        self._standing: list[BeatName] = []
        self._sure = False
        self._doubts = 0  # so many beats from now until it is certain that no other process beats under this name
        self._said: dict[str, Any] | None = None
        self._said_at: float | None = None
        self._at: float | None = None
        self._looked_at: float | None = None
        self._every_s = store.settings.heartbeat.interval_s
        # A third of the interval is a margin, so that a slow share does not turn a beat into a miss.
        self._period_s = self._every_s * 2 / 3

    def due(self, now: float) -> bool:
        """Whether the next beat should be published."""
        return now >= self.next_due()

    def next_due(self) -> float:
        """When the next beat is due."""
        return 0.0 if self._at is None or self._doubts == _LEAPS else self._at + self._period_s

    @property
    def alone(self) -> bool:
        """Whether nothing suggests that another process acts under this node's name."""
        return not self._doubts

    def doubt(self) -> None:
        """Note that another process may act under this node's name; the next beats show whether one does."""
        self._doubts = _LEAPS

    def beat(self, now: float, status: str, *, within: bool = False, **fields: Any) -> None:
        """Publish a beat. within: in the middle of a step, for which settings and time stay as they are.

        Errors: OSError, ShutOut; the beat then still is due.
        """
        if not within:
            self._look_at_settings(now)
        if self._doubts:
            self._look_for_twin()
        said = {"status": status, "settings": self._store.revisions.revision, **fields}
        news = {name: value for name, value in said.items() if name not in _PASSING}
        news["host"] = self._host.identity()  # it is another one once this host doubts it
        sure, self._sure = self._sure, False
        if not self._renewed(news, now, sure):
            before, mine = self._standing, BeatName(self._store.writer, self._beat)
            self._beat += 1
            self._standing = [*before, mine]
            published = heartbeats.publish(self._store, self._heartbeat(mine.beat, said), before)
            self._stands(published, sure)
            # On a full share the content could not be written; write it again as soon as there is room.
            self._said, self._said_at = news if published.name == mine else None, now
        self._at = now
        if self._store.common.due and not within:
            with contextlib.suppress(OSError):  # a beat is worth more than the time of day
                self._compare_clocks()

    def _stands(self, published: heartbeats.Published, sure: bool) -> None:
        """sure: the beat before stood for certain."""
        self._standing, self._sure = [published.name], True
        if self._doubts:
            self._doubts -= 1
        elif sure and not published.alone:
            self.doubt()

    def _look_for_twin(self) -> None:
        """Look whether a beat of this node stands that it never made; else leap ahead, or be certain again.

        Errors: OSError, ShutOut.
        """
        highest = heartbeats.list_beats(self._store.fs).get(self._store.writer)
        if highest is not None and highest.beat >= self._beat:
            raise self._store.has_twin(highest.encode())
        if self._doubts == _LEAPS:
            self._beat += kernel_random.below(LEAP)
            self._said = None  # with new content

    def _look_at_settings(self, now: float) -> None:
        """As often as a beat is due, however often one is published; where a look is dear, as often as one must be
        written anew. Errors: OSError, of the first look alone: nothing is planned before the changes are known.
        """
        every_s = self._every_s * SAY_AGAIN if self._store.fs.forgets else self._period_s
        if self._looked_at is None:
            self._store.revisions.look()
        elif now - self._looked_at < every_s:
            return
        else:
            with contextlib.suppress(OSError):  # a beat is worth more, and what was seen last stands
                self._store.revisions.look()
        self._looked_at = now

    def _compare_clocks(self) -> None:
        """Ask the server for its time; if this machine's differs, the next beat says so. Errors: OSError."""
        common = self._store.common
        common.ask(self._store)
        if common.ahead_s is not None and abs(common.ahead_s) >= EQUAL_S:
            self._said = None
            common.agree(by_host(heartbeats.read_all(self._store.fs).values()).values())

    def _heartbeat(self, beat: int, said: dict[str, Any]) -> Heartbeat:
        from spoold.protocol.heartbeat import Heartbeat

        identity, process = self._host.identity(), self._host.process()
        ahead = self._store.common.ahead_s
        return Heartbeat.model_validate(
            {
                "node": self._store.writer,
                "role": self._role,
                "beat": beat,
                "at": self._store.stamp(),
                "started": self._started,
                "host": host_id(identity),
                "pid": process.pid,
                "process_start": process.start_time,
                "version": __version__,
                "interval_s": self._every_s,
                "mount": self._store.mount(),
                "clock_ahead_s": None if ahead is None else round(ahead, 1) + 0.0,  # no -0.0
                **said,
            }
        )

    def _renewed(self, news: dict[str, Any], now: float, sure: bool) -> bool:
        """Whether the last beat got the next number, since its content is the same as this one's."""
        fresh = self._said_at is not None and now - self._said_at < self._every_s * SAY_AGAIN
        if news != self._said or not fresh or len(self._standing) != 1:
            return False
        before, beat = self._standing[0], self._beat
        self._beat += 1
        self._standing = [before, heartbeats.renewed(before, beat)]  # whatever the rename's outcome
        published = heartbeats.renew(self._store, before, beat)
        if published is None:
            return False
        self._stands(published, sure)
        return True

    def leave(self) -> None:
        """Remove the heartbeat, so that no node waits for this one. Never raises OSError."""
        if self._store.shared:
            return
        with contextlib.suppress(OSError):
            for path in heartbeats.paths(self._store.fs, self._store.writer):
                self._store.fs.unlink(path)


def host_id(identity: HostIdentity) -> HostId:
    """A host's identity in the form of a heartbeat."""
    from spoold.protocol.heartbeat import HostId

    return HostId(
        hostname=identity.hostname,
        machine_id=identity.machine_id,
        boot_id=identity.boot_id,
        pid_namespace=identity.pid_namespace,
        time_namespace=identity.time_namespace,
    )


def provably_gone(beat: Heartbeat, host: Host) -> bool:
    """Whether the process behind a heartbeat ran on this very host, and is not found. False in doubt.

    On a share this proves nothing of a node that beats: see `predecessors`.
    """
    return surely_gone(identity_of(beat), ProcessIdentity(beat.pid, int(beat.process_start)), host)


def known_gone(fs: FileSystem, beat: Heartbeat, host: Host) -> bool:
    """Whether one look shows that a node of this host is gone. On a share it must also stand still: False."""
    return not fs.remote and provably_gone(beat, host)


def runs_here(beat: Heartbeat, host: Host) -> bool:
    """Whether the node's process runs on this very host, as far as the host knows."""
    return same_host(identity_of(beat), host.identity()) and not provably_gone(beat, host)


def identity_of(beat: Heartbeat) -> HostIdentity:
    """The host of a node, in the form that machines are compared in."""
    host = beat.host
    return HostIdentity(host.hostname, host.machine_id, host.boot_id, host.pid_namespace, host.time_namespace)
