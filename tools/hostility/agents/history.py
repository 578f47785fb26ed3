"""What an agent may leave in its history: commits, branches, tags, the stash, and merges that are not finished.

Law: each commit is noted, with the words by which people know it.

Touches: processes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess

from tools.hostility.agents.place import CLONE, REPOSITORY, SAVED, Place, block, clear, pipe, put


@block("make")
def committed(place: Place) -> None:
    """Commit some files, and change one of them again."""
    for number in range(place.chance.choice((1, 3))):
        place.write(f"committed-{number}.txt")
        place.commit()
    place.write("committed-0.txt")


@block("make")
def other_branch(place: Place) -> None:
    """Commit on a branch of its own, and go back."""
    back = place.git("rev-parse", "HEAD")
    name = place.git("symbolic-ref", "--short", "HEAD")
    place.git("checkout", "-q", "-b", "elsewhere")
    place.write("other-branch.txt")
    place.commit("elsewhere")
    place.git("checkout", "-q", "-f", name)
    place.git("reset", "-q", "--hard", back)


@block("make")
def many_branches(place: Place) -> None:
    """Commit on many branches, with names that go deep."""
    head = place.git("rev-parse", "HEAD")
    tree = place.git("rev-parse", "HEAD^{tree}")
    for number in range(30):
        name = "/".join((f"branch-{number}", *["deep"] * (number % 7)))
        made = place.git("commit-tree", tree, "-p", head, "-m", f"{place.text()!r}")
        place.git("update-ref", f"refs/heads/{name}", made)
        place.made(made, f"branch-{number}")


@block("make")
def left_on_another_branch(place: Place) -> None:
    """Commit on another branch, and stay there."""
    place.git("checkout", "-q", "-b", f"stay-{place.chance.randrange(1000)}")
    place.write("left-on-another.txt")
    place.commit("stay-")


@block("make")
def detached(place: Place) -> None:
    """Commit with no branch."""
    place.git("checkout", "-q", "--detach")
    place.write("detached.txt")
    place.commit("HEAD")


@block("make")
def orphan(place: Place) -> None:
    """Begin a history that has nothing in common with the base."""
    place.git("checkout", "-q", "--orphan", "orphan")
    place.write("orphan.txt")
    place.commit("orphan")


@block("make")
def went_back(place: Place) -> None:
    """Commit, and set the branch back behind the base."""
    place.write("went-back.txt")
    place.commit("backup")
    place.git("branch", "-f", "backup")
    place.git("update-ref", "HEAD", place.git("rev-list", "--max-parents=0", "HEAD").split()[0])


@block("make")
def stash(place: Place) -> None:
    """Put changes into the stash, and leave them there."""
    place.write("stashed.txt")
    place.git("stash", "push", "-q", "--include-untracked", "--", "stashed.txt")
    place.made(place.git("rev-parse", "refs/stash"), "stash")


@block("make")
def tagged(place: Place) -> None:
    """Tag commits that are on no branch."""
    tree, head = place.git("rev-parse", "HEAD^{tree}"), place.git("rev-parse", "HEAD")
    made = place.git("commit-tree", tree, "-p", head, "-m", f"{place.text()!r}")
    place.git("tag", *place.chance.choice(((), ("-m", "annotated"))), "tagged-only", made)
    place.made(made, "tagged-only", "refs/tags", "tag")


@block("make")
def notes(place: Place) -> None:
    """Write notes."""
    place.git("notes", "add", "-f", "-m", f"{place.text()!r}", "HEAD")
    place.made(place.git("rev-parse", "refs/notes/commits"), "notes")


@block("make")
def own_reference(place: Place) -> None:
    """Commit to a reference that is no branch, also one that looks like spoold's own, and one of what was fetched."""
    tree, head = place.git("rev-parse", "HEAD^{tree}"), place.git("rev-parse", "HEAD")
    for name in ("refs/own/kept", "refs/spool/other/1", "refs/remotes/origin/main"):
        made = place.git("commit-tree", tree, "-p", head, "-m", f"{place.text()!r}")
        place.git("update-ref", name, made)
        if not name.startswith("refs/remotes/"):  # nobody can tell it from what another one made
            place.made(made, name, "reference")


