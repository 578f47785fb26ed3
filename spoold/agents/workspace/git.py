"""Runs git: no questions, no hooks, no settings of a repository that run programs, and no end without a bound.

A remote is a share, too. What git says of it is told apart by whose fault it is:

    away       it cannot be reached now, or git was killed: the same may go well later, and costs nobody an attempt
    refused    a rule of its own forbids this push: no other try will go otherwise
    else       this machine may not, or the address is wrong: another machine may do better

Law: the settings of this machine and of its user count for the commands that reach a remote, since they hold how to
reach it, and for no other: what is saved, checked out and merged is the same on every machine. Settings that would
start programs by themselves, or hold a command up, are overruled on every command. Variables that lead git elsewhere
are dropped. A command that reads what an agent wrote runs in a cage. Only words that name a connection, or a server
that is not well, count as away: a wrong address must not be tried for ever.

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

from spoold.agents.sandbox import bwrap
from spoold.agents.sandbox.bwrap import Cage
from spoold.protocol.amount import clip
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
            kept = {**(kept if self.cage is None else bwrap.variables()), **_ALONE}
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


# A remote is a share, too: what git says of it, told apart by whose fault it is.


TOO_LONG = 124
# How much of a hook's words is told (characters).
HOOK_MAX = 600
_FULL = r"no space left|disk quota exceeded"
# Of a program that git had started, here or on the server.
_DIED = r"died of signal 9\b"
_AWAY = re.compile(
    r"could not resolve (host|proxy)|name resolution|connection (refused|timed out|reset|closed|aborted)|"
    r"network is (unreachable|down)|no route to host|host is (down|unreachable)|operation timed out|"
    r"failed to connect|couldn't connect|unable to connect|empty reply|early eof|unexpected disconnect|"
    r"remote end hung up|broken pipe|rpc failed|ssl_error|gnutls_handshake|"
    r"kex_exchange_identification|stale file handle|input/output error|endpoint is not connected|"
    rf"\.lock': file exists|resource temporarily unavailable|{_FULL}|too many connections|{_DIED}",
    re.IGNORECASE,
)
_GONE = re.compile(
    r"does not appear to be a git repository|not valid: is this a git repository|url base from redirection",
    re.IGNORECASE,
)
_COMES_BACK = (
    "Fix: check its address, and the network and the proxy of this machine; where it comes back by itself, nothing."
)
_AS_IT_SAYS = "Fix: what the server says."
_AS_THE_HOOK_SAYS = "Fix: do what the hook says, or let it take pushes of this machine's user."
_ASK_FOR_THE_HOOK = "Fix: ask its owner what the hook wants, or let it take pushes of this machine's user."
# What became of a reference, as git writes it for people and with --porcelain.
_STATUS = re.compile(r" ?!\s.*?\[(rejected|remote rejected|remote failure)\](?: \S+ -> \S+)?(?: \((.*)\))?\s*")
# Reasons of a server that pass by themselves; unless it says that somebody has decided so.
_PASSES = re.compile(
    r"failed to (update ref|lock)|lock[ _](error|failure)|cannot lock ref|unable to create .*\.lock|"
    rf"transaction failed to start|internal (server )?error|temporarily|timed ?out|time-?out|unavailable|{_FULL}",
    re.IGNORECASE,
)
_DECIDED = re.compile(r"declined|denied|not allowed|forbidden|prohibited|protected|refus", re.IGNORECASE)
_HTTP = re.compile(r"returned error: (\d{3})|rpc failed; http (\d{3})", re.IGNORECASE)
_HTTP_AWAY, _HTTP_REFUSED = re.compile(r"5\d\d|408|429"), re.compile(r"403|413|507")
# A program of the server looks at each push, and has refused this one; what it prints comes as `remote:`.
_HOOK = re.compile(r"[^()]*hook declined")
_ABORTED = "fatal: ref updates aborted by hook"  # may follow words of the hook in their line
_OF_GIT = re.compile(r"error: hook declined to update ")
_REFUSED = re.compile(
    r"hook declined|protected branch|not allowed to push|non-fast-forward updates|push declined|"
    r"exceeds .*file size limit|remote: error: GH\d+",
    re.IGNORECASE,
)
_OTHER_HASH = re.compile(r"mismatched algorithms|does not support this repository's hash algorithm")
_SHA_1 = "Fix: use a repository of SHA-1. Those of SHA-256 are not supported."


# What git says of a push to a branch whose files lie there: it is refused, or it waits for those files.
_CHECKED_OUT = re.compile(r"refusing to update checked out branch|\(branch is currently checked out\)")
_CHANGED = re.compile(r"\(Working directory has (un)?staged changes\)|\(untracked working tree files? would be ")


class WorkspaceFailed(SpoolError):
    """A workspace cannot be made or saved: what is wrong, and the fix."""


class RemoteAway(WorkspaceFailed):
    """The remote cannot be reached now, or a git on the way to it was killed; the same may go well later."""


class RemoteRefused(WorkspaceFailed):
    """A rule of the remote forbids it; the words are the server's own."""


