"""One push, and again when a machine that died in the middle of its own push had left a lock there.

A repository on a path, as on a share, has no server: who pushes takes git's locks of a reference there by himself. A
machine that loses power at that moment leaves them for ever, and git refuses every later push to that reference.

Law: a lock is removed only if it is that of the reference that is pushed, or of HEAD, which git locks with it; and
only after it has stood unchanged for HELD_S while this process looked. Git holds both for milliseconds.

Touches: files, the clock.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from time import monotonic, sleep

from spoold.agents.workspace.git import REMOTE_S, Git, GitFailed

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