@block("make")
def conflict(place: Place) -> None:
    """Begin a merge that conflicts, and leave it."""
    name = place.git("symbolic-ref", "-q", "--short", "HEAD")
    place.git("checkout", "-q", "-b", "theirs")
    place.write("data.txt")
    place.commit("theirs")
    place.git("checkout", "-q", "-f", name)
    place.write("data.txt")
    place.commit()
    _fails(place, "merge", "-q", "theirs")


@block("make")
def rebase(place: Place) -> None:
    """Begin a rebase that conflicts, and leave it."""
    base = place.git("rev-parse", "HEAD")
    place.write("data.txt")
    place.commit("ORIG_HEAD", "rebase")
    place.git("checkout", "-q", "-b", "upstream", base)
    place.write("data.txt")
    place.commit("upstream")
    _fails(place, "rebase", "-q", "upstream", "-")


@block("make")
def cherry_pick(place: Place) -> None:
    """Begin to pick a commit that conflicts, and leave it."""
    base = place.git("rev-parse", "HEAD")
    place.git("checkout", "-q", "-b", "picked")
    place.write("data.txt")
    picked = place.commit("picked")
    place.git("checkout", "-q", "-f", "-B", "picking", base)
    place.write("data.txt")
    place.commit("picking")
    _fails(place, "cherry-pick", picked)


@block("make")
def bisect(place: Place) -> None:
    """Begin a bisection, and leave it."""
    for number in range(4):
        place.write(f"bisect-{number}.txt")
        place.commit()
    place.git("bisect", "start", "HEAD", "HEAD~4")


@block("make")
def named_by_a_file(place: Place) -> None:
    """A commit that only a file of the git directory names, as git notes what it does, or has put away."""
    name = place.chance.choice(
        ("MERGE_AUTOSTASH", "ORIG_HEAD", "rebase-apply/autostash", "sequencer/todo", "any/where")
    )
    tree = place.git("rev-parse", "HEAD^{tree}")
    put(f"{place.own}/{name}", b"pick %s lost\n" % place.made(place.git("commit-tree", tree, "-m", name)).encode())


@block("make")
def named_objects(place: Place) -> None:
    """Trees and contents that a reference, a tag of a tag or a file of the git directory names, and no commit has."""
    for number in range(4):
        made = place.git("hash-object", "-w", "--stdin", given=place.text())
        if place.chance.random() < 0.5:
            made = place.git("mktree", given=f"100644 blob {made}\tsnapped\n".encode())
        name = place.chance.choice(("refs/snap", "refs/tags", "AUTO_MERGE", "any/where"))
        place.made(made, name, "no commit")
        if place.chance.random() < 0.3:
            made = place.git("tag", "-f", "-a", "-m", "x", "of-it", made) or place.git("rev-parse", "refs/tags/of-it")
        if name.startswith("refs/"):
            place.git("update-ref", f"{name}/{number}", made)
        else:
            put(f"{place.own}/{name}.{number}", f"{made}\n".encode())


@block("make", CLONE)
def worktree_elsewhere(place: Place) -> None:
    """Make a worktree in the home, or in an ignored folder, of this repository or of one within, and change files
    there; some of it is staged. One may be moved by hand, or lose what says whose worktree it is."""
    place.write("ignored-trees/.gitignore", b"*\n")
    place.ignored.append(b"ignored-trees")
    inner = f"{place.tree}/has-worktrees"
    place.git("init", "-q", inner)
    put(f"{inner}/data.txt", place.text())
    place.git("add", "data.txt", at=inner)
    place.git("commit", "-q", "-m", "within", at=inner)
    for number in range(3):
        top = place.chance.choice((place.home, f"{place.tree}/ignored-trees"))
        owner, folder = place.chance.choice((place.tree, inner)), f"{top}/worktree-{number}"
        place.git("worktree", "add", "-q", "-b", f"elsewhere-{number}", folder, at=owner)
        if place.chance.random() < 0.3:
            os.rename(folder, f"{top}/moved-worktree-{number}")
            folder = f"{top}/moved-worktree-{number}"
        for name in ("data.txt", "below/new"):
            put(f"{folder}/{name}", data := place.text())
            place.made(place.git("hash-object", "-w", "--stdin", given=data), f"worktree-{number}")
        if place.chance.random() < 0.5:
            place.git("add", "data.txt", at=folder)
            put(f"{folder}/data.txt", data := place.text())
            place.made(place.git("hash-object", "-w", "--stdin", given=data), f"worktree-{number}")
        if place.chance.random() < 0.2 and not os.path.basename(folder).startswith("moved"):
            place.chance.choice((clear, pipe))(f"{folder}/.git")
    if place.sandboxed:  # where nobody can look: nothing of it can be asked back
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            place.git("worktree", "add", "-q", "--detach", f"/tmp/worktree-{place.seed}")


