"""What an agent has staged is work: a file that is in its index is not ignored, whatever `.gitignore` says."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spoold.agents.workspace.attempt_workspace import collect
from spoold.agents.workspace.workspace_layout import Places
from tests.agents.workspace.repos import Remote, git, workspace, write

KINDS = ("clone", "worktree")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    made = Remote(tmp_path, {"a.txt": "one\n", ".gitignore": "", "t2.log": "tracked\n", "folder/t3.log": "third\n"})
    made.land({".gitignore": "*.log\nbuild/\n"})
    return made


def holds(remote: Remote, text: str) -> bool:
    """Whether any reference of the remote has a content."""
    name = hashlib.sha1(b"blob %d\0" % len(text) + text.encode(), usedforsecurity=False).hexdigest()
    return name in git("rev-list", "--all", "--objects", "--no-object-names", cwd=remote.path).split()


def forced(tree: Path) -> None:
    write(tree, {"forced.log": "x\n"})
    git("add", "-f", "forced.log", cwd=tree)


def renamed(tree: Path) -> None:
    git("mv", "t2.log", "t2b.log", cwd=tree)


def committed_edited_and_moved(tree: Path) -> None:
    write(tree, {"keep.log": "first\n"})
    git("add", "-f", "keep.log", cwd=tree)
    git("commit", "-q", "-m", "keep", cwd=tree)
    write(tree, {"keep.log": "second\n"})
    git("mv", "keep.log", "kept.log", cwd=tree)


def intended(tree: Path) -> None:
    write(tree, {"plain.log": "intended\n"})
    git("add", "-f", "-N", "plain.log", cwd=tree)


def below_an_ignored_folder(tree: Path) -> None:
    write(tree, {"build/x": "x\n", "build/y": "noise\n"})
    git("add", "-f", "build/x", cwd=tree)


def sparse(tree: Path) -> None:
    git("sparse-checkout", "set", "--cone", "--sparse-index", "nothing", cwd=tree)
    write(tree, {"nothing/new": "new\n"})


def skipped(tree: Path) -> None:
    git("update-index", "--skip-worktree", "a.txt", "t2.log", cwd=tree)
    git("update-index", "--assume-unchanged", "folder/t3.log", cwd=tree)
    (tree / "a.txt").unlink()
    write(tree, {"t2.log": "skipped\n", "folder/t3.log": "assumed\n"})


def shared(tree: Path) -> None:
    git("update-index", "--split-index", cwd=tree)
    forced(tree)


def newest_format(tree: Path) -> None:
    git("update-index", "--index-version", "4", cwd=tree)
    forced(tree)


def taken_out(tree: Path) -> None:
    git("rm", "-q", "--cached", "t2.log", cwd=tree)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("leave", "files"),
    [
        (forced, {"forced.log": "x\n"}),
        (renamed, {"t2b.log": "tracked\n", "t2.log": None}),
        (committed_edited_and_moved, {"kept.log": "second\n", "keep.log": None}),
        (intended, {"plain.log": "intended\n"}),
        (below_an_ignored_folder, {"build/x": "x\n", "build/y": None}),
        (sparse, {"nothing/new": "new\n", "folder/t3.log": "third\n"}),
        (skipped, {"a.txt": "one\n", "t2.log": "skipped\n", "folder/t3.log": "assumed\n"}),
        (shared, {"forced.log": "x\n"}),
        (newest_format, {"forced.log": "x\n"}),
        (taken_out, {"t2.log": None, "folder/t3.log": "third\n"}),
    ],
)
def test_a_file_of_the_index_is_a_file_of_the_work(
    remote: Remote, tmp_path: Path, kind: str, leave: Callable[[Path], None], files: dict[str, str | None]
) -> None:
    with workspace(remote, tmp_path / "host", kind=kind) as made:
        tree = Path(made.open())
        leave(tree)
        if leave is skipped:
            write(tree, {"other": "changed\n"})
        saved = made.save("saved")
        again = made.save("again")
    assert (saved.left_out, saved.amiss, again.commit) == ((), (), saved.commit)
    assert {name: remote.read(saved.ref, name) for name in files} == files
    assert "one" in (remote.read(saved.ref, "a.txt") or "")


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_staged_and_has_changed_since_is_beside_the_work(remote: Remote, tmp_path: Path, kind: str) -> None:
    with workspace(remote, tmp_path / "host", kind=kind) as made:
        tree = Path(made.open())
        write(tree, {"both.txt": "staged\n", "gone.txt": "gone\n", "a.txt": "staged, too\n"})
        git("add", "-A", cwd=tree)
        write(tree, {"both.txt": "later\n", "gone.txt": None, "a.txt": "one\n"})
        saved = made.save("saved")
        again = made.save("again")
    assert (saved.amiss, saved.left_out, again.more) == ((), (), saved.more)
    assert "staged and is in no file: a.txt, both.txt, gone.txt" in saved.beside[0]
    assert remote.files(saved.more) == []
    assert {holds(remote, text) for text in ("staged\n", "gone\n", "staged, too\n", "later\n")} == {True}


def test_each_side_of_a_conflict_is_on_the_remote(remote: Remote, tmp_path: Path) -> None:
    """A patch that does not apply leaves a side that no commit has."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"t2.log": "theirs\n"})
        patch = git("diff", "--full-index", "--binary", cwd=tree) + "\n"
        (tmp_path / "patch").write_text(patch)
        write(tree, {"t2.log": "ours\n"})
        git("commit", "-q", "-a", "-m", "ours", cwd=tree)
        git("apply", "--3way", str(tmp_path / "patch"), cwd=tree, check=False)
        assert git("ls-files", "-u", cwd=tree)
        (tree / "t2.log").unlink()
        saved = made.save("saved")
    assert (holds(remote, "theirs\n"), holds(remote, "ours\n"), saved.left_out) == (True, True, ())


