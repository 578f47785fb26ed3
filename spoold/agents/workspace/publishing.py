"""How a commit gets its reference on the remote: refs/spool/TASK/ATTEMPT, which is only ever made.

A repository on a path, as on a share, has no server: who pushes takes git's locks of a reference there by himself. A
machine that loses power at that moment leaves them for ever, and git refuses every later push to that reference. So
a push is tried again past such a lock.

Law: a reference of another attempt is never replaced. A later save of the same attempt moves its own reference, if it
still holds what this attempt gave it. Where the number is taken, as by an earlier life of the id, the next name is
TASK/ATTEMPT.2. What lies beside the work has a name that ends with `.more`. A push whose answer was lost counts by
what the remote shows. Git keeps references as paths: where one is called as the folder of another, or is in it, no
push goes before a person renames it, whatever git says of the push.

A lock is removed only if it is that of the reference that is pushed, or of HEAD, which git locks with it; and only
after it has stood unchanged for HELD_S while this process looked. Git holds both for milliseconds.

Touches: files, the clock.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic, sleep

from spoold.agents.workspace.git import (
    REMOTE_S,
    Git,
    GitFailed,
    RemoteRefused,
    WorkspaceFailed,
    checked_out,
    failure,
    said,
)
from spoold.agents.workspace.workspace_layout import encoded

TOP = "refs/spool/"
# The end of the name of what lies beside the work. No next attempt takes it for work.
MORE = ".more"
_LET_WRITE = "Fix: let this machine's user write there without being asked for a password."
_ATTEMPT = re.compile(r"([1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,3}))?")
# More lives of one id than anybody has; beyond, something answers "taken" to everything.
_LIVES = 50


def prefix(task: str) -> str:
    """Return what the references of a task begin with."""
    return f"{TOP}{encoded(task)}/"


def publish(
    git: Git,
    repo: str,
    commit: str,
    task: str,
    attempt: int,
    own: tuple[str, str] = ("", ""),
    ending: str = "",
) -> str:
    """Push a commit to a reference of this attempt, and return the reference.

    own: the reference and commit of an earlier save of this attempt, '' for none; ending: of the name. Errors:
    WorkspaceFailed.
    """
    ref, was = own
    if was == commit and standing(git, repo, [ref]).get(ref) == commit:
        return ref
    names = [f"{prefix(task)}{attempt}{'' if life == 1 else f'.{life}'}{ending}" for life in range(1, _LIVES)]
    for name, expected in [(ref, was)] * bool(ref) + [(name, "") for name in names]:
        words = ("push", "--porcelain", "--no-verify", "--quiet", f"--force-with-lease={name}:{expected}")
        failed = push(git, repo, name, *words, f"{commit}:{name}")
        there = {} if failed is None else standing(git, repo, _around(name))
        stands = there.get(name)
        if failed is None or stands == commit:
            return name
        _insist_on_room(repo, name, there)
        if stands is None or stands == expected:
            raise _unwritable(repo, task, name, failed)
    raise WorkspaceFailed(f"{repo} has {_LIVES} references {prefix(task)}{attempt}. Fix: give the task another id.")


def publish_branch(git: Git, repo: str, commit: str, name: str) -> None:
    """Push a commit to a branch of its own name, whatever an earlier attempt left there. Errors: WorkspaceFailed."""
    ref = f"refs/heads/{name}"
    was = standing(git, repo, [ref]).get(ref, "")
    words = ("push", "--porcelain", "--no-verify", "--quiet", f"--force-with-lease={ref}:{was}")
    failed = push(git, repo, ref, *words, f"{commit}:{ref}")
    there = {} if failed is None else standing(git, repo, _around(ref))
    if failed is not None and there.get(ref) != commit:
        _insist_on_room(repo, ref, there)
        if why := checked_out(failed, repo, name):
            raise failure(failed, why, known=True)
        text = f"the branch {name} cannot be pushed to {repo}: {said(failed)}"
        raise failure(failed, text, "Fix: let this machine's user push it.", known=True)


def _around(name: str) -> list[str]:
    """Return a reference, those beside which there can be none of its name, and a pattern for those below it."""
    parts = name.split("/")
    return [name, *("/".join(parts[:count]) for count in range(2, len(parts))), f"{name}/*"]


def _insist_on_room(repo: str, name: str, there: Iterable[str]) -> None:
    """Raise RemoteRefused where another reference is in the way of one of this name. there: those of the remote."""
    for one in there:
        if name.startswith(f"{one}/") or one.startswith(f"{name}/"):
            raise RemoteRefused(
                f"{repo} has {_called(one)}, so git can make no {_called(name)} there. "
                f"Fix: rename or delete {_called(one)} in {repo}, and run `spool retry`; what was made is kept."
            )


def _called(ref: str) -> str:
    return f"branch {ref.removeprefix('refs/heads/')}" if ref.startswith("refs/heads/") else f"reference {ref}"


def check(git: Git, repo: str, commit: str, task: str, attempt: int) -> None:
    """Ask the remote whether it would take a reference, before an agent works for nothing. Errors: WorkspaceFailed.

    A server may still refuse the push itself.
    """
    name = f"{prefix(task)}{attempt}"
    folder = next((one for one in (repo, f"{repo}/.git") if os.path.isdir(f"{one}/objects")), None)
    if repo.startswith("/") and folder is not None and not os.access(f"{folder}/objects", os.W_OK):
        failed: GitFailed | None = GitFailed(("push",), 1, f"{folder}/objects may not be written by this user")
    else:
        failed = tried(git, "push", "--dry-run", "--quiet", "--no-verify", "--", repo, f"+{commit}:{name}")
    if failed is not None:
        text = f"{repo} would not take the work of {task} as {name}, so no agent begins: {said(failed)}"
        raise failure(failed, text, _LET_WRITE, known=True)


def _unwritable(repo: str, task: str, name: str, failed: GitFailed) -> WorkspaceFailed:
    text = f"the work of {task} cannot be pushed to {name} of {repo}: {said(failed)}"
    return failure(failed, text, _LET_WRITE, known=True)


def standing(git: Git, repo: str, names: list[str]) -> dict[str, str]:
    """Return the commits of these references, or patterns, on the remote. Errors: WorkspaceFailed."""
    try:
        # --refs would leave out a reference right below refs/.
        lines = git("ls-remote", "--quiet", "--", repo, *names, within_s=REMOTE_S).lines
    except GitFailed as failed:
        text = f"the repository {repo} cannot be read here: {said(failed)} Fix: check the network and the address."
        raise failure(failed, text, known=True) from failed
    found = (line.partition("\t") for line in lines)
    return {name: commit for commit, _, name in found if not name.endswith("^{}")}


def newest(references: dict[str, str], task: str, attempt: int) -> tuple[str, str] | None:
    """Return the newest reference of a task, up to this attempt, with its commit; None where there is none."""
    found = []
    for name, commit in references.items():
        match = _ATTEMPT.fullmatch(name.removeprefix(prefix(task)))
        if match is not None and int(match[1]) <= attempt:
            found.append((int(match[1]), int(match[2] or 1), name, commit))
    return max(found)[2:] if found else None


# One push, and again when a machine that died in the middle of its own push had left a lock there.


# What slows git down there is a hook for transactions; no hook that tests a push runs under these locks (s).
HELD_S = 60.0
LOOK_S = 0.5
# Another push may come between.
TRIES = 3
_TAKEN = re.compile(r"Unable to create '(/[^'\n]+\.lock)': File exists")


def push(git: Git, repo: str, ref: str, *words: str) -> GitFailed | None:
    """Push to a reference; returns why it failed, None where it did not. words: the command, without the repository
    and what is pushed; the last one is what is pushed."""
    command = (*words[:-1], "--", repo, words[-1])
    failed = tried(git, *command)
    for _ in range(TRIES):
        if failed is None or not _freed(repo, ref, failed.errors):
            break
        failed = tried(git, *command)
    return failed


def tried(git: Git, *words: str) -> GitFailed | None:
    """Run a command that reaches a remote; returns why it failed, None where it did not."""
    try:
        done = git.ask(*words, within_s=REMOTE_S)
    except GitFailed as failed:
        return failed
    return None if done.code == 0 else GitFailed(words, done.code, f"{done.errors}\n{done.out}")


def _freed(repo: str, ref: str, errors: str) -> bool:
    """Whether a lock that was in the way is gone, by itself or since nobody held it any more."""
    ours = _locks(repo, ref)
    path = next((one for found in _TAKEN.finditer(errors) if (one := os.path.realpath(found[1])) in ours), "")
    if not path:
        return False
    before, until = {one: _seen(one) for one in ours}, monotonic() + HELD_S
    while before[path] is not None and _seen(path) == before[path]:
        if monotonic() >= until:
            for one, seen in before.items():
                if seen is not None and _seen(one) == seen:
                    with suppress(OSError):
                        os.unlink(one)
            return _seen(path) != before[path]
        sleep(LOOK_S)
    return True


def _locks(repo: str, ref: str) -> list[str]:
    """The locks that a push to this reference takes in a repository on a path; none for another address."""
    folders = [os.path.realpath(one) for one in (repo, os.path.join(repo, ".git"))] if repo.startswith("/") else []
    return [os.path.join(folder, f"{name}.lock") for folder in folders for name in (ref, "HEAD")]


def _seen(path: str) -> tuple[int, int, int] | None:
    """What tells a file from another of its name, and from itself at another time; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
