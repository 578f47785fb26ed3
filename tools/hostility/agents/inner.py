"""What an agent may leave of other repositories within its tree: nested ones, bare ones, submodules, worktrees.

Law: each commit there is noted, with the path by which people know it.

Touches: files.
"""

from __future__ import annotations

import os
import shutil

from tools.hostility.agents.place import SAVED, Place, add, block, clear, link, put


def _nested(place: Place, at: str, *names: str) -> str:
    """Make a repository with a commit in a folder of the tree; returns its path."""
    folder = os.fsdecode(place.path(at))
    os.makedirs(folder, exist_ok=True)
    place.git("init", "-q", "-b", "main", ".", at=folder)
    place.write(f"{at}/inner.txt")
    made = place.commit(at, *names, at=folder, said=f"inner of {place.seed}")
    place.within[made] = os.fsencode(at)
    return folder


@block("tree", kind="clone")
def inner_repository(place: Place) -> None:
    """A repository of its own in a folder, all committed."""
    _nested(place, "inner-repository")


@block("tree")
def inner_dirty(place: Place) -> None:
    """A repository of its own, with files that are not committed, and ones that only it ignores."""
    _nested(place, "inner-dirty")
    place.write("inner-dirty/more.txt")
    place.write("inner-dirty/.gitignore", b"own\n")
    place.write("inner-dirty/own")
    place.ignored.append(b"inner-dirty/own")


@block("tree")
def inner_committed(place: Place) -> None:
    """A repository of its own, of which the outer one commits the name."""
    _nested(place, "inner-committed")
    place.git("add", "inner-committed")
    place.git("commit", "-q", "--no-verify", "-m", "gitlink")
    place.made(place.git("rev-parse", "HEAD"))
    place.within.popitem()  # the outer one holds its name, whatever it ignores


@block("tree")
def inner_without_commit(place: Place) -> None:
    """A repository of its own that has files and no commit."""
    place.git("init", "-q", ".", at=_folder(place, "inner-empty"))
    place.write("inner-empty/file.txt")


@block("tree")
def inner_bare(place: Place) -> None:
    """A bare repository in a folder, as a file server has it, with a hook."""
    place.git("init", "-q", "--bare", ".", at=_folder(place, "inner-bare.git"))
    place.write("inner-bare.git/hooks/post-update", place.bait("inner_bare.git").encode(), 0o755)


@block("tree")
def inner_ignored(place: Place) -> None:
    """A repository in a folder that the outer one ignores: as it is with packages."""
    _nested(place, "ignored/inner-ignored")
    place.ignored.append(b"ignored")


@block("tree")
def inner_of_inner(place: Place) -> None:
    """A repository in a repository in a repository."""
    _nested(place, "inner-one/two/three", "inner-one")
    _nested(place, "inner-one/two", "inner-one")
    _nested(place, "inner-one", "inner-one")


@block("tree")
def inner_trapped(place: Place) -> None:
    """A repository of its own whose settings, hooks and attributes name programs."""
    folder, trap = _nested(place, "inner-trapped"), place.trap()
    add(
        f"{folder}/.git/config",
        f'[core]\nfsmonitor = {trap}\nhooksPath = .\nsshCommand = {trap}\n[filter "x"]\nclean = {trap}\n'.encode(),
    )
    for name in ("post-checkout", "reference-transaction", "pre-push", "post-index-change"):
        put(f"{folder}/.git/hooks/{name}", place.bait(f"inner_trapped.{name}.git").encode(), 0o755)
    place.write("inner-trapped/.gitattributes", b"* filter=x\n")
    place.write("inner-trapped/more.txt")


@block("tree")
def inner_elsewhere(place: Place) -> None:
    """A folder whose `.git` is a file that names a repository elsewhere, or a link to one."""
    place.write("inner-elsewhere/file.txt")
    put(place.path("inner-elsewhere/.git"), f"gitdir: {place.canary}\n".encode())
    place.write("inner-linked/file.txt")
    link(place.canary, place.path("inner-linked/.git"))


@block("tree")
def inner_pipe(place: Place) -> None:
    """A folder whose `.git` is a pipe, and one whose `.git/HEAD` is one."""
    place.write("inner-pipe/file.txt")
    os.mkfifo(place.path("inner-pipe/.git"))
    _nested(place, "inner-head")
    clear(place.path("inner-head/.git/HEAD"))
    os.mkfifo(place.path("inner-head/.git/HEAD"))


@block("tree")
def own_worktree(place: Place) -> None:
    """A worktree of its repository, in its tree, with a commit."""
    place.git("worktree", "add", "-q", "-b", "own-worktree", "own-worktree")
    place.write("own-worktree/in-worktree.txt")
    place.commit("own-worktree", at=os.fsdecode(place.path("own-worktree")))
    place.write("own-worktree/more.txt")


@block("make", base="submodule", kind="clone")
def submodule_moved(place: Place) -> None:
    """A submodule of the base gets commits, and the outer repository commits its name."""
    _nested(place, "lib")
    place.git("add", "lib")
    place.git("commit", "-q", "--no-verify", "-m", "lib is newer")
    place.made(place.git("rev-parse", "HEAD"))


@block("make", base="submodule", kind="clone")
def submodule_changed(place: Place) -> None:
    """Files in a submodule of the base change, and nothing else."""
    place.write("lib/changed.txt")


@block("make", base="submodule")
def submodule_within(place: Place) -> None:
    """A submodule of the base whose git directory lies in the outer one, as git has it, with a commit."""
    folder = _nested(place, "lib")
    os.makedirs(f"{place.own}/modules", exist_ok=True)
    clear(f"{place.own}/modules/lib")
    shutil.move(f"{folder}/.git", f"{place.own}/modules/lib")
    put(f"{folder}/.git", f"gitdir: {place.own}/modules/lib\n".encode())
    place.git("config", "-f", f"{place.own}/modules/lib/config", "core.worktree", folder)


@block("make", SAVED)
def gitlink_to_nothing(place: Place) -> None:
    """A commit that names a commit of another repository, which nobody has."""
    place.git("update-index", "--add", "--cacheinfo", f"160000,{place.chance.randbytes(20).hex()},nothing")
    place.git("commit", "-q", "--no-verify", "-m", "gitlink")
    place.made(place.git("rev-parse", "HEAD"))


def _folder(place: Place, name: str) -> str:
    os.makedirs(place.path(name), exist_ok=True)
    return os.fsdecode(place.path(name))