def test_files_that_a_repository_within_tracks_are_files_of_the_work(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        for name in ("inner", "build/out"):
            (tree / name).mkdir(parents=True)
            git("init", "-q", "-b", "main", cwd=tree / name)
            write(tree / name, {".gitignore": "*.dat\n", "x.dat": f"{name}\n", "y.dat": "no\n", "z.log": "log\n"})
            git("add", "-f", "x.dat", "z.log", cwd=tree / name)
        write(tree, {"inner/z.log": "log, changed\n"})
        saved = made.save("saved")
    assert remote.read(saved.ref, "inner/x.dat") == "inner\n"
    assert remote.read(saved.ref, "inner/z.log") == "log, changed\n"
    assert remote.read(saved.ref, "inner/y.dat") is None
    assert (holds(remote, "log\n"), holds(remote, "build/out\n"), saved.amiss) == (True, False, ())


def torn(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:150])


def pipe(index: Path) -> None:
    index.unlink()
    os.mkfifo(index)


def link(index: Path) -> None:
    index.rename(index.with_name("other"))
    index.symlink_to("other")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [torn, pipe, link])
def test_an_index_that_cannot_be_read_is_said(
    remote: Remote, tmp_path: Path, kind: str, how: Callable[[Path], None]
) -> None:
    with workspace(remote, tmp_path / "host", kind=kind) as made:
        tree = Path(made.open())
        own = Path(git("rev-parse", "--absolute-git-dir", cwd=tree))
        write(tree, {"b.txt": "two\n", "t2.log": "changed\n"})
        how(own / "index")
        saved = made.save("saved")
    assert [line.partition(":")[0] for line in saved.amiss] == ["what it had staged"]
    assert (remote.read(saved.ref, "b.txt"), remote.read(saved.ref, "t2.log")) == ("two\n", "changed\n")


