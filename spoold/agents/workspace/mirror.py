"""One mirror of each repository on this host: every workspace borrows its objects.

Law: nobody changes a mirror but under its lock, which git's commands hold, too, so that a lock file that is found
under it is nobody's. Nothing is ever pruned from it: workspaces would lose what they borrow. Its settings are written
anew each time.

Touches: files, the clock.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from spoold.agents.workspace.agent_commits import read_small
from spoold.agents.workspace.git import REMOTE_S, Git, GitFailed, WorkspaceFailed, commit_of, failure, said
from spoold.agents.workspace.workspace_layout import Places, holding, is_attended, read_record
from spoold.system.remover import remove
from spoold.system.walking import walk

HEADS = "refs/remotes/origin/"
# Branches to which agents' accepted work is pushed.
_OF_AGENTS = f"{HEADS}spool/"
# So many places where work left the branches are compared.
_EDGES_MAX = 100
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Agents in worktrees of the mirror take locks of it without ours; they hold them for less than this (s).
_STALE_S = 30.0
# What a path says whose share is not there.
_UNMOUNTED = frozenset({errno.ENOENT, errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.EHOSTDOWN, errno.ETIMEDOUT})
# In it stands during which start of the machine the mirror was looked over last.
_MADE, _LOST = "made", "lost"
_SETTINGS = """[core]
\trepositoryformatversion = 0
\tbare = true
\tfsync = committed,reference
\tfsyncMethod = batch
[gc]
\tauto = 0
\tpruneExpire = never
\tworktreePruneExpire = never
[maintenance]
\tauto = false
"""


@dataclass(frozen=True, slots=True)
class Mirror:
    """The mirror of a repository. repo: its address, also that from which it fetches."""

    places: Places
    repo: str

    @property
    def directory(self) -> str:
        """Its git directory."""
        return self.places.mirror(self.repo)

    @property
    def objects(self) -> str:
        """The folder of its objects."""
        return os.path.join(self.directory, "objects")

    @property
    def git(self) -> Git:
        """Git in it, to read; what changes it needs the lock."""
        return Git(self.directory)

    @contextmanager
    def locked(self) -> Iterator[Git]:
        """Hold its lock within the `with`, and yield git in it; it is made where it is not there.

        Errors: OSError, GitFailed.
        """
        self.places.make()
        with holding(f"{self.directory.removesuffix('.git')}.lock") as held:
            git = Git(self.directory, held=(held,))
            mark = os.path.join(self.directory, _MADE)
            if not os.path.exists(mark):
                remove(self.directory)  # half made: nobody borrows from it yet
                os.mkdir(self.directory, mode=0o700)
                git("init", "--quiet", "--bare", "--template=")
                _write(mark, this_start())
            _write(os.path.join(self.directory, "config"), _SETTINGS)
            self._take_away_what_is_no_file()
            self._sweep()
            self._look_over(git, mark)
            yield git

    def fetch(self, git: Git, more: Sequence[str] = ()) -> None:
        """Fetch all branches, and these references besides (patterns may match none); under the lock.

        Errors: WorkspaceFailed.
        """
        specs = [f"+refs/heads/*:{HEADS}*", *(f"+{name}:{name}" for name in more)]
        words = ("fetch", "--quiet", "--prune", "--no-auto-gc", "--no-write-fetch-head", "--no-recurse-submodules")
        asked = (*words, "--", self.repo, *specs)
        try:
            done = git.ask(*asked, within_s=REMOTE_S)
            if done.code and not forget_names_of_nothing(git):
                raise GitFailed(asked, done.code, done.errors)
            if done.code:
                git(*asked, within_s=REMOTE_S)
        except GitFailed as failed:
            text = f"the repository {self.repo} cannot be read here: {said(failed)}"
            fix = (
                "Fix: check the address, and that this machine's user may read it without being asked for a password."
            )
            raise failure(failed, text, fix, known=self._has_fetched(git) or is_missing(self.repo)) from failed

    def resolve(self, git: Git, base: str) -> str:
        """Return the commit of a branch, tag, reference or commit, after a fetch. Errors: WorkspaceFailed."""
        names = [f"{HEADS}{base}", f"refs/tags/{base}"]
        if base.startswith("refs/heads/"):
            # Before a branch that is called so itself. What has this name here is a worktree's.
            names.insert(0, f"{HEADS}{base.removeprefix('refs/heads/')}")
        elif base.startswith("refs/"):
            names.insert(0, base)
        if _COMMIT.fullmatch(base):
            names.append(base)
        found = commit_of(git, names)
        if found is None and _COMMIT.fullmatch(base):
            # No branch has it, as after a force push; a server may give it all the same.
            git.ask(
                "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", self.repo, base, within_s=REMOTE_S
            )
            found = commit_of(git, names)
        if found is not None:
            return found
        heads = git("for-each-ref", "--format=%(refname)", "--count=20", HEADS).lines
        known = ", ".join(name.removeprefix(HEADS) for name in heads) or "no branch at all"
        raise WorkspaceFailed(
            f"{self.repo} has no branch, tag or commit {base}. Fix: name one of those it has: {known}."
        )

    def owned(self, git: Git, commit: str) -> str:
        """Return the newest commit that this one goes on from and a branch or tag of people has; '' for none. What an
        agent pushed says nothing for its owner. git: has the commit. Errors: GitFailed."""
        rows = self.git("for-each-ref", "--format=%(objectname) %(refname)", HEADS, "refs/tags/").lines
        tips = [one for one, _, name in (row.partition(" ") for row in rows) if not name.startswith(_OF_AGENTS)]
        told = "".join([f"{commit}\n", *(f"^{one}\n" for one in tips)])
        found = git("rev-list", "--boundary", "--stdin", given=told).lines
        edges = [row[1:] for row in found if row.startswith("-")]
        if not found:
            return commit
        return git("merge-base", "--independent", *edges[:_EDGES_MAX]).lines[0] if edges else ""

    def _has_fetched(self, git: Git) -> bool:
        return bool(git.ask("for-each-ref", "--count=1", HEADS).out)

    def _look_over(self, git: Git, mark: str) -> None:
        """After a start of the machine, get again what its disk had lost. Errors: OSError, GitFailed."""
        with open(mark, encoding="utf-8") as file:
            known = file.read()
        if known == this_start():
            return
        lost = torn(self.directory)
        if lost or known == _LOST:
            _write(mark, _LOST)  # until it is whole again, also if this process dies
            for path in lost:
                with suppress(FileNotFoundError):
                    os.unlink(path)
            git("init", "--quiet", "--bare", "--template=")  # brings HEAD again, and touches nothing that is there
            forget_and_fetch(git, self.repo, HEADS)
        _write(mark, this_start())

    def _take_away_what_is_no_file(self) -> None:
        """Remove pipes, links and devices. An agent in a worktree can make them; and git, which reads the HEAD of
        every worktree before it fetches, waits at a pipe."""
        for folder in walk(self.directory):
            with os.scandir(folder.fd) as found:
                odd = [one.name for one in found if not one.is_file(follow_symlinks=False)]
            for name in set(odd) - set(folder.folders):
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder.fd)

    def _sweep(self) -> None:
        """Remove lock files that a killed command left; nobody else can have made them, but agents in worktrees."""
        while left := self._lock_files():
            shared = self._has_others()
            # An agent can give a lock any date, and a clock may be set back.
            young = [path for path in left if shared and abs(_age_s(path)) < _STALE_S]
            for path in set(left) - set(young):
                with suppress(FileNotFoundError):
                    os.unlink(path)
            if young:
                time.sleep(0.2)

    def _has_others(self) -> bool:
        """Whether an attempt is in a worktree of it: what one that has ended left is nobody's."""
        if not os.path.isdir(os.path.join(self.directory, "worktrees")):
            return False
        taken = (read_record(folder) for folder in self.places.folders() if is_attended(folder))
        found = (one.config for one in taken if one is not None)  # in one without a record no agent works yet
        return any((one.kind, one.repo) == ("worktree", self.repo) for one in found)

    def _lock_files(self) -> list[str]:
        found = [entry.path for entry in os.scandir(self.directory) if entry.name.endswith(".lock")]
        refs = os.path.join(self.directory, "refs")
        for folder in walk(refs):
            found += [os.path.join(refs, folder.path, name) for name in folder.files if name.endswith(".lock")]
        return found


