"""Heartbeats: one file per beat, the beat in its name, so that one listing shows who lives."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName, parse_beat
from spoold.store import mover
from spoold.store.store import Store
from spoold.system.errnos import Meaning, classify
from spoold.system.filesystem import FileSystem


def publish(store: Store, beat: Heartbeat, before: Collection[int]) -> None:
    """Make my next beat appear, then take those before away. Errors: OSError, ShutOut.

    before: my earlier beats that may still stand. A beat whose publishing failed may yet appear, so its number is
    never used again. On a full share the beat before gets the new name: it says old things, but the node lives, and a
    rename needs no room. Else a full disk would make every node take every other for dead.
    """
    name = _path(beat.node, beat.beat)
    try:
        store.publish(name, codec.dump(beat), durable=False)
    except OSError as error:
        if classify(error) is not Meaning.FULL:
            raise
        if not any(mover.move(store.fs, _path(beat.node, old), name) for old in sorted(before, reverse=True)):
            raise
    for old in before:
        with contextlib.suppress(OSError):
            store.fs.unlink(_path(beat.node, old))


def _path(node: str, beat: int) -> str:
    return layout.join(layout.HEARTBEATS, BeatName(node, beat).encode())


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