@pytest.mark.parametrize("name", ["../../out", ".git/config", "a//b", "x/.GIT/y", "a.txt/b", "/etc/passwd"])
def test_a_name_that_no_index_should_have_does_no_harm(remote: Remote, tmp_path: Path, name: str) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        forced(tree)
        short = "q" * len(name)
        write(tree, {short: "odd\n"})
        git("add", short, cwd=tree)
        index = tree / ".git/index"
        data = index.read_bytes()[:-20].replace(short.encode(), name.encode())
        index.write_bytes(data + hashlib.sha1(data, usedforsecurity=False).digest())
        saved = made.save("saved")
    assert remote.read(saved.ref, "forced.log") == "x\n"
    assert remote.read(saved.ref, short) == "odd\n"


def test_staged_content_that_is_nowhere_is_said(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        forced(tree)
        git("update-index", "--add", "--cacheinfo", f"100644,{'12' * 20},ghost.log", cwd=tree)
        saved = made.save("saved")
    assert saved.amiss == ("ghost.log: the content that was staged is not there",)
    assert remote.read(saved.ref, "forced.log") == "x\n"


DEEDS = ("write", "add", "add -N", "commit", "move", "git mv", "remove", "rm --cached", "reset", "stash", "skip")


def deed(tree: Path, chance: random.Random, number: int) -> None:
    """One thing that an agent does to its files; git may refuse it."""
    name = chance.choice(("a.txt", "t2.log", "new.log", "new.txt", "build/x", "folder/t3.log", "folder/b.log"))
    path, kind = tree / name, chance.choice(DEEDS)
    if kind == "write":
        write(tree, {name: f"{number} of {chance.random()}\n"})
    elif kind == "remove":
        path.unlink(missing_ok=True)
    elif kind == "move" and path.exists():
        path.rename(tree / f"moved-{number}.log")
        git("add", "-f", f"moved-{number}.log", cwd=tree)
    words = {
        "add": ("add", "-f", name),
        "add -N": ("add", "-f", "-N", name),
        "commit": ("commit", "-q", "-m", "mine"),
        "git mv": ("mv", name, f"renamed-{number}.log"),
        "rm --cached": ("rm", "-q", "--cached", name),
        "reset": ("reset", "-q", chance.choice(("--soft", "--mixed")), "HEAD~1"),
        "stash": ("stash", "push", "-q", "--", name),
        "skip": ("update-index", "--skip-worktree", name),
    }
    if kind in words:
        git(*words[kind], cwd=tree, check=False)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_an_agent_stages_is_on_the_remote(remote: Remote, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with workspace(remote, tmp_path / "host", kind=chance.choice(KINDS)) as made:
        tree = Path(made.open())
        for number in range(chance.randrange(3, 20)):
            deed(tree, chance, number)
        rows = [row.split("\t") for row in git("ls-files", "--stage", cwd=tree).splitlines()]
        staged = {about.split()[1] for about, _ in rows}
        files = {name: (tree / name).read_text() for _, name in rows if (tree / name).is_file()}
        saved = made.save("saved")
    there = git("rev-list", "--all", "--objects", "--no-object-names", cwd=remote.path).split()
    assert saved.left_out == ()
    assert staged - {*there, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"} == set()
    ref = saved.ref or "main"
    assert {name: remote.read(ref, name) for name in files} == files


def test_what_was_staged_after_the_last_save_keeps_the_workspace(remote: Remote, tmp_path: Path) -> None:
    for number, leave in enumerate((forced, below_an_ignored_folder)):
        host = tmp_path / f"host-{number}"
        with workspace(remote, host, task=f"edit-{number}") as made:
            tree = Path(made.open())
            write(tree, {"b.txt": f"{number}\n", "noise.log": "ignored\n"})
            made.save("saved")
            leave(tree)
        [judged] = collect(Places(str(host)), keep_s=0)
        assert (judged.removed, judged.unsaved) == (False, True), judged.why
        git("rm", "-r", "-q", "--cached", ".", cwd=tree)
        git("reset", "-q", cwd=tree)
        shutil.rmtree(tree / "build", ignore_errors=True)
        [judged] = collect(Places(str(host)), keep_s=0)
        assert judged.removed, judged.why