@block("make")
def kept_in_git(place: Place) -> None:
    """Leave files that only the git directory has: patches to be applied, a bundle, a submodule in the index."""
    place.write("data.txt")
    place.commit("applied")
    patches = place.git("format-patch", "--stdout", "HEAD~1").encode() + b"\n"
    place.git("reset", "-q", "--hard", "HEAD~1")
    place.write("data.txt")
    place.commit()
    _fails(place, "am", "-q", given=patches * 2)
    names = [f"rebase-apply/{number:04}" for number in (1, 2)]
    for name in ("own.bundle", "rr-cache/any/preimage", "deep/er/notes"):
        put(f"{place.own}/{name}", place.text())
        names.append(name)
    for name in names:
        with contextlib.suppress(OSError), open(f"{place.own}/{name}", "rb") as file:
            place.made(place.git("hash-object", "--stdin", given=file.read()), name)
    made = place.git("commit-tree", "HEAD^{tree}", "-m", "only staged")
    place.git("update-index", "--add", "--cacheinfo", f"160000,{made},linked")
    place.made(made, "linked", "index")


@block("make")
def empty_commit(place: Place) -> None:
    """Commit nothing, with a message of any bytes."""
    tree, head = place.git("rev-parse", "HEAD^{tree}"), place.git("rev-parse", "HEAD")
    made = place.git("commit-tree", tree, "-p", head, given=place.text() + b"\xff\xfe\n" + b"x" * 70_000)
    place.git("update-ref", "HEAD", place.made(made))


@block("make")
def broken(place: Place) -> None:
    """Leave what fails the tests of the merge, under cover of attributes and ignored names."""
    place.write("BROKEN", b"this fails\n")
    if place.chance.random() < 0.5:
        place.git("add", "-f", "BROKEN")
        place.write(".gitattributes", b"BROKEN export-ignore -diff -merge filter=lfs\n")
        place.commit()


@block("make")
def staged(place: Place) -> None:
    """Stage files that are ignored, change and move some of them, and commit none."""
    place.write("staged/.gitignore", b"*\n!.gitignore\n# " + place.text())
    place.write("staged/below/forced.log")
    place.write("staged/moved.log")
    place.write("staged/intended.log")
    place.git("add", "--force", "staged/below/forced.log", "staged/moved.log")
    place.git("add", "--force", "--intent-to-add", "staged/intended.log")
    place.git("mv", "staged/moved.log", "staged/elsewhere.log")
    place.write("staged/elsewhere.log")


@block("make")
def removed(place: Place) -> None:
    """Remove files that were there, and put folders in the places of others."""
    for name in place.chance.sample(("README", "data.txt", "folder"), 2):
        place.git("rm", "-r", "-q", "--cached", name)
        clear(place.path(name))
    place.write("README.d/README")


@block("make", REPOSITORY)
def replaced(place: Place) -> None:
    """Say by a replace reference that a commit is another one."""
    head = place.git("rev-parse", "HEAD")
    place.write("replaced.txt")
    new = place.commit()
    place.git("replace", new, head)


