"""Which workspaces are on this machine, and which of them may go.

Those may go that ended long enough ago, and of which the remote has everything. `list_workspaces` only looks, for
people.

Law: nothing that the remote does not have is removed. What a killed process left is pushed first; what cannot be
pushed, or could not be saved whole, stays until a person removes it. Before one goes, another program than that which
saved it looks at every file. A workspace in use is not touched. One whose agent has ended, and whose next attempt has
not taken that up, is kept for WORDS_S at least, beyond any quota: its agent would be paid again.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from spoold.agents.workspace import checkout, committing, only_copies, publishing, workspace_layout
from spoold.agents.workspace.git import Git, GitFailed, WorkspaceFailed
from spoold.agents.workspace.mirror import HEADS, Mirror
from spoold.agents.workspace.repository_config import DAY_S
from spoold.agents.workspace.room import NoRoom
from spoold.agents.workspace.workspace_layout import Places, Record
from spoold.protocol.amount import length
from spoold.protocol.errors import NotFound
from spoold.system.remover import quoted, remove
from spoold.system.same_mount import PLACE
from spoold.system.walking import disk_use

# Saves what lies in a folder whose lock is held.
Save = Callable[[str, Record], Record]
_ASKED_AT_ONCE = 100
# So long (s) a workspace is kept at least for a next attempt that has only to push, or to go on with what follows.
WORDS_S = 7 * DAY_S
STAYS = "it cannot be removed"
ON_NO_REMOTE = "is in no commit of the remote"
_NOT_SAVED, _ONLY_COPY = "not saved", "the only copy"


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a workspace: removed or not, and why. unsaved: the remote was not seen to have all of it;
    pushed: the references that the remote, repo, was given just now.
    """

    folder: str
    task: str
    removed: bool
    why: str
    unsaved: bool = False
    pushed: tuple[str, ...] = ()
    repo: str = ""


def collect(
    where: Places, now: float, save: Save, keep_s: float | None = None, repo: str | None = None
) -> list[Judged]:
    """Remove what may go. now: epoch, s; keep_s: in place of what each workspace says; repo: only of this one.

    Errors: OSError.
    """
    judged, ended, pushed = list[Judged](), dict[str, Record](), dict[str, list[str]]()
    repos = dict[str, str]()
    for folder in where.folders():
        with where.arranging():  # a folder that is just being made has no record either
            held = workspace_layout.take(folder)
            record = workspace_layout.read_record(folder)
            if held is not None and record is None:
                judged.append(_half_made(where, folder))
        if held is None:
            judged.append(Judged(folder, record.task if record else "", False, _held_by(folder)))
            continue
        try:
            if record is None:
                continue
            if repo is not None and record.config.repo != repo:
                continue
            before, repos[folder] = record, record.config.repo
            record, why = _ended(folder, record, now, save, keep_s)
            pushed[folder] = [ref for ref, commit in _given(record) if (ref, commit) not in _given(before)]
            only_copies.tell(where, folder, record)
            if why:
                unsaved = why.startswith((_NOT_SAVED, _ONLY_COPY))
                judged.append(Judged(folder, record.task, False, _told(record, why), unsaved))
            else:
                ended[folder] = record
        finally:
            os.close(held)
    judged += _remove_safe(where, ended, pushed)
    only_copies.forget_gone(where)
    return [replace(one, pushed=tuple(pushed.get(one.folder, ())), repo=repos.get(one.folder, "")) for one in judged]


def _held_by(folder: str) -> str:
    """Return in words who holds a workspace."""
    if workspace_layout.is_attended(folder):
        return "in use"
    return "another process is saving or removing it just now"


def make_room(where: Places, quota_mb: int, now: float, save: Save) -> None:
    """Remove what may go, whatever its age, until all of it takes no more than this.

    Errors: NoRoom where other workspaces are in the way, which is no task's fault; WorkspaceFailed where none is.
    """
    quota = quota_mb << 20
    if size_of(where.top) <= quota:
        return
    kept = [one for one in collect(where, now, save, keep_s=0) if not one.removed]
    if (size := size_of(where.top)) > quota:
        stay = ", ".join(f"{one.task} ({one.why})" for one in kept[:3]) or "none"
        raise (NoRoom if kept else WorkspaceFailed)(
            f"the workspaces in {where.top} take {size >> 20:,} MiB, and their quota_mb is {quota_mb:,}. "
            f"Workspaces that stay: {stay}. Fix: raise quota_mb, or look at `spool workspace ls`."
        )


def size_of(folder: str) -> int:
    """Return the bytes on disk of a folder with all that is in it; a file with two names counts once."""
    try:
        place = os.open(folder, PLACE)
    except OSError:
        return 0
    try:
        return disk_use(".", place)[0]
    finally:
        os.close(place)


def _half_made(where: Places, folder: str) -> Judged:
    try:
        _remove(where, folder, None)
    except WorkspaceFailed as failed:
        return Judged(folder, "", False, str(failed))
    return Judged(folder, "", True, "half made: no agent has been in it")


