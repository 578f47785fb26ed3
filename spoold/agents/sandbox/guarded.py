"""Files in a workspace by which an agent could run something outside of its sandbox.

Git runs hooks and programs that a repository's own settings name. After the agent, others run git in the same
workspace, outside of the sandbox: so the agent must not write those files, move the folder that holds them, or put
another in its place.

Law: it only reads. What it cannot hold, since it is not there yet, `leads_away` finds after the run.

Touches: files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

_FIXED = ("config", "config.worktree", "hooks", "info", "modules", "objects/info")
# With one of these, git takes settings, hooks or objects from a folder that the agent has written.
_LEADS_AWAY = ("commondir", "config.worktree", "objects/info/alternates", "objects/info/http-alternates")
_SETTINGS = (
    *(".claude", ".codex", ".gemini", ".opencode", ".qwen", ".cursor", ".vscode", ".envrc"),
    *(".mcp.json", "opencode.json", "opencode.jsonc", ".husky", ".pre-commit-config.yaml"),
)


@dataclass(frozen=True, slots=True)
class Guarded:
    """What of a workspace is held. pinned: writable, but it cannot be moved or replaced; fixed: read only; shown: the
    repository of a worktree, which lies elsewhere and may be read."""

    pinned: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


def guarded(workspace: str) -> Guarded:
    """Return what is to be held in a workspace. In a worktree of another repository an agent can read the history,
    and cannot commit: its repository is read only.

    Errors: OSError.
    """
    git = f"{workspace}/.git"
    settings = tuple(path for name in _SETTINGS if os.path.lexists(path := f"{workspace}/{name}"))
    if os.path.isdir(git) and not os.path.islink(git):
        return Guarded((git,), (*_there(git, _FIXED), *settings))
    if not os.path.lexists(git):
        return Guarded(fixed=settings)
    own = _target(git)
    common = os.path.realpath(os.path.join(own, _text(f"{own}/commondir").strip() or "."))
    return Guarded(fixed=(git, *settings), shown=tuple(dict.fromkeys((common, own))))


def leads_away(workspace: str, before: Guarded) -> list[str]:
    """Return what in a workspace would make git, run outside, obey what an agent wrote. Call it after the agent and
    before any git, with what was guarded before the agent. [] is well."""
    git = f"{workspace}/.git"
    if not before.pinned:
        # There was no repository of its own: a new one is the agent's, and so are its settings.
        return [git] if os.path.lexists(git) and git not in before.fixed else []
    held = tuple(f"{path}/" for path in before.fixed)
    there = [path for name in (*_FIXED, *_LEADS_AWAY) if os.path.lexists(path := f"{git}/{name}")]
    return [path for path in dict.fromkeys(there) if not f"{path}/".startswith(held)]


def _there(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for name in names if os.path.exists(path := f"{folder}/{name}"))


def _target(git: str) -> str:
    """Return the folder that a `.git` file, or a link, names."""
    if os.path.isdir(git):
        return os.path.realpath(git)
    _, _, path = _text(git).partition("gitdir:")
    return os.path.realpath(os.path.join(os.path.dirname(git), path.strip()))


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(4096)
    except FileNotFoundError:
        return ""
