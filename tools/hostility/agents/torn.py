"""What may become of an agent's git directory: gone, replaced, torn, locked, full of pipes, links and garbage.

Law: after these blocks no git is run by the agent. What a block destroys is not asked back.

Touches: files.
"""

from __future__ import annotations

import contextlib
import os
import shutil

from tools.hostility.agents.place import CLONE, REPOSITORY, SAVED, Place, add, block, clear, link, pipe, put

LOCKS = ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "refs/heads/main.lock")


def _branch(place: Place) -> str:
    """Return the file of the branch that HEAD names, or of HEAD."""
    with open(f"{place.own}/HEAD", encoding="utf-8", errors="replace") as file:
        kind, _, name = file.read().strip().partition(" ")
    return f"{place.shared}/{name}" if kind == "ref:" else f"{place.own}/HEAD"


@block("tear", CLONE)
def heads_are_root(place: Place) -> None:
    """A link to / in the place of all branches."""
    place.gone()
    place.write("heads-are-root.txt")
    link("/", f"{place.shared}/refs/heads")


@block("tear", CLONE)
def heads_are_the_canary(place: Place) -> None:
    """A link to a person's folder in the place of all branches, and of other folders."""
    place.gone()
    place.write("heads-are-the-canary.txt")
    names = place.chance.sample(("refs/heads", "refs/tags", "logs", "info", "objects/info", "refs"), 2)
    for name in sorted(
        names, key=len, reverse=True
    ):  # what lies below another first: else it would be made behind it
        with contextlib.suppress(OSError):
            link(place.canary, f"{place.shared}/{name}")


@block("tear", CLONE)
def objects_elsewhere(place: Place) -> None:
    """Objects that are links, and a list of other folders of objects."""
    place.write("objects-elsewhere.txt")
    if place.chance.random() < 0.5:
        with contextlib.suppress(OSError):
            add(f"{place.shared}/objects/info/alternates", f"{place.canary}\n/nowhere\n../../x\n".encode())
        put(
            f"{place.shared}/objects/info/http-alternates", f"http://127.0.0.1:{place.port}/{place.seed}-x\n".encode()
        )
    else:
        os.rename(f"{place.shared}/objects", f"{place.shared}/was")
        link(f"{place.shared}/was", f"{place.shared}/objects")


@block("tear", REPOSITORY, sandbox=False)
def no_git(place: Place) -> None:
    """No git directory any more."""
    place.gone()
    place.write("no-git.txt")
    clear(f"{place.tree}/.git")


@block("tear", sandbox=False)
def git_is_a_file(place: Place) -> None:
    """A file in the place of the git directory, which names a person's folder, itself, or what git left."""
    place.gone()
    place.write("git-is-a-file.txt")
    was = f"{place.home}/was"
    with contextlib.suppress(OSError):
        os.rename(f"{place.tree}/.git", was)
    target = place.chance.choice((place.canary, was, ".", "/dev/zero", "\n"))
    put(f"{place.tree}/.git", f"gitdir: {target}\n".encode())


@block("tear", sandbox=False)
def git_is_a_link(place: Place) -> None:
    """A link in the place of the git directory."""
    place.gone()
    place.write("git-is-a-link.txt")
    was = f"{place.home}/linked"
    with contextlib.suppress(OSError):
        os.rename(f"{place.tree}/.git", was)
    link(place.chance.choice((place.canary, was, "/", ".git")), f"{place.tree}/.git")


@block("tear", sandbox=False)
def git_is_a_pipe(place: Place) -> None:
    """A pipe in the place of the git directory."""
    place.gone()
    place.write("git-is-a-pipe.txt")
    pipe(f"{place.tree}/.git")


@block("tear")
def head_garbage(place: Place) -> None:
    """A HEAD that names nothing."""
    place.write("head-garbage.txt")
    texts = (b"", b"\0\xff", b"ref: refs/heads/" + b"x" * 5000, b"ref: ../../../etc/passwd", b"ref: HEAD", b"0" * 40)
    put(f"{place.own}/HEAD", place.chance.choice(texts))


@block("tear")
def head_is_a_pipe(place: Place) -> None:
    """A HEAD that holds up whoever reads it."""
    place.write("head-is-a-pipe.txt")
    pipe(f"{place.own}/HEAD")


@block("tear")
def head_to_nowhere(place: Place) -> None:
    """A HEAD that names a branch that is not there, or one beside."""
    place.write("head-to-nowhere.txt")
    put(f"{place.own}/HEAD", b"ref: refs/heads/" + place.chance.choice((b"nowhere", b"main", b"a/../b")) + b"\n")


