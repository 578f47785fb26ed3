"""A repository of an attempt's own, where its profile or its task names one; else the folder in which it starts.

Law: what was asked for and cannot be had is an error, before the agent begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spoold.agents.places import Folder, Opened, Saved, Workspace
from spoold.agents.workspace.attempt import of_attempt


def workspace_for(profile: Mapping[str, Any], task: Mapping[str, Any], *, fresh: bool = False) -> Workspace:
    """Return the workspace of the attempt in this process. profile, task: what each says of it; fresh: begin with the
    base, whatever earlier attempts made. Errors: BadFile, SpoolError.
    """
    said = {**profile, **task}
    return Repository(profile, task, fresh=fresh) if said.get("repo") or "kind" in said else Folder()


class Repository:
    """A workspace of a repository."""

    def __init__(self, profile: Mapping[str, Any], task: Mapping[str, Any], *, fresh: bool) -> None:
        self._workspace = of_attempt(profile, task, fresh=fresh)

    def open(self) -> Opened:
        """Make it. Errors: SpoolError, OSError."""
        own, directory = self._workspace, self._workspace.open()
        return Opened(directory, own.home, own.returning, own.env, own.borrowed)

    def save(self, message: str) -> Saved:
        """Push what was made; may be called again. Errors: SpoolError, OSError."""
        saved = self._workspace.save(message)
        return Saved(saved.changed_files, saved.as_output())

    def close(self, *, over: bool) -> None:
        """Leave it to its retention, which keeps what the remote does not have."""
        with suppress(OSError):
            self._workspace.close()