def failure(failed: GitFailed, text: str, fix: str = "", *, known: bool = False) -> WorkspaceFailed:
    """Return the error that a command which reaches a remote means, with these words. fix: where it is the fault of
    neither the network nor a rule; known: whether this address has answered before: then a repository that is not
    there is one that is away, and so is one in whose place a page is, as where a network wants a login."""
    if failed.killed:  # the remote may be well
        return RemoteAway(text)
    if _OTHER_HASH.search(failed.errors):
        return WorkspaceFailed(f"{text} {_SHA_1}")
    kind = _kind(failed, known=known)
    if kind is RemoteAway:
        return RemoteAway(f"{text} {_COMES_BACK}" if fix else text)
    if kind is RemoteRefused:
        return RemoteRefused(f"{text} {_answer(failed)}" if fix else text)
    return WorkspaceFailed(f"{text} {fix}".rstrip())


def _kind(failed: GitFailed, *, known: bool) -> type[WorkspaceFailed]:
    """Return whose fault it is: the line of the reference decides, then a code of HTTP, then words of this side."""
    own = "\n".join(line for line in _lines(failed.errors) if not _is_of_server(line))
    pushes = failed.words[:1] == ("push",) or failed.words[:2] == ("lfs", "push")
    if pushes and (status := _status(failed)) is not None:
        return _kind_of_status(*status, failed.errors)
    if pushes and _ABORTED in own:
        return RemoteRefused
    codes = [found[1] or found[2] for found in _HTTP.finditer(own)]
    if codes:
        if any(map(_HTTP_REFUSED.fullmatch, codes)):
            return RemoteRefused if pushes else WorkspaceFailed
        return RemoteAway if any(map(_HTTP_AWAY.fullmatch, codes)) else WorkspaceFailed
    if failed.code == TOO_LONG or _AWAY.search(own) or (known and _GONE.search(own)):
        return RemoteAway
    return RemoteRefused if pushes and _REFUSED.search(failed.errors) else WorkspaceFailed


def _kind_of_status(status: str, reason: str, errors: str) -> type[WorkspaceFailed]:
    if status == "remote failure":  # it has not said what became of it
        return RemoteAway
    if status == "rejected":  # by this side: another push came first
        return WorkspaceFailed
    if reason == "unpacker error":
        return RemoteAway if re.search(f"{_FULL}|{_DIED}", errors, re.IGNORECASE) else RemoteRefused
    return RemoteAway if _PASSES.search(reason) and not _DECIDED.search(reason) else RemoteRefused


def _lines(text: str) -> Iterator[str]:
    """Return lines as git has them. Python would split at more characters, which a hook may print."""
    return (line for line in re.split(r"[\r\n]", text) if line.strip())


def _is_of_server(line: str) -> bool:
    return line.startswith("remote:")


def _status(failed: GitFailed) -> tuple[str, str] | None:
    """Return what became of the reference, and the reason; None where git does not say."""
    found = [match for line in _lines(failed.errors) if (match := _STATUS.fullmatch(line))]
    return (found[-1][1], found[-1][2] or "") if found else None


def _hook(failed: GitFailed) -> str:
    """Return how git calls the hook of the server that has refused a push; '' where none has."""
    status = _status(failed)
    return status[1] if status is not None and status[0] == "remote rejected" and _HOOK.fullmatch(status[1]) else ""


def said(failed: GitFailed) -> str:
    """Return what git said of a failure, as one sentence: where a hook of the server refuses it, the hook's words."""
    if hook := _hook(failed):
        words = clip(" | ".join(_words_of_hook(failed)), HOOK_MAX)
        return f"the hook there {f'says: {words}' if words else 'refuses it and says nothing'} ({hook})."
    lines = [line.strip() for line in _lines(failed.errors)]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "!", "ssh:"))] or lines
    if failed.killed:
        ended = "git was killed, by a person or since this machine has no more memory"
    else:
        ended = (
            "git was stopped: it took too much time or memory" if failed.code < 0 else f"git ended with {failed.code}"
        )
    text = end_of(" ".join(told)) or ended
    return text if text.endswith(".") else f"{text}."


def _words_of_hook(failed: GitFailed) -> list[str]:
    told = (line.removeprefix("remote:").strip() for line in _lines(failed.errors) if _is_of_server(line))
    return [line for line in told if line and not _OF_GIT.match(line)]


def _answer(failed: GitFailed) -> str:
    """Return the fix for a push that a rule of the server refuses."""
    if not _hook(failed):
        return _ASK_FOR_THE_HOOK if _ABORTED in failed.errors else _AS_IT_SAYS
    return _AS_THE_HOOK_SAYS if _words_of_hook(failed) else _ASK_FOR_THE_HOOK


def checked_out(failed: GitFailed, repo: str, branch: str) -> str:
    """Return why a push to a branch is refused, and the fix, where the cause is that its files lie there; else ''."""
    if _CHECKED_OUT.search(failed.errors):
        return f"{branch} is checked out in {repo}: {bare_or_updated(repo)}."
    if _CHANGED.search(failed.errors):
        fix = "commit or stash them there, or use a bare repository"
        return f"{branch} is checked out in {repo}, and files there were changed: {fix}."
    return ""


def bare_or_updated(repo: str) -> str:
    """Return what lets git take a push into a branch that is checked out in a repository."""
    here = f"git -C {repo} config" if repo.startswith("/") else "on its machine: git config"
    return f"use a bare repository, or run `{here} receive.denyCurrentBranch updateInstead`"
