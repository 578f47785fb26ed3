"""Heartbeats: one file per beat, the beat in its name, so that one listing shows who lives."""

from __future__ import annotations

import contextlib

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName, parse_beat
from spoold.store.store import Store
from spoold.system.filesystem import FileSystem


def publish(store: Store, beat: Heartbeat) -> None:
    """Make my next beat appear, then take the one before away. Errors: OSError."""
    name = BeatName(beat.node, beat.beat)
    store.publish(layout.join(layout.HEARTBEATS, name.encode()), codec.dump(beat), durable=False)
    if beat.beat:
        with contextlib.suppress(OSError):
            store.fs.unlink(layout.join(layout.HEARTBEATS, BeatName(beat.node, beat.beat - 1).encode()))


def list_beats(fs: FileSystem) -> dict[str, int]:
    """The highest beat of each node. Errors: OSError."""
    beats: dict[str, int] = {}
    for name in fs.list(layout.HEARTBEATS):
        parsed = parse_beat(name)
        if parsed is not None and parsed.beat >= beats.get(parsed.node, 0):
            beats[parsed.node] = parsed.beat
    return beats


def read(fs: FileSystem, node: str, beat: int) -> Heartbeat | None:
    """One beat; None when it has been replaced meanwhile or cannot be read."""
    name = BeatName(node, beat).encode()
    try:
        return codec.load_model(Heartbeat, fs.read(layout.join(layout.HEARTBEATS, name)), name)
    except (OSError, BadFile):
        return None


def read_all(fs: FileSystem) -> dict[str, Heartbeat]:
    """The newest readable beat of every node. Errors: OSError."""
    found = {node: read(fs, node, beat) for node, beat in sorted(list_beats(fs).items())}
    return {node: beat for node, beat in found.items() if beat is not None}


def remove(fs: FileSystem, node: str) -> None:
    """Take all beats of a node away: it has left, or is reaped. Errors: OSError."""
    for name in fs.list(layout.HEARTBEATS):
        parsed = parse_beat(name)
        if parsed is not None and parsed.node == node:
            with contextlib.suppress(FileNotFoundError):
                fs.unlink(layout.join(layout.HEARTBEATS, name))
