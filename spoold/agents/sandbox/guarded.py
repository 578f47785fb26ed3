"""Files in a workspace by which an agent could run something outside of its sandbox.

Git runs hooks and programs that a repository's own settings name. After the agent, others run git in the same place,
outside of the sandbox: so the agent must not write those files, move the folder that holds them, or put another in
its place. Whose repository it is decides how much of it is held:

    own      a clone that was made for this attempt: the agent commits there, and what leads git away is held
    shared   a repository that others use, too, as of `cwd` and of a worktree: all of it may only be read, also those
             within; where there is none, none can be made
    none     a folder that goes with the attempt: nobody runs git there

Law: what is held is decided once, before the agent begins, and never by what it wrote. A `.git` that names another
folder counts only where that folder names it, too: no agent can write that there.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from spoold.system.walking import walk

Whose = Literal["own", "shared", "none"]
_FIXED = ("config", "config.worktree", "commondir", "hooks", "info", "modules", "objects/info")
# With one of these, which cannot be held before they are there, git takes settings from where the agent says.
_LEADS_AWAY = ("commondir", "config.worktree")
_SETTINGS = (
    *(".claude", ".codex", ".gemini", ".opencode", ".qwen", ".cursor", ".vscode", ".envrc"),
    *(".mcp.json", "opencode.json", "opencode.jsonc", ".husky", ".pre-commit-config.yaml"),
)
# More repositories within one folder are not held one by one.
_WITHIN_MAX = 1000


@dataclass(frozen=True, slots=True)
class Guarded:
    """What of a workspace is held. pinned: writable, but it cannot be moved or replaced; fixed: read only; shown: the
    repository of a worktree, which lies elsewhere and may be read; absent: not there, and it cannot be made."""

    pinned: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


NOTHING = Guarded()


def guarded(workspace: str, whose: Whose, submodules: Sequence[str] = ()) -> Guarded:
    """Return what is to be held in a workspace. submodules: paths at which git looks for a repository, also where
    there is none yet. Errors: OSError."""
    if whose == "none":
        return NOTHING
    git = f"{workspace}/.git"
    settings = tuple(path for name in _SETTINGS if os.path.lexists(path := f"{workspace}/{name}"))
    if whose == "own":
        return Guarded((git,), (*_there(git, _FIXED), *settings))
    within = tuple(f"{workspace}/{path}/.git" for path in _within(workspace))
    absent = tuple(path for one in submodules if not os.path.lexists(path := f"{workspace}/{one}/.git"))
    if os.path.lexists(git):
        return Guarded(fixed=(git, *settings, *within), shown=_elsewhere(git), absent=absent)
    return Guarded(fixed=(*settings, *within), absent=(git, *absent))


def disarm(held: Guarded) -> list[str]:
    """Remove what makes git take settings from where the agent says, after it and before any git; returns what was
    removed. Errors: OSError."""
    removed = []
    for path in (f"{git}/{name}" for git in held.pinned for name in _LEADS_AWAY):
        if os.path.lexists(path) and path not in held.fixed:
            os.unlink(path)
            removed.append(path)
    for path in held.absent:
        with suppress(OSError):
            os.rmdir(path)  # the place of what could not be made
    return removed


def _there(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for name in names if os.path.exists(path := f"{folder}/{name}"))


def _within(workspace: str) -> list[str]:
    """Return the folders below a workspace that are repositories."""
    found: list[str] = []
    for folder in walk(workspace):
        if folder.path and ".git" in (*folder.folders, *folder.files) and len(found) < _WITHIN_MAX:
            found.append(folder.path)
        folder.folders[:] = [name for name in folder.folders if name != ".git"]
    return found


def _elsewhere(git: str) -> tuple[str, ...]:
    """Return the folders of a repository elsewhere whose worktree this is, as both of them say; () for any other."""
    _, _, said = _text(git).partition("gitdir:")
    own = os.path.realpath(os.path.join(os.path.dirname(git), said.strip()))
    if os.path.isdir(git) or not said or os.path.realpath(_text(f"{own}/gitdir").strip()) != os.path.realpath(git):
        return ()
    common = os.path.realpath(os.path.join(own, _text(f"{own}/commondir").strip() or "."))
    return tuple(dict.fromkeys((common, own)))


def _text(path: str) -> str:
    with suppress(OSError), open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(4096).decode("utf-8", "surrogateescape")
    return ""