@block("tear")
def index_torn(place: Place) -> None:
    """An index that is torn, huge, a pipe or a link."""
    place.write("index-torn.txt")
    index = f"{place.own}/index"
    kind = place.chance.choice(("torn", "huge", "pipe", "link", "folder"))
    if kind == "torn":
        put(index, b"DIRC\0\0\0\2\xff\xff\xff\xff" + place.chance.randbytes(5000))
    elif kind == "huge":
        os.truncate(index, place.scale.sparse)
    elif kind == "pipe":
        pipe(index)
    elif kind == "link":
        link(f"{place.canary}/secret", index)
    else:
        clear(index)
        os.mkdir(index)


@block("make")
def index_flags(place: Place) -> None:
    """Files of which the index says that they are not to be looked at, or are only meant to be there."""
    for number, flag in enumerate(("--skip-worktree", "--assume-unchanged")):
        name = ("README", "data.txt")[number]
        place.git("update-index", flag, name)
        place.write(name)
    place.write("intended.txt")
    place.git("add", "-N", "intended.txt")


@block("make", sandbox=False)
def sparse_checkout(place: Place) -> None:
    """Patterns by which most of the tree is not there."""
    place.git("sparse-checkout", "set", "folder")
    place.write("folder/sparse-checkout.txt")
    place.write("sparse-outside.txt")


@block("tear")
def locks(place: Place) -> None:
    """Every lock of git that there is, as a killed one leaves them."""
    place.write("locks.txt")
    for folder in {place.own, place.shared}:
        for name in LOCKS:
            with contextlib.suppress(OSError):
                put(f"{folder}/{name}", b"")
    with contextlib.suppress(OSError):
        put(f"{_branch(place)}.lock", b"")


@block("tear", CLONE)
def references_garbage(place: Place) -> None:
    """References that are pipes, loops, huge, deep, links and no text."""
    place.write("references-garbage.txt")
    heads = f"{place.shared}/refs/heads"
    pipe(f"{heads}/garbage-pipe")
    link(f"{heads}/garbage-loop", f"{heads}/garbage-loop")
    link(f"{place.canary}/secret", f"{heads}/garbage-link")
    link(place.canary, f"{heads}/garbage-folder")
    put(f"{heads}/garbage-self", b"ref: refs/heads/garbage-self\n")
    put(f"{heads}/garbage-hash", b"f" * 40 + b"\n")
    put(f"{heads}/garbage-bytes", b"\xff\0" * 100)
    put(f"{heads}/{'/'.join(['garbage-deep'] * 60)}/x", b"\n")
    put(f"{heads}/garbage-huge", b"")
    os.truncate(f"{heads}/garbage-huge", place.scale.sparse)
    with contextlib.suppress(OSError):
        os.mknod(f"{heads}/garbage-zero", 0o600 | 0o020000, os.makedev(1, 5))


@block("tear", CLONE)
def branch_garbage(place: Place) -> None:
    """The branch that it is on names nothing, or is a pipe or a link."""
    place.gone()
    place.write("branch-garbage.txt")
    path = _branch(place)
    clear(path)
    kind = place.chance.choice(("nothing", "pipe", "link", "hash"))
    if kind == "pipe":
        pipe(path)
    elif kind == "link":
        link(f"{place.canary}/secret", path)
    elif kind == "hash":
        put(path, b"f" * 40 + b"\n")


