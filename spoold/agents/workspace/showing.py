"""What people see of the workspaces on this machine.

Law: looks and never touches.

Touches: files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from spoold.agents.workspace import checkout, places
from spoold.agents.workspace.places import Places, Record
from spoold.protocol.errors import NotFound


@dataclass(frozen=True, slots=True)
class Shown:
    """One workspace. state: in use, saved, not saved, no change, or half made; since: when it began (RFC 3339)."""

    task: str
    attempt: int
    profile: str
    repo: str
    kind: str
    state: str
    ref: str
    since: str
    left_out: tuple[str, ...]
    directory: str


def list_workspaces(where: Places) -> list[Shown]:
    """Return all workspaces, the newest first. Errors: OSError."""
    found = [_shown(folder) for folder in where.folders()]
    return sorted(found, key=lambda one: (one.since, one.task), reverse=True)


def find(where: Places, task: str) -> Shown:
    """Return the newest workspace of a task. Errors: NotFound, OSError."""
    for one in list_workspaces(where):
        if one.task == task:
            return one
    raise NotFound(
        f"no workspace of {task} is on this machine; `spool workspace ls` shows those there are. Its work is on the "
        f"remote: git fetch REPO 'refs/spool/{places.encoded(task)}/*:refs/spool/{places.encoded(task)}/*'."
    )


def _shown(folder: str) -> Shown:
    record = places.read_record(folder)
    if record is None:
        return Shown("", 0, "", "", "", "half made", "", "", (), folder)
    since = datetime.fromtimestamp(record.began, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Shown(
        *(record.task, record.attempt, record.profile, record.config.repo, record.config.kind),
        *(_state(folder, record), record.ref, since, record.left_out, checkout.tree_of(folder)),
    )


def _state(folder: str, record: Record) -> str:
    held = places.take(folder)
    if held is None:
        return "in use"
    os.close(held)
    if not record.saved:
        return "not saved"
    return "saved" if record.ref or record.config.kind == "none" else "no change"
