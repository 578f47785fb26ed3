"""What a mirror has lost when its machine lost power: files that git had written, and the disk had not.

Git does not wait until a single object or a reference is on the disk. After a power cut such files are empty or cut
short, and every command that needs one fails, also the fetch that could bring it again.

Law: what counts as lost is only an object whose content is not what its name says, and a reference that names none.
After a start of the machine all of them are looked at once, before anything uses them.

Touches: files.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from contextlib import suppress

from spoold.agents.workspace.git import REMOTE_S, Git
from spoold.system.walking import walk

_FOLDER, _REST = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
_NAMED = re.compile(rb"(?:(?!0+\n)(?:[0-9a-f]{40}|[0-9a-f]{64})|ref: refs/[^\n]+)\n")
_PIECE = 1 << 20
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


def _names_one(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return _NAMED.match(file.read(_PIECE)) is not None
    except FileNotFoundError:
        return False


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
