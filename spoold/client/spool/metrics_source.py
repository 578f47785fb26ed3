"""What monitoring measures: the last snapshot, all heartbeats, the oldest ready tasks, the room on the share.

Law: looks and never touches, opens no task file, waits for nothing and judges nobody. That a leader or a worker died
shows in time stamps that stand still.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spoold.protocol import layout, plain_status
from spoold.protocol.lifecycle import State
from spoold.protocol.names import is_task, order_in, order_micros
from spoold.store import heartbeats, snapshots
from spoold.store.existence import names_in
from spoold.store.lanes_and_archive import list_lanes
from spoold.store.store import Store

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat
    from spoold.protocol.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Room:
    """The room on the share, as the file server reports it. free_inodes: None where it counts none."""

    total_bytes: int
    free_bytes: int
    free_inodes: int | None


@dataclass(frozen=True, slots=True)
class Figures:
    """One look. snapshot: None before a node has led the spool; ready_since: by type, when (s since 1970, the pool's
    time) the oldest task that is ready was admitted.
    """

    snapshot: Snapshot | None = None
    beats: dict[str, Heartbeat] = field(default_factory=dict)
    ready_since: dict[str, float] = field(default_factory=dict)
    room: Room | None = None


def measure(store: Store) -> Figures:
    """Look once: the listings of status/, heartbeats/ and ready/, and the files behind them. Errors: OSError."""
    found = snapshots.latest(store.fs, plain_status.load_snapshot)
    usage = store.fs.usage()
    return Figures(
        found[1] if found is not None else None,
        heartbeats.read_all(store.fs, plain_status.load_beat),
        _ready_since(store),
        Room(usage.total_bytes, usage.free_bytes, usage.free_inodes),
    )


def _ready_since(store: Store) -> dict[str, float]:
    """List ready/, which the windows of the lanes keep small; waiting/ may hold a million names."""
    oldest: dict[str, str] = {}
    with suppress(NotADirectoryError):
        for name, lane in list_lanes(store.fs, State.READY).items():
            orders = map(order_in, filter(is_task, names_in(store.fs, layout.join(State.READY, name), set())))
            first = min(orders, default=None)
            if first is not None:
                oldest[lane.type] = min(first, oldest.get(lane.type, first))
    return {kind: order_micros(order) / 1e6 for kind, order in sorted(oldest.items())}
