"""A repository of an attempt's own, where its profile or its task names one; else the folder in which it starts.

It stands apart from `one_attempt`, its one user, which works with any `Workspace`.

Law: what was asked for and cannot be had is an error, before the agent begins. What the task says counts after what
its profile says; who may say what is the profile's matter.

Touches: the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spoold.agents.attempt.cleanup import Tidying
from spoold.agents.configuration.redactor import scanning
from spoold.agents.process.interfaces import Folder, Opened, Saved, Workspace
from spoold.agents.sandbox.protected_files import Whose
from spoold.agents.workspace.attempt_workspace import RepositoryWorkspace
from spoold.agents.workspace.repository_config import Kind, WorkspaceConfig
from spoold.protocol import codec

_WHOSE: dict[Kind, Whose] = {"clone": "own", "worktree": "shared", "none": "none"}


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
        self._tidying: Tidying | None = None

    @property
    def disk(self) -> str:
        """The folder of all workspaces of the profile."""
        return self._workspace.places.top

    def open(self) -> Opened:
        """Make it. Errors: SpoolError, OSError."""
        own, directory = self._workspace, self._workspace.open()
        self._tidying = Tidying(own.places, own.config.repo)
        return Opened(
            directory,
            own.home,
            own.returning,
            own.env,
            own.borrowed,
            _WHOSE[own.config.kind],
            setup=own.config.setup,
            done=own.done,
            goes_on_from=own.start_of_work if own.config.resume == "work" else None,
        )

    def begin(self) -> None:
        """Note in the record of the workspace that an agent begins. Errors: OSError."""
        self._workspace.begin()

    def keep_words(self, said: Mapping[str, Any]) -> None:
        """Keep them in the record of the workspace. Errors: OSError."""
        self._workspace.keep_words(said)

    def save(self, message: str) -> Saved:
        """Push what was made; may be called again. Errors: SpoolError, OSError."""
        saved = self._workspace.save(message)
        return Saved(saved.changed_files, saved.as_output(), saved.amiss)

    def push_branch(self, name: str) -> None:
        """Push what was saved to a branch. Errors: SpoolError."""
        self._workspace.push_branch(name)

    def content(self, name: str) -> bytes | str:
        """Return a file of what was saved, or in words why there is none. Errors: SpoolError."""
        return self._workspace.content(name)

    def unsaved(self) -> Mapping[str, Any]:
        """Return where work of this task is that the remote was not seen to have; {} for none."""
        with suppress(OSError):
            return self._workspace.unsaved()
        return {}

    def close(self, *, over: bool) -> None:
        """Leave it to its retention, which keeps what the remote does not have."""
        if self._tidying is not None:
            self._tidying.end()
        with suppress(OSError):
            self._workspace.close()


# The workspace of the attempt that runs in this process, by the variables that every handler has.


def of_attempt(
    profile: Mapping[str, Any],
    task: Mapping[str, Any],
    *,
    fresh: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> RepositoryWorkspace:
    """Return the workspace of this attempt. profile, task: what each says of it; fresh: begin with the base, whatever
    earlier attempts made. Errors: BadFile, SpoolError."""
    kind = environ.get("SPOOL_TASK_TYPE", "agent")
    said = {**profile, **task, **({"resume": "fresh"} if fresh else {})}
    config = codec.check(WorkspaceConfig, said, f"the workspace of {kind}")
    attempt = int(environ.get("SPOOL_ATTEMPT", "1"))
    task_id = environ.get("SPOOL_TASK_ID", kind)
    scanner = scanning(environ)
    return RepositoryWorkspace(config, task=task_id, attempt=attempt, profile=kind, environ=environ, scanner=scanner)
