"""Runs git: no questions, no hooks, no settings of a repository that run programs, and no end without a bound.

Law: the settings of this machine's user count, since they hold how to reach remotes; those that would start programs
by themselves, or hold a command up, are overruled on every command. Variables that lead git elsewhere are dropped.

Touches: processes, the environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from spoold.protocol.errors import SpoolError

# Of git's own variables only those that say how to reach a remote.
_KEPT = frozenset({"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_PROXY_COMMAND", "GIT_PROXY_SSL_CAINFO"})
_KEPT |= {"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
PROTOCOLS = ("file", "git", "http", "https", "ssh")
_FIXED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
}
_OVERRULED = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "commit.gpgSign": "false",
    "transfer.fsckObjects": "false",
    "advice.detachedHead": "false",
    "init.defaultBranch": "main",
}
# A command that asks nobody outside of this machine, and one that does (s).
LOCAL_S, REMOTE_S = 600.0, 900.0


class GitFailed(SpoolError):
    """A git command failed. words: the command without `git`; code: its exit code; errors: what it said."""

    def __init__(self, words: tuple[str, ...], code: int, errors: str) -> None:
        self.words, self.code, self.errors = words, code, errors
        said = " ".join(errors.split())[-600:] or f"exit code {code}"
        super().__init__(f"`git {' '.join(words[:2])}` failed: {said}")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended: its exit code, and what it printed."""

    code: int
    out: str
    errors: str

    @property
    def lines(self) -> list[str]:
        """The lines of its output."""
        return self.out.splitlines()

    @property
    def names(self) -> list[str]:
        """The parts of an output that NUL separates (`-z`)."""
        return [part for part in self.out.split("\0") if part]


@dataclass(frozen=True, slots=True)
class Git:
    """Git in one repository. directory: its git directory, '' for none; tree: the files that belong to it, '' for
    none; index: a file of its own in place of the repository's; objects: folders of objects to read besides.

    held: descriptors that every command inherits, so that a lock lasts as long as the last command under it.
    """

    directory: str = ""
    tree: str = ""
    index: str = ""
    objects: tuple[str, ...] = ()
    more: Mapping[str, str] | None = None
    held: tuple[int, ...] = ()

    def with_tree(self, tree: str, index: str) -> Git:
        """Return the same repository with these files and this index."""
        return replace(self, tree=tree, index=index)

    def reading(self, objects: str) -> Git:
        """Return the same repository, which also reads objects of that folder."""
        return replace(self, objects=(*self.objects, objects))

    def by(self, author: str, committer: str = "spool") -> Git:
        """Return the same repository, with these names on what is committed."""
        named = {}
        for role, name in (("AUTHOR", author), ("COMMITTER", committer)):
            named[f"GIT_{role}_NAME"], named[f"GIT_{role}_EMAIL"] = name, address(name)
        return replace(self, more={**(self.more or {}), **named})

    def __call__(self, *words: str, given: str = "", within_s: float = LOCAL_S) -> Done:
        """Run a command. Errors: GitFailed."""
        done = self.ask(*words, given=given, within_s=within_s)
        if done.code:
            raise GitFailed(words, done.code, done.errors)
        return done

    def ask(self, *words: str, given: str = "", within_s: float = LOCAL_S) -> Done:
        """Run a command whose exit code is its answer. Errors: GitFailed where it cannot be run or takes too long."""
        done = self._once(words, given, within_s)
        if done.code == -signal.SIGTERM:
            # The signal for this attempt also ended its command; what is to be saved is saved all the same.
            done = self._once(words, given, within_s)
        return done

    def _once(self, words: tuple[str, ...], given: str, within_s: float) -> Done:
        try:
            process = subprocess.Popen(
                ["git", *words],
                cwd=self.tree or self.directory or "/",
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=self.held,
            )
        except OSError as error:
            raise GitFailed(words, 127, f"git cannot be started: {error.strerror}") from error
        try:
            out, errors = process.communicate(given.encode("utf-8", "surrogateescape"), within_s)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the helpers that reach the remote
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise GitFailed(words, 124, f"it has not ended within {within_s:g} s") from None
            raise
        return Done(process.returncode, out.decode("utf-8", "surrogateescape"), errors.decode("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
        found = {**kept, **_FIXED, "GIT_CONFIG_COUNT": str(len(_OVERRULED))}
        for number, (name, value) in enumerate(_OVERRULED.items()):
            found[f"GIT_CONFIG_KEY_{number}"], found[f"GIT_CONFIG_VALUE_{number}"] = name, value
        if self.directory:
            found["GIT_DIR"] = self.directory
        if self.tree and self.directory:
            found["GIT_WORK_TREE"] = self.tree
        if self.index:
            found["GIT_INDEX_FILE"] = self.index
        if self.objects:
            found["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(self.objects)
        return {**found, **(self.more or {})}


def address(name: str) -> str:
    """Return the address that stands behind a name in a commit."""
    return f"{''.join(char if char.isalnum() or char in '-_.' else '-' for char in name) or 'agent'}@spool.invalid"


def commit_of(git: Git, names: Iterable[str]) -> str | None:
    """Return the commit of the first of these names that is one; None where none is. Errors: GitFailed."""
    for name in names:
        done = git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.code == 0:
            return done.out.strip()
    return None


def is_ancestor(git: Git, older: str, newer: str) -> bool:
    """Return whether everything of the older commit is in the newer one. Errors: GitFailed."""
    done = git.ask("merge-base", "--is-ancestor", older, newer)
    if done.code not in (0, 1):
        raise GitFailed(("merge-base", "--is-ancestor"), done.code, done.errors)
    return done.code == 0
