"""One rename, and its true outcome.

Law: after any error but a plain refusal (see `errnos`), look; "the source is gone" alone proves nothing. The
destination must be a name that only the mover makes (or that means the same whichever node made it). So list the
source, then the destination. Listed at the destination → done; else still listed at the source → not done, and it may
still happen later; else → another node moved it. A lost race is an outcome, not an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from spoold.store.existence import listed, stands
from spoold.system.errnos import Meaning, classify
from spoold.system.filesystem import FileSystem

# A listing clears an NFS client's wrong belief, and a Windows peer lets go within moments: a second and a third try
# settle nearly all of both. The next step plans the rest again.
TRIES = 3


class Fate(StrEnum):
    """The outcome of a rename."""

    DONE = "done"
    LOST = "lost"
    UNKNOWN = "unknown"
    NO_DIRECTORY = "no_directory"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Moved:
    """A fate, the error behind it if there was one, and the paths of a rename that was not done.

    by_look: it was answered with an error, and the name stands at the destination: a writer with a twin cannot tell
    from that which of the two has made it.
    """

    fate: Fate
    error: OSError | None = None
    src: str = ""
    dst: str = ""
    by_look: bool = False

    def __bool__(self) -> bool:
        return self.fate is Fate.DONE


DONE = Moved(Fate.DONE)


def move(fs: FileSystem, src: str, dst: str) -> Moved:
    """Rename src to dst and return its true outcome. Never raises OSError.

    UNKNOWN: neither done nor ruled out; plan it again. NO_DIRECTORY: the destination's directory is not there.
    REFUSED: the environment or a broken law, see error.
    """
    moved = DONE
    for _ in range(TRIES):
        try:
            fs.rename(src, dst)
            return DONE
        except OSError as error:
            moved = replace(_judge(fs, src, dst, error), src=src, dst=dst)
        if moved.fate is not Fate.UNKNOWN or not _worth_another_try(moved.error):
            return moved
    return moved


def _judge(fs: FileSystem, src: str, dst: str, error: OSError) -> Moved:
    """The source is listed first: a rename that the network carries out between the two looks is then seen at its
    destination. In the other order it would be seen in neither place, and taken for another node's. A directory that
    is gone took with it the permission to move its files. If EEXIST refuses a name and the server may forget, either
    only this client still believes in the name, or the move was made and its reply lost.
    """
    doubted = fs.forgets and isinstance(error, FileExistsError)
    if classify(error) in (Meaning.FULL, Meaning.CONFIG, Meaning.BROKEN) and not doubted:
        return Moved(Fate.REFUSED, error)
    try:
        still_there = stands(fs, src)
    except OSError as looking:
        return Moved(Fate.UNKNOWN, looking)
    try:
        if listed(fs, dst):
            return Moved(Fate.REFUSED, error) if doubted and still_there else Moved(Fate.DONE, by_look=True)
    except FileNotFoundError:
        return Moved(Fate.NO_DIRECTORY, error)
    except OSError as looking:
        return Moved(Fate.UNKNOWN, looking)
    return Moved(Fate.UNKNOWN if still_there else Fate.LOST, error)


def _worth_another_try(error: OSError | None) -> bool:
    """A stale name or a peer's open handle passes; do not order a second time what may still happen by itself."""
    return error is not None and classify(error) in (Meaning.GONE, Meaning.STALE, Meaning.BUSY)
