"""What a sandbox shows, and at which place.

Law: nothing is shown that holds the spool, lies in it, or holds a person's keys. What is shown at a place is what
was there when the sandbox was made, with links resolved.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from spoold.agents.sandbox.inside import identity_of
from spoold.agents.sandbox.policy import NoSandbox, Scene

_KEYS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".config/gcloud", ".config/gh")


@dataclass(frozen=True, slots=True)
class Place:
    """A file or directory `source` of this machine, shown at `at`. identity: which one it was, as DEVICE:INODE."""

    at: str
    source: str
    writable: bool = False
    identity: str = ""


def places(scene: Scene, keys_of: str) -> list[Place]:
    """Return what is shown, in the order in which it is to be mounted; keys_of: the home whose keys stay hidden.

    Errors: NoSandbox; OSError.
    """
    held = scene.held
    if held.loose:
        raise NoSandbox(*held.loose)
    own = {scene.workspace, scene.home, *scene.writable}
    wide = [
        *(_place(at, writable=True) for at in own),
        *(_place(at) for at in (*scene.shown, *held.shown, *filter(None, [scene.way_out])) if at not in own),
    ]
    keys = [f"{keys_of}/{name}" for name in _KEYS] if keys_of else []
    if scene.others and (led := next((place for place in wide if place.at == scene.workspace != place.source), None)):
        raise NoSandbox(f"{led.at} was exchanged for a link to {led.source}", "keep one agent at a time in a folder")
    for place in wide:
        _check(place, scene.hidden, "the spool", "keep workspaces, homes and settings outside of it")
        _check(place, keys, "a person's keys", "show a smaller folder")
    narrow = [
        *(_place(at, writable=True) for at in (*held.above, *held.pinned)),
        *(_place(at) for at in (*held.fixed, *(at for at in scene.fixed if os.path.lexists(at)))),
    ]
    for place in narrow:
        if not _inside(place.source, [each.source for each in wide if each.writable]):
            raise NoSandbox(
                f"{place.at} is a link out of what the agent may write, to {place.source}",
                "replace the link by what it names",
            )
    narrow += [replace(_place(scene.empty), at=at) for at in held.absent]
    # A place below another one comes later, or it would be hidden by it.
    return [*sorted(wide, key=_depth), *sorted(narrow, key=_depth)]


def _depth(place: Place) -> int:
    return place.at.count("/")


def _place(at: str, *, writable: bool = False) -> Place:
    if not at.startswith("/") or os.path.normpath(at) != at:
        raise NoSandbox(f"{at!r} is no absolute path in its plain form", "write it out from / on")
    if not os.path.exists(at):
        raise NoSandbox(f"{at} is to be shown in a sandbox, and is not there", "make it first")
    # Path and identity are of one look: a path may lead elsewhere a moment later.
    opened = os.open(at, os.O_PATH | os.O_CLOEXEC)
    try:
        return Place(at, os.readlink(f"/proc/self/fd/{opened}"), writable, identity_of(opened))
    finally:
        os.close(opened)


def _check(place: Place, hidden: Iterable[str], what: str, fix: str) -> None:
    for path in hidden:
        real = os.path.realpath(path)
        if not os.path.lexists(path):
            continue
        if _inside(place.source, [real]) or _inside(real, [place.source]):
            raise NoSandbox(f"{place.at} would show {what} ({path}) in a sandbox", fix)


def _inside(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of these, or below one."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
