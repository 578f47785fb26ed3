"""Where workspaces lie on this machine: mirrors, and one folder for each attempt, with its record.

    mirrors/HASH.git      the mirror of a repository; mirrors/HASH.lock its lock
    work/NAME/            a workspace: tree/ (what the agent sees), home/, keep.git/ (ours), record.json
    work/NAME/lock        locked by the process that changes it; attempt: locked by an attempt that lives there
    work/NAME+1/          a second place of a task, where an attempt began beside one that lives in NAME
    work/NAME.3/          what attempt 3 left in a place, moved aside by the next one; .3.1 where that name is taken
    unsaved/NAME          the note that a workspace holds work which is on no remote (`only_copies`)

Law: a record is replaced whole. A workspace without a readable record is half made: no agent has been in it.
Only the process that holds `lock` changes a workspace, and the kernel lets go of it with the process. An attempt
holds `attempt` besides, from the making of its workspace to its end. Where that is free, and `lock` is not, a process
saves or removes what lies there, and will let go soon.

Touches: files, the environment.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import ValidationError

from spoold.agents.workspace import room
from spoold.agents.workspace.repository_config import WorkspaceConfig
from spoold.protocol.errors import SpoolError
from spoold.protocol.fields import Strict

RECORD = "record.json"
_PLACED = re.compile(r"((?:\+[0-9]+)?)(?:\.[0-9]+){0,2}")


# Among the words of an agent: what followed its work, of which nothing is missing.
OVER = "over"


class Record(Strict):
    """What is known of a workspace. start: the commit with which it began; base: the commit of the base then.

    worked: whether an agent has begun there (True where an earlier release made it); saved: whether nothing has been
    made there since the last save; ref and commit: what the remote was given, ''
    for nothing; more_ref and more: the same of what lies beside the work; left_out: what could not be saved; ended:
    when it was closed (epoch, s), None while it is open. admin: the git directory of a worktree, '' for a clone;
    secrets: the names of those that the task was given; scans: what is looked for besides, None for nothing; leaks:
    where the work holds what looks like a secret; owner: the newest commit below the base that is no agent's, '' for
    none: addresses come from there; submodules: path and address of those that were fetched; spool: of which spool
    the task is; words: what the agent ended with, until the record of the next attempt's workspace has it; with OVER
    in it nothing is missing any more, should the end of its attempt not be lost.
    """

    task: str
    attempt: int
    profile: str
    config: WorkspaceConfig
    spool: str = ""
    start: str = ""
    base: str = ""
    owner: str = ""
    admin: str = ""
    submodules: dict[str, str] = {}
    began: float
    worked: bool = True
    saved: bool = False
    ref: str = ""
    commit: str = ""
    more_ref: str = ""
    more: str = ""
    left_out: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    scans: dict[str, Any] | None = None
    leaks: tuple[str, ...] = ()
    words: dict[str, Any] = {}
    ended: float | None = None

    @property
    def awaited(self) -> bool:
        """Whether the next attempt has only to push the work, or to go on with what follows it."""
        return bool(self.words) and OVER not in self.words


class Places:
    """The folders. top: where all of it lies; by default in the cache of this user."""

    def __init__(self, top: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
        home = environ.get("HOME") or os.path.expanduser("~")
        cache = environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
        self.top = top or os.path.join(cache, "spoold", "workspaces")
        root = environ.get("SPOOL_ROOT")
        if root and os.path.realpath(self.top).startswith(os.path.realpath(root) + os.sep):
            raise SpoolError(
                f"the workspaces would lie on the spool itself, in {self.top}. Name a folder on this machine's own "
                "disk as `dir` of the workspace."
            )
        self.mirrors = os.path.join(self.top, "mirrors")
        self.work = os.path.join(self.top, "work")
        self.unsaved = os.path.join(self.top, "unsaved")

    def make(self) -> None:
        """Make the folders; nobody else may look into them. Errors: OSError."""
        for folder in (self.top, self.mirrors, self.work):
            os.makedirs(folder, mode=0o700, exist_ok=True)

    def mirror(self, repo: str) -> str:
        """Return the git directory of a repository's mirror."""
        return os.path.join(self.mirrors, f"{_digest(repo)}.git")

    def workspace(self, task: str, spool: str) -> str:
        """Return the folder of a task's present attempt: the same path for each, since agents keep sessions by it."""
        return os.path.join(self.work, f"{encoded(task)}.{_digest(os.path.realpath(spool) if spool else '')[:6]}")

    def place(self, path: str, task: str, spool: str) -> str:
        """Return the place of a task's attempts of which a folder has the name, its own or one aside; '' for none. A
        folder of another task may have such a name, too: its record tells."""
        first = self.workspace(task, spool)
        found = _PLACED.fullmatch(path.removeprefix(first)) if path.startswith(first) else None
        return f"{first}{found[1]}" if found else ""

    def of_task(self, task: str, spool: str) -> list[tuple[str, str, Record]]:
        """Return the workspaces of a task that are not half made: the place of each, its folder, and its record."""
        first, found = self.workspace(task, spool), list[tuple[str, str, Record]]()
        for path in self.folders():
            place = self.place(path, task, spool)
            record = read_record(path) if place else None
            if record is not None and record.task == task and self.workspace(task, record.spool) == first:
                found.append((place, path, record))
        return found

    def newest(self, task: str, spool: str, living: Collection[str]) -> str:
        """Return the place of a task's newest attempt whose agent began, else of any; the first one where there is
        none. living: places that do not count, since attempts live there."""
        found = [
            ((record.worked or bool(record.words), record.attempt, record.began), place)
            for place, _, record in self.of_task(task, spool)
            if place not in living
        ]
        return max(found)[1] if found else self.workspace(task, spool)

    @contextmanager
    def arranging(self) -> Iterator[None]:
        """Hold the lock under which folders of workspaces are made and moved, within the `with`. Errors: OSError."""
        self.make()
        with holding(f"{self.work}.lock"):
            yield

    def folders(self) -> list[str]:
        """Return the folders of all workspaces, also half made ones."""
        try:
            return sorted(entry.path for entry in os.scandir(self.work) if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []


def encoded(task: str) -> str:
    """Return a task's id as a part of a reference: git takes neither two dots nor `.lock` at the end."""
    return re.sub(r"\.(?=lock$)", "%2E", task.replace("..", ".%2E"), flags=re.IGNORECASE)


def read_record(folder: str) -> Record | None:
    """Return the record of a workspace; None for one that is half made. Errors: OSError but for a missing file."""
    try:
        with open(os.path.join(folder, RECORD), "rb") as file:
            return Record.model_validate_json(file.read())
    except (FileNotFoundError, NotADirectoryError, ValidationError):
        return None


def write_record(folder: str, record: Record) -> None:
    """Replace the record. Errors: OSError."""
    room.replace(os.path.join(folder, RECORD), record.model_dump_json().encode(), durable=True)


def take(folder: str) -> int | None:
    """Lock a workspace for this process; returns the descriptor that holds it, None where another holds it, or where
    the folder is gone.

    Errors: OSError.
    """
    path = os.path.join(folder, "lock")
    try:
        held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(held), os.stat(path)):  # else the folder was removed or moved meanwhile
            return held
    os.close(held)
    return None


def attend(folder: str) -> int:
    """Say that an attempt lives in a workspace, until the descriptor that this returns is closed. Errors: OSError."""
    held = os.open(os.path.join(folder, "attempt"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)  # one who asks lets go at once
    return held


def is_attended(folder: str) -> bool:
    """Return whether an attempt lives in a workspace, as opposed to one who saves or removes it. Errors: OSError."""
    try:
        asked = os.open(os.path.join(folder, "attempt"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(asked, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(asked)
    return False


@contextmanager
def holding(path: str) -> Iterator[int]:
    """Hold the lock of that path within the `with`, waiting for it as long as it takes. Errors: OSError."""
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield held
    finally:
        fcntl.flock(
            held, fcntl.LOCK_UN
        )  # a helper of git that outlives its command may have a copy of the descriptor
        os.close(held)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
