"""Runs git: no questions, no hooks, no settings of a repository that run programs, and no end without a bound.

Law: the settings of this machine and of its user count for the commands that reach a remote, since they hold how to
reach it, and for no other: what is saved, checked out and merged is the same on every machine. Settings that would
start programs by themselves, or hold a command up, are overruled on every command. Variables that lead git elsewhere
are dropped. A command that reads what an agent wrote runs in a cage.

Touches: files, processes, threads, the environment.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO

from spoold.agents.sandbox import cage
from spoold.agents.sandbox.cage import Cage
from spoold.protocol.errors import SpoolError
from spoold.system.walking import walk

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
    "GIT_LFS_SKIP_DOWNLOAD_ERRORS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
}
# The commands that reach a remote; all others know neither user nor machine.
_REACHING = frozenset({"fetch", "push", "ls-remote", "lfs"})
_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
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
# The exit code of a program around another one that was killed, such as a cage.
KILLED = 128 + signal.SIGKILL


class GitFailed(SpoolError):
    """A git command failed. words: the command without `git`; code: its exit code; errors: what it said."""

    def __init__(self, words: tuple[str, ...], code: int, errors: str) -> None:
        self.words, self.code, self.errors = words, code, errors
        said = end_of(" ".join(errors.split())) or f"exit code {code}"
        super().__init__(f"`git {' '.join(words[:2])}` failed: {said}")

    @property
    def killed(self) -> bool:
        """Whether it was killed from outside, as by a machine whose memory is full: that says nothing of the work."""
        return self.code in (-signal.SIGKILL, KILLED)


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

    held: descriptors that every command inherits, so that a lock lasts as long as the last command under it; cage:
    in which every command runs, where one opens what an agent wrote; settings: besides ours.
    """

    directory: str = ""
    tree: str = ""
    index: str = ""
    objects: tuple[str, ...] = ()
    more: Mapping[str, str] | None = None
    held: tuple[int, ...] = ()
    cage: Cage | None = None
    settings: Mapping[str, str] | None = None

    def set(self, settings: Mapping[str, str]) -> Git:
        """Return the same repository, with these settings besides."""
        return replace(self, settings={**(self.settings or {}), **settings})

    def caged(self, *, reads: tuple[str, ...], writes: tuple[str, ...], programs: tuple[str, ...] = ()) -> Git:
        """Return the same repository, whose commands see these folders and programs, and nothing else."""
        return replace(self, cage=Cage(reads, writes, programs))

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

    def at(self, date: str) -> Git:
        """Return the same repository, with this date on what is committed."""
        return replace(self, more={**(self.more or {}), "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date})

    def __call__(self, *words: str, given: str | int = "", within_s: float = LOCAL_S) -> Done:
        """Run a command. given: to its standard input, or the descriptor that is it. Errors: GitFailed."""
        done = self.ask(*words, given=given, within_s=within_s)
        if done.code:
            raise GitFailed(words, done.code, done.errors)
        return done

    def ask(self, *words: str, given: str | int = "", within_s: float = LOCAL_S) -> Done:
        """Run a command whose exit code is its answer. Errors: GitFailed where it cannot be run or takes too long, or
        is killed: that is no answer."""
        done = self._once(words, given, within_s)
        if done.code == -signal.SIGTERM:
            # The signal for this attempt also ended its command; what is to be saved is saved all the same.
            if isinstance(given, int):
                os.lseek(given, 0, os.SEEK_SET)
            done = self._once(words, given, within_s)
        if done.code in (-signal.SIGKILL, KILLED):
            raise GitFailed(words, done.code, done.errors)
        return done

    @contextmanager
    def piped(self, *words: str, given: str | int = "") -> Iterator[IO[bytes]]:
        """Yield what a command prints as it comes, for what may be too much to hold; it ends with the `with`. given:
        to its standard input, or the descriptor that is it.

        Errors: GitFailed where it cannot be run or fails, at the end.
        """
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as errors:
            if not isinstance(given, int):
                asked.write(given.encode("utf-8", "surrogateescape"))
                asked.seek(0)
            directory, env = self.tree or self.directory or "/", self._environment(words)
            process = subprocess.Popen(
                ["git", *words],
                cwd=directory,
                env=env,
                stdin=given if isinstance(given, int) else asked,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
            late = threading.Timer(LOCAL_S, process.kill)
            late.start()
            try:
                assert process.stdout is not None
                with process.stdout:
                    yield process.stdout
                if process.wait():
                    if late.finished.is_set():
                        raise GitFailed(words, 124, f"it has not ended within {LOCAL_S:g} s")
                    errors.seek(0)
                    raise GitFailed(words, process.returncode, errors.read().decode("utf-8", "replace"))
            finally:
                late.cancel()
                process.kill()
                process.wait()

    def _once(self, words: tuple[str, ...], given: str | int, within_s: float) -> Done:
        argv, env, directory = ["git", *words], self._environment(words), self.tree or self.directory or "/"
        try:
            argv = argv if self.cage is None else self.cage.around(argv, env, directory)
        except OSError as error:
            raise GitFailed(words, 126, str(error)) from error
        return run(words, argv, directory, env, given, within_s, self.held)

    def _environment(self, words: tuple[str, ...]) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
        if words[0] not in _REACHING:
            kept = {**(kept if self.cage is None else cage.variables()), **_ALONE}
        settings = {**_OVERRULED, **(self.settings or {})}
        found = {**kept, **_FIXED, "GIT_CONFIG_COUNT": str(len(settings))}
        for number, (name, value) in enumerate(settings.items()):
            found[f"GIT_CONFIG_KEY_{number}"], found[f"GIT_CONFIG_VALUE_{number}"] = name, value
        if self.directory:
            found["GIT_DIR"] = self.directory
        if self.tree and self.directory:
            found["GIT_WORK_TREE"] = self.tree
        if self.index:
            found["GIT_INDEX_FILE"] = self.index
        if self.objects:
            found["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(map(quoted, self.objects))
        return {**found, **(self.more or {})}


def run(
    words: tuple[str, ...],
    argv: Sequence[str],
    directory: str,
    env: Mapping[str, str],
    given: str | int,
    within_s: float,
    held: tuple[int, ...] = (),
) -> Done:
    """Run a program in a session of its own, which ends with it. words: what it is called in errors; given, held: as
    of `Git`. Errors: GitFailed where it cannot be run or takes too long."""
    try:
        process = subprocess.Popen(
            argv,
            cwd=directory,
            env=env,
            stdin=given if isinstance(given, int) else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=held,
        )
    except OSError as error:
        raise GitFailed(words, 127, f"{argv[0]} cannot be started: {error.strerror or error}") from error
    try:
        text = None if isinstance(given, int) else given.encode("utf-8", "surrogateescape")
        out, errors = process.communicate(text, within_s)
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the helpers that reach the remote
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise GitFailed(words, 124, f"it has not ended within {within_s:g} s") from None
        raise
    return Done(process.returncode, out.decode("utf-8", "surrogateescape"), errors.decode("utf-8", "replace"))


def end_of(text: str, most: int = 1000) -> str:
    """Return the end of a text, from the beginning of a word on, with a mark where something was cut."""
    return text if len(text) <= most else f"… {text[-most:].partition(' ')[2]}"


def quoted(path: str) -> str:
    """Return the path of a folder of objects as git reads it in a list of them, whatever is in its name."""
    return '"' + re.sub(r'["\\\x00-\x1f\x7f]', lambda found: f"\\{ord(found[0]):03o}", path) + '"'


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


def links(rows: Iterable[str]) -> dict[str, str]:
    """Return path and commit of each submodule in rows of `ls-files --stage` or `ls-tree`."""
    found = {}
    for about, _, path in (row.partition("\t") for row in rows):
        if about.startswith("160000 "):
            found[path] = max(about.split(), key=len)  # the others are mode, type and stage
    return found


def sweep(directory: str) -> None:
    """Remove what a killed command left in a git directory in which no other one runs. Errors: OSError."""
    for below in walk(directory):
        for name in below.files:
            if name.endswith(".lock") or name.startswith("tmp_"):
                os.unlink(name, dir_fd=below.fd)


def is_ancestor(git: Git, older: str, newer: str) -> bool:
    """Return whether everything of the older commit is in the newer one. Errors: GitFailed."""
    done = git.ask("merge-base", "--is-ancestor", older, newer)
    if done.code not in (0, 1):
        raise GitFailed(("merge-base", "--is-ancestor"), done.code, done.errors)
    return done.code == 0
