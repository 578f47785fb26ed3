"""Heartbeats: one file per beat, the beat in its name, so that one listing shows who lives."""

from __future__ import annotations

import contextlib

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName, parse_beat
from spoold.store import mover
from spoold.store.store import Store
from spoold.system.errnos import Meaning, classify
from spoold.system.filesystem import FileSystem


def publish(store: Store, beat: Heartbeat) -> None:
    """Make my next beat appear, then take the one before away. Errors: OSError, ShutOut.

    On a full share the beat before gets the new name: it says old things, but the node lives, and a rename needs no
    room. Else a full disk would make every node take every other for dead.
    """
    name = layout.join(layout.HEARTBEATS, BeatName(beat.node, beat.beat).encode())
    before = layout.join(layout.HEARTBEATS, BeatName(beat.node, max(beat.beat - 1, 0)).encode())
    try:
        store.publish(name, codec.dump(beat), durable=False)
    except OSError as error:
        if classify(error) is not Meaning.FULL or not beat.beat or not mover.move(store.fs, before, name):
            raise
        return
    if beat.beat:
        with contextlib.suppress(OSError):
            store.fs.unlink(before)


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
