"""The workspace of the attempt that runs in this process, by the variables that every handler has.

Law: what the task says counts after what its profile says; who may say what is the profile's matter.

Touches: the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from spoold.agents.scanning import scanning
from spoold.agents.workspace.config import WorkspaceConfig
from spoold.agents.workspace.workspace import Workspace
from spoold.protocol import codec


def of_attempt(
    profile: Mapping[str, Any],
    task: Mapping[str, Any],
    *,
    fresh: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Workspace:
    """Return the workspace of this attempt. profile, task: what each says of it; fresh: begin with the base, whatever
    earlier attempts made. Errors: BadFile, SpoolError."""
    kind = environ.get("SPOOL_TASK_TYPE", "agent")
    said = {**profile, **task, **({"resume": "fresh"} if fresh else {})}
    config = codec.check(WorkspaceConfig, said, f"the workspace of {kind}")
    attempt = int(environ.get("SPOOL_ATTEMPT", "1"))
    task_id = environ.get("SPOOL_TASK_ID", kind)
    scanner = scanning(environ)
    return Workspace(config, task=task_id, attempt=attempt, profile=kind, environ=environ, scanner=scanner)
