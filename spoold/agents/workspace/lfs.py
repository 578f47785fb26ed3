"""Files of git-lfs: a commit has a pointer in their place, and the content lies on a server beside the remote.

The filters of git-lfs run in the cage alone, where they have no network. What they made is checked by its hash, and
then pushed before the reference that needs it.

Law: the address of the server is that of the remote, or what the newest commit of people says in `.lfsconfig`: what
an agent wrote there is never asked. Where git-lfs is not installed, pointers stay pointers, and new content is named.

Touches: files.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from spoold.agents.workspace.git import REMOTE_S, Git, GitFailed, RemoteAway, failure, said

FILTERS = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
}
# Of a pointer (bytes), as git-lfs bounds it; and how many objects one command pushes.
POINTER_MAX, _AT_ONCE = 1024, 500
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n"
)
_PIECE = 1 << 20
_FILES = ("100644", "100755")


def program() -> str:
    """Return the path of git-lfs; '' where it is not installed."""
    return shutil.which("git-lfs") or ""


def filters() -> Mapping[str, str]:
    """Return the settings with which git runs its filters; none where it is not installed."""
    return FILTERS if program() else {}


def used(git: Git, commit: str) -> bool:
    """Whether a commit says of some of its files that they are of git-lfs. Errors: GitFailed."""
    words = ("grep", "--quiet", "--fixed-strings", "-e", "filter=lfs", commit)
    return git.ask(*words, "--", ":(top,glob)**/.gitattributes").code == 0


def fetch(git: Git, repo: str, base: str, commit: str) -> None:
    """Fetch the content of a commit's files from the server; what that does not have stays a pointer.

    base: a commit whose `.lfsconfig` counts. Errors: WorkspaceFailed where the server is away.
    """
    if not program() or not used(git, commit):
        return
    try:
        _reaching(git, repo, base)("lfs", "fetch", "origin", commit, within_s=REMOTE_S)
    except GitFailed as failed:
        text = f"the files of git-lfs of {repo} cannot be fetched: {said(failed)} Fix: check the server of git-lfs."
        error = failure(failed, text, known=True)
        if isinstance(error, RemoteAway):
            raise error from failed


def push(git: Git, repo: str, base: str, objects: Sequence[str]) -> None:
    """Push the content of these objects, which lies in the repository. Errors: WorkspaceFailed."""
    reaching = _reaching(git, repo, base)
    try:
        for at in range(0, len(objects), _AT_ONCE):
            reaching("lfs", "push", "--object-id", "origin", *objects[at : at + _AT_ONCE], within_s=REMOTE_S)
    except GitFailed as failed:
        text = f"files of git-lfs cannot be pushed to {repo}: {said(failed)}"
        raise failure(failed, text, "Fix: let this machine's user push there.", known=True) from failed


def pointers(git: Git, blobs: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Return name and size (bytes) of the content of each pointer among these objects. Errors: GitFailed."""
    names = [one for one, size in sizes(git, blobs).items() if size <= POINTER_MAX]
    held = git("cat-file", "--batch", given="".join(f"{one}\n" for one in names)).out
    contents = _contents(held.encode("utf-8", "surrogateescape"))
    found = ((one, _POINTER.match(content)) for one, content in zip(names, contents, strict=True))
    return {one: (match[1].decode(), int(match[2])) for one, match in found if match}


def sizes(git: Git, blobs: Iterable[str]) -> dict[str, int]:
    """Return the sizes (bytes) of those of these objects that are there and are contents. Errors: GitFailed."""
    if not (asked := "".join(f"{one}\n" for one in dict.fromkeys(blobs))):
        return {}
    rows = git("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=asked).lines
    return {one: int(size) for one, _, size in (row.split() for row in rows if " blob " in row)}


def added(git: Git, base: str, commit: str) -> dict[str, tuple[str, int]]:
    """Return name and size (bytes) of the content of each pointer, by its path, that a commit has beyond where it
    left the base. Errors: GitFailed."""
    fork = (git.ask("merge-base", base, commit).out.split() or [base])[0]
    rows = git("diff-tree", "-r", "-z", "--raw", "--no-renames", fork, commit).names
    files = {path: row.split()[3] for row, path in zip(rows[::2], rows[1::2], strict=True) if row[8:14] in _FILES}
    found = pointers(git, files.values())
    return {path: found[one] for path, one in files.items() if one in found}


def has(storages: Sequence[str], name: str, size: int) -> bool:
    """Whether one of these storages has an object of this size (bytes)."""
    for storage in storages:
        with suppress(OSError):
            held = os.lstat(place(storage, name))
            if stat.S_ISREG(held.st_mode) and held.st_size == size:
                return True
    return False


def place(storage: str, name: str) -> str:
    """Return where an object lies below a storage of git-lfs."""
    return os.path.join(storage, "objects", name[:2], name[2:4], name)


def taken_out(folders: Sequence[str], wanted: Mapping[str, int], out: str) -> tuple[dict[str, int], list[str]]:
    """Copy objects out of storages that an agent may have written; returns what was found, and what was not."""
    there, lacking = dict[str, int](), list[str]()
    for name, size in wanted.items():
        for folder in folders:
            try:
                with opened(place(folder, name)) as file, open(os.path.join(out, name), "wb") as copy:
                    if os.fstat(file.fileno()).st_size == size:
                        shutil.copyfileobj(file, copy, _PIECE)
                        there[name] = size
                        break
            except OSError:
                continue
        else:
            lacking.append(name)
    return there, lacking


def taken_in(path: str, name: str, storage: str) -> None:
    """Move an object into a storage, if it is what its name says. Errors: GitFailed, OSError."""
    digest = hashlib.sha256()
    with opened(path) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    if digest.hexdigest() != name:
        raise GitFailed(("lfs", "clean"), 1, f"an object of git-lfs is not what its name says: {name}")
    target = place(storage, name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.replace(path, target)


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file that a stranger left, if it is one. Errors: OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileNotFoundError(f"{path} is no file")
        yield file


def _contents(data: bytes) -> Iterator[bytes]:
    """Yield the contents in the output of `cat-file --batch`."""
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        size = int(data[at:end].split()[2])
        yield data[end + 1 : end + 1 + size]
        at = end + size + 2


def _reaching(git: Git, repo: str, base: str) -> Git:
    """Return git with the addresses of the remote and of its server for git-lfs."""
    address = f"file://{repo}" if repo.startswith("/") else repo
    settings = {"remote.origin.url": address, "lfs.locksverify": "false"}
    done = git.ask("config", "--blob", f"{base}:.lfsconfig", "lfs.url")
    if done.code == 0 and done.out.strip():
        settings["lfs.url"] = done.out.strip()
    return git.set(settings)
