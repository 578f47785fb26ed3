"""Heartbeats: one file per beat, the beat in its name, so that one listing shows the living nodes.

Law: an earlier beat is removed only after a later one is there, so a living node always shows one. A number is used
once, since a beat whose publishing failed may still appear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.names import BeatName, parse_beat
from spoold.store import mover
from spoold.store.existence import reading
from spoold.store.store import Store
from spoold.system.errnos import Meaning, classify
from spoold.system.filesystem import FileSystem

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat

READ_TRIES = 3
_OF_MACHINE = {"load", "mem_available_mb", "disk_free_mb"}
# Reads the bytes of a beat of this name. Errors: none.
Load = Callable[[bytes, BeatName], "Heartbeat"]


@dataclass(frozen=True, slots=True)
class Published:
    """The beat that stands now. alone: nothing suggests that another process beats under this node's name."""

    name: BeatName
    alone: bool = True


def publish(store: Store, beat: Heartbeat, before: Sequence[BeatName]) -> Published:
    """Make my next beat appear, then remove those in `before`. Errors: OSError, ShutOut.

    before: my earlier beats that may still stand, oldest first. A beat whose publishing failed may still appear, so
    its number is never used again. On a full share an earlier beat gets the new number: its content is old, but the
    node lives, and a rename needs no room. Without this, every node on a full disk would take all others for dead.
    If the last beat has gone, though it stood for certain, somebody else has removed it: then this node may not be
    the only one of its name.
    """
    name = BeatName(beat.node, beat.beat)
    try:
        store.publish(_path(name), codec.dump(_said(beat)), durable=False)
    except OSError as error:
        if classify(error) is not Meaning.FULL:
            raise
        for old in reversed(before):
            again = renew(store, old, beat.beat)
            if again is not None:
                name = again.name
                break
        else:
            raise
    removed = [_removed(store, old) for old in before]
    return Published(name, alone=all(removed) or name.content != beat.beat)


def _removed(store: Store, old: BeatName) -> bool:
    """Remove an earlier beat; False if it was not there."""
    try:
        store.fs.unlink(_path(old))
    except FileNotFoundError:
        return False
    except OSError:
        pass
    return True


def renew(store: Store, before: BeatName, beat: int) -> Published | None:
    """Give my last beat the next number, without new content: one rename. None if the rename was not seen to succeed.

    The rename may succeed later, so from then on both names may stand.
    """
    name = renewed(before, beat)
    moved = mover.move(store.fs, _path(before), _path(name))
    return Published(name, alone=not moved.by_look) if moved else None


def renewed(before: BeatName, beat: int) -> BeatName:
    """The name that an earlier beat gets with a later number."""
    return BeatName(before.node, beat, before.content)


def _path(name: BeatName) -> str:
    return layout.join(layout.HEARTBEATS, name.encode())


def list_beats(fs: FileSystem) -> dict[str, BeatName]:
    """The highest beat of each node. Errors: OSError."""
    return {node: names[-1] for node, names in list_standing(fs).items()}


def list_standing(fs: FileSystem) -> dict[str, list[BeatName]]:
    """All beats of each node, the highest last. Errors: OSError.

    More than one may stand for a moment, or after an error; or because two machines beat as one node.
    """
    beats: dict[str, list[BeatName]] = {}
    for name in fs.list(layout.HEARTBEATS):
        parsed = parse_beat(name)
        if parsed is not None:
            beats.setdefault(parsed.node, []).append(parsed)
    for names in beats.values():
        if len(names) > 1:
            names.sort(key=_age)
    return beats


def _said(beat: Heartbeat) -> dict[str, Any]:
    """A beat as it is written. An unknown figure of the machine is left out: older readers know no null there."""
    return beat.model_dump(mode="json", exclude=_OF_MACHINE - beat.model_fields_set)


def _age(name: BeatName) -> tuple[int, int]:
    return name.beat, name.content


def read(fs: FileSystem, name: BeatName, load: Load = codec.load_beat) -> Heartbeat | None:
    """One beat, as far as it can be read; None if it has been replaced meanwhile or may not be opened.

    One that this node cannot handle proves as well as any other that its node lives: only its content is unknown.
    """
    try:
        with reading("heartbeat", _path(name)):
            return load(fs.read(_path(name)), name)
    except OSError:
        return None
    except BadFile as error:
        from spoold.protocol.heartbeat import Heartbeat

        return Heartbeat(node=name.node, beat=name.content, notes=(f"its heartbeat cannot be read: {error.problem}",))


def read_all(fs: FileSystem, load: Load = codec.load_beat) -> dict[str, Heartbeat]:
    """The newest beat of every node, as far as it can be read by `load`. Errors: OSError.

    A beat may be renamed between the listing and the reading: a node that was missed is looked for again.
    """
    found: dict[str, Heartbeat] = {}
    for _ in range(READ_TRIES):
        missed = {node: name for node, name in list_beats(fs).items() if node not in found}
        found |= {node: beat for node, name in missed.items() if (beat := read(fs, name, load)) is not None}
        if missed.keys() <= found.keys():
            break
    return dict(sorted(found.items()))


def paths(fs: FileSystem, node: str) -> list[str]:
    """All beats of a node, to remove when it has left or is reaped. Errors: OSError."""
    found = [name for name in map(parse_beat, fs.list(layout.HEARTBEATS)) if name is not None]
    return [_path(name) for name in found if name.node == node]