def _ended(folder: str, record: Record, now: float, save: Save, keep_s: float | None) -> tuple[Record, str]:
    """Return the record of a workspace, saved where it was not, and why it stays; '' where it may go."""
    if not record.saved or record.ended is None:
        try:
            record = save(folder, record)
        except (WorkspaceFailed, OSError) as error:
            return record, f"{_NOT_SAVED}: {error}"
    if record.left_out:
        return record, f"{_ONLY_COPY}: {record.left_out[0]}"
    keep_s = record.config.keep_s if keep_s is None else keep_s
    until = (record.ended or now) + (max(keep_s, WORDS_S) if record.awaited else keep_s)
    if now < until:
        needed = ": its next attempt needs it" if record.awaited else ""
        return record, f"kept for another {length(until - now)}{needed}"
    return record, ""


def _remove_safe(where: Places, ended: dict[str, Record], pushed: dict[str, list[str]]) -> list[Judged]:
    """Remove those of which the remote has all, and push again what it has no more. pushed: gets what that is."""
    judged = []
    for repo in sorted({record.config.repo for record in ended.values()}):
        mine = {folder: record for folder, record in ended.items() if record.config.repo == repo}
        try:
            there = _there(repo, [ref for record in mine.values() for ref, _ in _given(record)])
        except WorkspaceFailed as failed:
            judged += [Judged(folder, one.task, False, str(failed), unsaved=True) for folder, one in mine.items()]
            continue
        for folder, record in mine.items():
            held = workspace_layout.take(folder)
            if held is None:
                judged.append(Judged(folder, record.task, False, _held_by(folder)))
                continue
            try:
                now = workspace_layout.read_record(folder)
                if now is None or (now.attempt, now.began) != (record.attempt, record.began):
                    judged.append(Judged(folder, record.task, False, "an attempt has been there just now"))
                    continue
                for ref, commit in _given(record):
                    if there.get(ref) != commit:
                        pushed[folder] += _give_again(where, folder, record, commit)
                if record.config.kind != "none" and (lack := committing.lacking(Mirror(where, repo), folder, record)):
                    why = f"{_ONLY_COPY}: {quoted(lack[0])} and what it holds {ON_NO_REMOTE}"
                    judged.append(Judged(folder, record.task, False, why, unsaved=True))
                    only_copies.tell(where, folder, record, lacking=True)
                    continue
                _remove(where, folder, record)
                where_to = ", ".join(ref for ref, _ in _given(record)) or "nothing was made there"
                judged.append(Judged(folder, record.task, True, _told(record, where_to)))
            except (WorkspaceFailed, GitFailed, OSError) as failed:
                why = str(failed)
                judged.append(Judged(folder, record.task, False, why, unsaved=not why.startswith(STAYS)))
            finally:
                os.close(held)
    return judged


def _told(record: Record, why: str) -> str:
    """Return what became of a workspace, and what in its work looks like a secret: its attempt may have no result."""
    return "; ".join([why, *record.leaks])


def _there(repo: str, names: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for at in range(0, len(names), _ASKED_AT_ONCE):
        found |= publishing.standing(Git(), repo, names[at : at + _ASKED_AT_ONCE])
    return found


def _given(record: Record) -> list[tuple[str, str]]:
    """Return the references that the remote was given, with their commits."""
    return [(ref, commit) for ref, commit in ((record.ref, record.commit), (record.more_ref, record.more)) if ref]


def _give_again(where: Places, folder: str, record: Record, commit: str) -> list[str]:
    """Make sure that the remote has a commit whose reference is gone from it; returns the reference that it was
    given. Errors: WorkspaceFailed."""
    mirror = Mirror(where, record.config.repo)
    with mirror.locked() as git:
        mirror.fetch(git)
        landed = git.ask("for-each-ref", "--count=1", f"--contains={commit}", HEADS)
    if landed.code == 0 and landed.out:
        return []
    ending = publishing.MORE if commit == record.more else ""
    words = (record.config.repo, commit, record.task, record.attempt)
    return [publishing.publish(checkout.keeper(folder), *words, ending=ending)]


def _remove(where: Places, folder: str, record: Record | None) -> None:
    """Remove a folder, the record first: what is left by a kill is half made. Errors: WorkspaceFailed, OSError."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, workspace_layout.RECORD))
    left = remove(folder)
    only_copies.forget(where, folder)
    if record is not None and record.admin:
        checkout.forget(Mirror(where, record.config.repo), record)
    if left:
        raise WorkspaceFailed(f"{STAYS}: {quoted(left[0].path)} ({left[0].size >> 20:,} MiB): {left[0].why}")


# What people see of the workspaces on this machine.


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
    name = workspace_layout.encoded(task)
    raise NotFound(
        f"no workspace of {task} is on this machine; `spool workspace ls` shows those there are. Its work is on the "
        f"remote: git fetch REPO 'refs/spool/{name}/*:refs/spool/{name}/*'."
    )


def _shown(folder: str) -> Shown:
    record = workspace_layout.read_record(folder)
    if record is None:
        return Shown("", 0, "", "", "", "half made", "", "", (), folder)
    since = datetime.fromtimestamp(record.began, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Shown(
        *(record.task, record.attempt, record.profile, record.config.repo, record.config.kind),
        *(_state(folder, record), record.ref, since, record.left_out, checkout.tree_of(folder)),
    )


def _state(folder: str, record: Record) -> str:
    if workspace_layout.is_attended(folder):
        return "in use"
    if not record.saved:
        return "not saved"
    return "saved" if _given(record) or record.config.kind == "none" else "no change"