def is_missing(repo: str) -> bool:
    """Whether nothing is at the path of a repository, as where a share is not mounted. False for another address."""
    if not repo.startswith("/"):
        return False
    try:
        return not os.listdir(repo)
    except OSError as error:
        return error.errno in _UNMOUNTED


def _write(path: str, text: str) -> None:
    with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def _age_s(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except FileNotFoundError:
        return _STALE_S


# What a mirror has lost when its machine lost power: files that git had written, and the disk had not.


_FOLDER, _REST = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
# Git reads names in capital letters, too, as an agent may write them.
_NAMED = re.compile(rb"(?:(?!0+\n)(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})|ref: refs/[^\n]+)\n")
_PACKED = re.compile(rb"(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64}) refs/.+")
_PIECE, _PACKED_MAX = 1 << 20, 64 << 20
_BOOT = "/proc/sys/kernel/random/boot_id"


def this_start() -> str:
    """Return what tells this start of the machine from all others; '' where the system does not say it."""
    with suppress(OSError), open(_BOOT, encoding="ascii") as file:
        return file.read().strip()
    return ""


def torn(directory: str) -> list[str]:
    """Return the files of single objects that are not what their names say, and of references that name no object.

    directory: a git directory; what it needs to be one at all, HEAD, may be missing. Errors: OSError.
    """
    objects, head = os.path.join(directory, "objects"), os.path.join(directory, "HEAD")
    found = [] if _names_one(head) else [head]
    refs = os.path.join(directory, "refs")
    for folder in walk(refs):
        found += [path for name in folder.files if not _names_one(path := os.path.join(refs, folder.path, name))]
    return found + [
        os.path.join(objects, folder, name)
        for folder in os.listdir(objects)
        if _FOLDER.fullmatch(folder)
        for name in os.listdir(os.path.join(objects, folder))
        if _REST.fullmatch(name) and not _whole(os.path.join(objects, folder, name), folder + name)
    ]


def forget_and_fetch(git: Git, repo: str, heads: str) -> None:
    """Have git fetch everything anew into a mirror that lost objects; its references would say that they are there.

    Branches of worktrees stay, since nobody else has them. Errors: GitFailed.
    """
    names = git("for-each-ref", "--format=%(refname)", heads, "refs/spool/", "refs/tags/").lines
    git("update-ref", "--stdin", given="".join(f"delete {name}\n" for name in names))
    specs = (f"+refs/heads/*:{heads}*", "+refs/spool/*:refs/spool/*", "+refs/tags/*:refs/tags/*")
    git("fetch", "--quiet", "--no-auto-gc", "--no-write-fetch-head", "--", repo, *specs, within_s=REMOTE_S)


def forget_names_of_nothing(git: Git) -> bool:
    """Take away what names an object that is not there, or none at all; returns whether there was such. An agent in a
    worktree can leave it, also in HEAD of its own, and then git fetches for nobody. Errors: OSError, GitFailed."""
    named, broken = dict[str, str](), list[str]()
    for path in _names_in(git.directory):
        text = _held(path)
        if not _NAMED.match(text):
            broken.append(path)
        elif not text.startswith(b"ref: "):
            named[path] = text.split()[0].decode().lower()
    packed = os.path.join(git.directory, "packed-refs")
    held = _held(packed, _PACKED_MAX)
    rows = held.splitlines() if len(held) < _PACKED_MAX else []  # what is not read whole is not written anew
    found = [row.split()[0].decode().lower() if _PACKED.fullmatch(row) else "" for row in rows]
    asked = "".join(f"{name}\n" for name in dict.fromkeys([*named.values(), *filter(None, found)]))
    said = git("cat-file", "--batch-check=%(objectname)", given=asked).lines if asked else []
    there = {row for row in said if " " not in row}
    broken += [path for path, name in named.items() if name not in there]
    for path in broken:
        with suppress(FileNotFoundError):
            os.unlink(path)
    kept = [row for row, name in zip(rows, found, strict=True) if name in there]
    if lost := len(kept) < len([row for row in rows if row[:1] not in b"#^"]):
        _write(packed, b"".join(row + b"\n" for row in kept).decode("utf-8", "surrogateescape"))
    return bool(broken or lost)


def _names_in(directory: str) -> Iterator[str]:
    """Return the files of references in a git directory, and HEAD and references of each of its worktrees."""
    worktrees = os.path.join(directory, "worktrees")
    within = [os.path.join(worktrees, name) for name in os.listdir(worktrees)] if os.path.isdir(worktrees) else []
    yield from (head for one in within if os.path.lexists(head := os.path.join(one, "HEAD")))
    for top in (os.path.join(one, "refs") for one in (directory, *within)):
        for folder in walk(top):
            yield from (os.path.join(top, folder.path, name) for name in folder.files)


def _names_one(path: str) -> bool:
    return _NAMED.match(_held(path)) is not None


def _held(path: str, most: int = _PIECE) -> bytes:
    """Return what a file of a mirror holds, b"" where none is, or a link. Errors: OSError: it may hold something."""
    try:
        return read_small(path, most)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return b""
        raise


def _whole(path: str, name: str) -> bool:
    found = hashlib.sha1(usedforsecurity=False) if len(name) == 40 else hashlib.sha256()
    unpacked = zlib.decompressobj()
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                found.update(unpacked.decompress(piece))
        found.update(unpacked.flush())
    except zlib.error:
        return False
    return unpacked.eof and found.hexdigest() == name