@block("make")
def fake_objects(place: Place) -> None:
    """Commit trees that no git makes: names with a slash, `..`, `.git`, twice the same."""
    blob = place.git("hash-object", "-w", "--stdin", given=place.text())
    rows = b"".join(
        b"100644 " + name + b"\0" + bytes.fromhex(blob) for name in (b"..", b".git", b"a", b"a", b"x/../../y")
    )
    tree = place.git("hash-object", "-t", "tree", "--literally", "-w", "--stdin", given=rows)
    made = place.git("commit-tree", tree, "-p", place.git("rev-parse", "HEAD"), "-m", "fake")
    if place.chance.random() < 0.5:
        place.git("update-ref", "HEAD", place.made(made, "fsck", "hasDot", "objects"))
    else:
        place.git("update-ref", "refs/heads/fake", place.made(made, "fake"))


@block("make")
def false_dates(place: Place) -> None:
    """Commit with dates of other centuries, and names that hold what no header may."""
    tree, head = place.git("rev-parse", "HEAD^{tree}"), place.git("rev-parse", "HEAD")
    date = place.chance.choice((b"0 +0000", b"99999999999 +9999", b"4102444800 -0001"))
    text = b"tree %s\nparent %s\nauthor a <b@c> %s\ncommitter a <b@c> %s\n\n%s" % (
        *(tree.encode(), head.encode(), date, date, place.text()),
    )
    made = place.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=text)
    place.git("update-ref", "HEAD", place.made(made))


@block("make")
def refused_commits(place: Place) -> None:
    """Commit what git refuses: dates and authors that are none, modes with a zero in front, objects that are gone."""
    for number, who in enumerate(
        (b"a <b@c> now +0000", b"a b@c 1 +0000", b"a <b@c> 01700000000 +0000", b"a <b@c> 1 +00")
    ):
        blob = place.git("hash-object", "-w", "--stdin", given=place.text())
        gone = place.chance.choice((b"", b"100644 gone\0" + place.chance.randbytes(20)))
        rows = b"0100644 file-%d\0" % number + bytes.fromhex(blob) + gone
        tree = place.git("hash-object", "-t", "tree", "--literally", "-w", "--stdin", given=rows)
        text = b"tree %s\nparent %s\nauthor %s\ncommitter a <b@c> 1 +0000\n\n%s" % (
            *(tree.encode(), place.git("rev-parse", "HEAD").encode(), who, place.text()),
        )
        made = place.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=text)
        place.git("update-ref", "HEAD", place.made(made))


@block("make")
def long_history(place: Place) -> None:
    """Commit a thousand times."""
    head = place.git("rev-parse", "HEAD")
    name = place.git("rev-parse", "--symbolic-full-name", "HEAD")
    stream = [f"reset {name}\nfrom {head}\n"]
    for number in range(place.scale.files // 3):
        text = f"{number} of {place.seed}"
        stream.append(
            f"commit {name}\ncommitter a <a@b> {1_700_000_000 + number} +0000\ndata {len(text)}\n{text}\n"
            f"M 100644 inline long/{number % 50}\ndata {len(text)}\n{text}\n"
        )
    place.git("fast-import", "--quiet", "--force", given="".join(stream).encode())
    place.made(place.git("rev-parse", "HEAD"))
    place.git("reset", "-q", "--hard")


@block("make", SAVED)
def many_references(place: Place) -> None:
    """Leave thousands of references to one commit."""
    head = place.git("rev-parse", "HEAD")
    names = "".join(f"create refs/heads/many/{number % 40}/{number} {head}\n" for number in range(place.scale.files))
    place.git("update-ref", "--stdin", given=names.encode())


@block("make", SAVED)
def squashed_author(place: Place) -> None:
    """Commit under the name of another, signed by a program that is none."""
    put(f"{place.home}/.gitconfig", b"[user]\nname = root\n[gpg]\nprogram = /bin/false\n[commit]\ngpgSign = true\n")
    place.write("squashed.txt")
    place.commit()


def _fails(place: Place, *words: str, given: bytes = b"") -> None:
    """Run a command of git that stops in the middle, and so ends with 1."""
    with contextlib.suppress(subprocess.CalledProcessError):
        place.git(*words, given=given)
