"""What only files of git name, or worktrees elsewhere hold: saved up to a bound, accepted or named, and looked at."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from spoold.agents.workspace import committing, packer
from tests.agents.workspace.kills import beside
from tests.agents.workspace.repos import Remote, git, workspace, write
from tests.agents.workspace.test_hostile import commit, within
from tests.agents.workspace.test_uncommitted import OWNERS, added, objects, place_of


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


@pytest.mark.parametrize("mine", [True, False])
def test_a_worktree_elsewhere_of_a_repository_that_others_share_is_named(
    remote: Remote, tmp_path: Path, mine: bool
) -> None:
    """In the kind `worktree` nothing named it, and not even its commits were saved."""
    with workspace(remote, tmp_path / "host", "first", kind="worktree") as earlier:
        git("worktree", "add", "-q", "-b", "before", str(tmp_path / "before"), cwd=earlier.open())
    with (
        workspace(remote, tmp_path / "host", kind="worktree") as made,
        workspace(remote, tmp_path / "host", "other", kind="worktree") as other,
    ):
        tree, neighbour = Path(made.open()), Path(other.open())
        git("worktree", "add", "-q", "-b", "its-own", str(neighbour.parent / "home/aside"), cwd=neighbour)
        where, made_there = tmp_path / "gone", set[str]()
        if mine:
            git("worktree", "add", "-q", "-b", "aside", str(where), cwd=tree)
            commit(where, {"c.txt": "committed\n"})
            detached = commit(where, {"d.txt": "detached\n"})
            git("reset", "-q", "--hard", "HEAD~1", cwd=where)
            write(where, {"s.txt": "staged\n", "u.txt": "untracked\n"})
            git("add", "s.txt", cwd=where)
            staged = git("rev-parse", ":s.txt", cwd=where)
            made_there = {git("rev-parse", "HEAD", cwd=where), detached, staged}
            shutil.rmtree(where)
        write(tree, {"w.txt": "work\n"})
        saved = made.save("saved")
    if not mine:
        assert (saved.beside, saved.left_out, saved.amiss) == ((), (), ())
        return
    why = "is out of reach, and so only what was committed or staged there is saved"
    assert saved.left_out == (f"the worktree gone: its folder {where} {why}",)
    assert f"the worktree gone: its folder {where} {why}" in saved.amiss
    assert made_there <= objects(remote, saved)


@pytest.mark.parametrize("where", ["inner", ""])
@pytest.mark.parametrize("file", ["FETCH_HEAD", "ORIG_HEAD"])
def test_history_that_only_a_file_of_git_names_is_saved_up_to_a_bound(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, file: str
) -> None:
    """A fetch by address alone brought all of another project to the remote."""
    monkeypatch.setattr(packer, "WITHIN_MAX" if where else "FILES_MAX", 1 << 20)
    monkeypatch.setattr(committing, "caged", beside)
    large = "".join(hashlib.sha256(b"%d" % one).hexdigest() for one in range(40_000))
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        there = within(tree, where) if where else tree
        small = commit(there, {"small.txt": "small\n"})
        git("checkout", "-q", "--orphan", "elsewhere", cwd=there)
        one = commit(there, {"large.txt": large})
        git("checkout", "-q", "-f", "--detach", small, cwd=there)
        git("branch", "-q", "-D", "elsewhere", cwd=there)
        shutil.rmtree(there / ".git/logs")
        (there / f".git/{file}").write_text(f"{one}\t\tbranch 'main' of ../other\n")
        kept = git("commit-tree", "HEAD^{tree}", "-m", "small", cwd=there)
        (there / ".git/SMALL_HEAD").write_text(f"{kept}\n")
        saved = made.save("saved")
    told = f"{where}: " * bool(where) + f"a commit that stands only in .git/{file}"
    assert saved.left_out == (f"{told}: with it such commits have more than 1 MiB",)
    assert one not in objects(remote, saved)
    assert kept in objects(remote, saved)


@pytest.mark.parametrize("owner", [*OWNERS, "submodule/deep", "absorbed", "taken out"])
def test_worktrees_of_another_repository_are_looked_at_once_more(remote: Remote, tmp_path: Path, owner: str) -> None:
    """Before a workspace is removed: files that came after the save were removed with it."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        if owner.startswith("home"):
            added(tree, "home/wt")
        top = place_of(tree, owner)
        for place in (top.parent, top) if "deep" in owner else (top,):
            commit(within(place.parent, place.name), {"i.txt": f"{place.name}\n"})
        if owner.startswith(("submodule", "absorbed", "taken")):
            name = owner.partition("/")[0]
            write(tree, {".gitmodules": f'[submodule "{name}"]\npath = {name}\nurl = ../other\n'})
            git("add", ".gitmodules", name, cwd=tree)
            git("commit", "-q", "-m", "a submodule", cwd=tree)
        if owner in ("absorbed", "taken out"):
            git("submodule", "absorbgitdirs", cwd=tree)
        clean, folder = place_of(tree, "home/clean"), place_of(tree, "home/other")
        for number, place in enumerate((clean, folder)):
            git("worktree", "add", "-q", "-b", f"aside-{number}", str(place), cwd=top)
        if owner == "taken out":
            git("rm", "-q", "-r", "-f", owner, cwd=tree)
        write(folder, {"new.txt": "new\n"})
        made.save("saved")
        mirror, where, record = made._mirror, made._folder, made._record
        assert committing.lacking(mirror, where, record) == []
        write(folder, {"later.txt": "later\n"})
        assert committing.lacking(mirror, where, record) == ["../home/other/later.txt"]
        write(clean, {".gitignore": "i.txt\n", "i.txt": "ignored, and changed\n"})
        assert "../home/clean/i.txt" in committing.lacking(mirror, where, record)
        git("reset", "-q", "--hard", cwd=clean)
        git("clean", "-q", "-f", cwd=clean)
        git("add", "later.txt", cwd=folder)
        (folder / "later.txt").unlink()
        (lost,) = committing.lacking(mirror, where, record)
    assert lost.startswith("../home/other/later.txt as ")