@block("tear", CLONE)
def packed_garbage(place: Place) -> None:
    """Packed references that are garbage, huge, or a pipe."""
    place.write("packed-garbage.txt")
    path = f"{place.shared}/packed-refs"
    if place.chance.random() < 0.3:
        pipe(path)
    else:
        add(path, place.chance.randbytes(5000) + b"\n" + b"f" * 40 + b" refs/heads/x\n" * (place.scale.files // 10))


@block("tear", CLONE)
def objects_missing(place: Place) -> None:
    """Objects that are gone."""
    place.gone()
    place.write("objects-missing.txt")
    for name in _objects(place)[: place.chance.choice((1, 10_000))]:
        os.unlink(name)


@block("tear", CLONE)
def objects_torn(place: Place) -> None:
    """Objects that are empty, cut short, or not what their names say."""
    place.gone()
    place.write("objects-torn.txt")
    for name in _objects(place):
        with open(name, "rb") as file:
            data = file.read()
        put(name, place.chance.choice((b"", data[: len(data) // 2], data[::-1])))


@block("tear", CLONE)
def objects_hold_up(place: Place) -> None:
    """Objects that are pipes and links, and a folder of packs that is one."""
    place.gone()
    place.write("objects-hold-up.txt")
    for number, name in enumerate(_objects(place)):
        if number % 2:
            link(f"{place.canary}/secret", name)
        else:
            pipe(name)
    pipe(f"{place.shared}/objects/pack/pack-{'0' * 40}.idx")
    pipe(f"{place.shared}/objects/pack/pack-{'0' * 40}.pack")


@block("tear", CLONE)
def pack_garbage(place: Place) -> None:
    """Packs that are none, and lists of commits that are none."""
    place.write("pack-garbage.txt")
    folder = f"{place.shared}/objects"
    for ending in ("pack", "idx", "rev", "bitmap", "keep", "promisor"):
        put(f"{folder}/pack/pack-{'1' * 40}.{ending}", place.chance.randbytes(3000))
    for name in ("pack/multi-pack-index", "info/commit-graph"):
        with contextlib.suppress(OSError):
            put(f"{folder}/{name}", place.chance.randbytes(3000))


@block("tear", CLONE)
def grafts(place: Place) -> None:
    """Files that say that history is shorter, or another."""
    place.write("grafts.txt")
    with contextlib.suppress(OSError):
        put(f"{place.shared}/shallow", b"f" * 40 + b"\nx\n")
    with contextlib.suppress(OSError):
        put(f"{place.shared}/info/grafts", b"f" * 40 + b" " + b"e" * 40 + b"\n")


@block("tear", SAVED)
def states(place: Place) -> None:
    """Files that say that something is unfinished, and name nothing."""
    place.write("states.txt")
    for name in (
        "MERGE_HEAD",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
        "ORIG_HEAD",
        "FETCH_HEAD",
        "MERGE_MSG",
        "SQUASH_MSG",
    ):
        kind = place.chance.choice((b"f" * 40 + b"\n", b"\xff" * 100, b"x\n" * 100_000, b""))
        put(f"{place.own}/{name}", kind)
    for name in ("rebase-merge", "rebase-apply", "sequencer", "BISECT_LOG"):
        pipe(f"{place.own}/{name}")


@block("tear", SAVED)
def merge_head_pipe(place: Place) -> None:
    """A pipe where the other side of a merge is noted."""
    place.write("merge-head-pipe.txt")
    pipe(f"{place.own}/MERGE_HEAD")


@block("tear", SAVED)
def git_is_shut(place: Place) -> None:
    """A git directory that nobody may look into."""
    place.write("git-is-shut.txt")
    os.chmod(f"{place.own}/index", 0o000)
    os.chmod(place.own, place.chance.choice((0o000, 0o111, 0o444)))


@block("tear", CLONE)
def git_is_deep(place: Place) -> None:
    """A git directory with a tree deeper than any path, and thousands of files."""
    place.write("git-is-deep.txt")
    for top in ("refs/heads", "logs", "objects"):
        os.makedirs(f"{place.shared}/{top}", exist_ok=True)
        here = os.open(f"{place.shared}/{top}", os.O_RDONLY)
        for _ in range(400):
            with contextlib.suppress(FileExistsError):
                os.mkdir("deep-in-git", dir_fd=here)
            there = os.open("deep-in-git", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = there
        os.close(here)
    for number in range(place.scale.files):
        put(f"{place.shared}/objects/{number % 256:02x}/garbage-{number}", b"")


@block("tear", SAVED, kind="clone")
def attributes_pipe(place: Place) -> None:
    """A pipe in the place of the attributes."""
    place.write("attributes-pipe.txt")
    pipe(place.path(place.chance.choice((".gitattributes", "folder/.gitattributes"))))


@block("tear", SAVED)
def rules_hold_up(place: Place) -> None:
    """Pipes, links and folders in the places of all files that git reads in a tree."""
    place.write("rules-hold-up.txt")
    for name in (".gitignore", "folder/.gitignore", ".gitmodules", ".mailmap", ".lfsconfig", "folder/.gitattributes"):
        kind = place.chance.choice(("pipe", "zero", "canary", "folder"))
        if kind == "pipe":
            pipe(place.path(name))
        elif kind == "folder":
            clear(place.path(name))
            os.makedirs(place.path(name))
        else:
            link("/dev/zero" if kind == "zero" else f"{place.canary}/secret", place.path(name))


@block("tear", SAVED)
def tree_is_gone(place: Place) -> None:
    """The tree itself is moved away, or emptied."""
    for name in os.listdir(place.tree):
        if name != ".git":
            clear(place.path(name))
    place.known.clear()
    if not place.sandboxed and place.chance.random() < 0.3:
        with contextlib.suppress(OSError):
            shutil.rmtree(place.tree)
        place.gone()


@block("tree", SAVED, kind="clone", kill="git", again="retry")
def killed_saver(place: Place) -> None:
    """Many files, so that git can be killed while it saves them."""
    for number in range(place.scale.files * 2):
        place.write(
            f"killed/{number % 37}/{number}", b"%d of %d: %d\n" % (number, place.seed, place.chance.random() * 1e9)
        )


def _objects(place: Place) -> list[str]:
    """Return the files of single objects of its own git directory."""
    folder = f"{place.shared}/objects"
    return [
        f"{folder}/{one}/{name}"
        for one in sorted(os.listdir(folder))
        if len(one) == 2
        for name in sorted(os.listdir(f"{folder}/{one}"))
    ]