@pytest.mark.parametrize("inner", ["", "inner"])
@pytest.mark.parametrize("how", ["notes", "replace", "prefetch"])
def test_what_is_about_commits_or_was_fetched_is_beside_the_work_and_accepted(
    remote: Remote, tmp_path: Path, inner: str, how: str
) -> None:
    """An attempt was not accepted for a note, which nobody can bring into the work."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        where = within(tree, inner) if inner else tree
        head = commit(where, {"a.txt": "two\n"})
        if how == "notes":
            git("notes", "add", "-m", "reviewed", cwd=where)
            name = "refs/notes/commits"
        else:
            other = git("commit-tree", "HEAD^{tree}", "-m", "other", cwd=where)
            name = f"refs/replace/{head}" if how == "replace" else "refs/prefetch/remotes/origin/main"
            git("update-ref", name, other, cwd=where)
        one = git("rev-parse", name, cwd=where)
        saved = made.save("saved")
    assert (saved.amiss, saved.left_out) == ((), ())
    assert one in objects(remote, saved)
    assert any(name in line for line in saved.beside), saved.beside


CAPITALS = (
    "a branch",
    "packed-refs",
    "HEAD",
    "MERGE_HEAD",
    "FETCH_HEAD",
    "the log of HEAD",
    "the stash",
    "todo",
    "x",
)


@pytest.mark.parametrize("inner", ["", "inner"])
@pytest.mark.parametrize("how", CAPITALS)
def test_a_name_in_capital_letters_is_one(remote: Remote, tmp_path: Path, how: str, inner: str) -> None:
    """Git reads them as well; a program that is no git may write them."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        where = within(tree, inner) if inner else tree
        first = commit(where, {"a.txt": "two\n"})
        one = commit(where, {"b.txt": "b\n"})
        git("reset", "-q", "--hard", first, cwd=where)
        own, log = where / ".git", f"{first} {one.upper()} a <a@b> 1 +0000\twas\n"
        shutil.rmtree(own / "logs")
        (own / "ORIG_HEAD").unlink()
        files = {
            "a branch": {"refs/heads/other": f"{one.upper()}\n"},
            "packed-refs": {"packed-refs": f"{one.upper()} refs/heads/other\n"},
            "HEAD": {"HEAD": f"{one.upper()}\n"},
            "MERGE_HEAD": {"MERGE_HEAD": f"{one.upper()}\n"},
            "FETCH_HEAD": {"FETCH_HEAD": f"{one.upper()}\t\tof another\n"},
            "the log of HEAD": {"logs/HEAD": log},
            "the stash": {"refs/stash": f"{first.upper()}\n", "logs/refs/stash": log},
            "todo": {"sequencer/todo": f"pick {one[:9].upper()} b\n"},
            "x": {f"refs/x/{one.upper()}": f"{one}\n"},
        }[how]
        write(own, files)
        saved = made.save("saved")
    assert one in objects(remote, saved), saved
    assert saved.left_out == ()
