"""What an agent left in no commit and in no file of its workspace: it is beside the work, or it is named."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from spoold.agents.workspace import agent_commits, committing, packer
from spoold.agents.workspace.attempt_workspace import SavedWork, collect
from spoold.agents.workspace.git import WorkspaceFailed
from spoold.rules.redaction.masking import Scanner
from tests.agents.workspace.kills import beside
from tests.agents.workspace.repos import NAMED, Remote, git, workspace, write
from tests.agents.workspace.test_hostile import commit, given, within


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


def objects(remote: Remote, saved: SavedWork) -> set[str]:
    """The names of all objects that the remote has of a save."""
    refs = [ref for ref in (saved.ref, saved.more) if ref]
    return {row.split()[0] for row in git("rev-list", "--objects", *refs, cwd=remote.path).splitlines()}


def snapshot(tree: Path, text: str) -> str:
    """A tree of one changed file, as a program makes one that keeps what was before each step."""
    write(tree, {"step.txt": text})
    git("add", "step.txt", cwd=tree)
    made = git("write-tree", cwd=tree)
    git("rm", "-q", "-f", "--cached", "step.txt", cwd=tree)
    (tree / "step.txt").unlink()
    return made


def content(tree: Path, text: str) -> str:
    return given(tree, text, "hash-object", "-w", "--stdin")


@pytest.mark.turns
@pytest.mark.parametrize("how", ["a tree", "a content", "a tag of a tree", "a tag of a tag of a content"])
@pytest.mark.parametrize("inner", ["", "inner"])
@pytest.mark.parametrize("torn", [False, True])
def test_a_reference_to_what_is_no_commit_is_beside_the_work(
    remote: Remote, tmp_path: Path, how: str, inner: str, torn: bool
) -> None:
    """`git update-ref refs/snap/1 $(git write-tree)` was lost without a word."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        where = within(tree, inner) if inner else tree
        commit(where, {"a.txt": "two\n"})
        one = snapshot(where, "snapped\n") if "tree" in how else content(where, "alone\n")
        for number in range(how.count("tag")):
            git("tag", "-a", "-m", "kept", f"tag-{number}", f"tag-{number - 1}" if number else one, cwd=where)
            git("tag", "-d", f"tag-{number - 1}", cwd=where, check=False)
        if "tag" not in how:
            git("update-ref", "refs/snap/1", one, cwd=where)
        if torn:
            blob = content(tree, "torn\n")
            git("update-ref", "refs/snap/torn", blob, cwd=tree)
            (tree / ".git/objects" / blob[:2] / blob[2:]).chmod(0o600)
            (tree / ".git/objects" / blob[:2] / blob[2:]).write_bytes(b"torn")
        saved = made.save("saved")
        again = made.save("again")
    assert one in objects(remote, saved)
    name = f"tag-{how.count('tag') - 1}" if "tag" in how else "refs/snap/1"
    told = [line for line in saved.beside if "no commit has" in line]
    assert len(told) == 1
    assert name in told[0]
    assert bool(saved.left_out) == torn
    assert all("torn" in line for line in saved.left_out)
    assert saved.amiss == saved.left_out, "nobody has to merge a snapshot"
    assert again.more == saved.more, "the same is made again as the same"


def test_names_of_what_the_remote_has_are_not_said(remote: Remote, tmp_path: Path) -> None:
    remote.land({"b.txt": "b\n"})
    for name in ("main~1^{tree}", "main:a.txt"):
        git("tag", f"of-{len(name)}", name, cwd=remote.clone)
    git("push", "-q", "origin", "--tags", cwd=remote.clone)
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        first = commit(tree, {"c.txt": "c\n"})
        commit(tree, {"d.txt": "d\n"})
        for name in (f"{first}^{{tree}}", "HEAD^{tree}", "HEAD:d.txt", "main~1^{tree}", f"{remote.first}:a.txt"):
            one = git("rev-parse", name.replace("main", "origin/main"), cwd=tree)
            git("update-ref", f"refs/own/{one[:9]}", one, cwd=tree)
        saved = made.save("saved")
    assert (saved.beside, saved.left_out, saved.amiss) == ((), (), ())


def test_a_tree_that_no_repository_should_take_is_kept_without_that(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        good, bad = content(tree, "good\n"), content(tree, "bad\n")
        inner = given(tree, f"100644 blob {bad}\tconfig\n", "mktree")
        top = given(tree, f"040000 tree {inner}\t.git\n100644 blob {good}\tgood.txt\n", "mktree")
        git("update-ref", "refs/snap/bad", top, cwd=tree)
        saved = made.save("saved")
    assert good in objects(remote, saved)
    assert bad not in objects(remote, saved)
    assert any("hasDotgit" in line and "refs/snap/bad" in line for line in saved.left_out), saved.left_out


def test_a_secret_in_a_snapshot_keeps_everything_off_the_remote(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        made._scanner = Scanner({"TOKEN": "correct-horse-battery"})
        tree = Path(made.open())
        git("update-ref", "refs/snap/1", content(tree, "x = correct-horse-battery\n"), cwd=tree)
        with pytest.raises(WorkspaceFailed, match="TOKEN"):
            made.save("saved")
    assert remote.refs() == {}


def test_what_is_too_large_of_snapshots_is_named(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer, "WITHIN_MAX", 1 << 20)
    monkeypatch.setattr(committing, "caged", beside)
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        inner = within(tree, "inner")
        git("update-ref", "refs/snap/1", content(inner, "x" * (2 << 20)), cwd=inner)
        saved = made.save("saved")
    assert saved.left_out == ("inner: what no commit has: refs/snap/1: they have 2 MiB, and 1 MiB are saved",)


PLACES = ("refs/snap", "refs/tags", "refs/stash.d", "packed", "AUTO_MERGE", "any/where", "rebase-merge/x", "logs/y")


@pytest.mark.parametrize("seed", range(8))
def test_whatever_object_a_name_of_git_leads_to_is_on_the_remote(remote: Remote, tmp_path: Path, seed: int) -> None:
    """References and files, in the repository, in one within it and in a worktree of it; trees, contents, commits and
    tags of all of these."""
    chance = random.Random(f"objects {seed}")
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        inner = within(tree, "inner")
        commit(inner, {"i.txt": "x\n"})
        git("worktree", "add", "-q", "-b", "aside", str(tmp_path / "aside"), cwd=tree)
        wanted = {}
        for number in range(6):
            where = chance.choice((tree, inner))
            one = chance.choice((snapshot, content))(where, f"{seed} {number}\n")
            place, name = chance.choice(PLACES), one
            if chance.random() < 0.3:
                git("tag", "-a", "-m", "tagged", f"tag-{number}", one, cwd=where)
                name = (where / f".git/refs/tags/tag-{number}").read_text().strip()
                git("tag", "-d", f"tag-{number}", cwd=where)
            own = chance.choice((where / ".git", tree / ".git/worktrees/aside" if where is tree else where / ".git"))
            own = where / ".git" if place.startswith(("refs", "packed")) else own
            if place == "packed":
                git("update-ref", f"refs/packed/{number}", name, cwd=where)
                git("pack-refs", "--all", cwd=where)
            else:
                path = own / f"{place}/{number}" if "/" in place else own / f"{place}.{number}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{name}\n")
            wanted[one] = f"{place} of {own.relative_to(tree)}"
        saved = made.save("saved")
    lost = {one: where for one, where in wanted.items() if one not in objects(remote, saved)}
    assert not lost, saved
    assert saved.left_out == ()


WHERE = ("home/wt", "home/deep/er [x]", "../beside", ".worktrees/ignored")


def place_of(tree: Path, where: str) -> Path:
    """Where a worktree lies: in the home, beside the tree, or in a folder of it that is ignored."""
    return tree.parent / where if where.startswith("home") else tree / where


def added(tree: Path, where: str, branch: str = "aside") -> Path:
    """A worktree of a workspace's own repository."""
    if where.startswith(".worktrees"):
        write(tree, {".gitignore": "/.worktrees\n"})
    git("worktree", "add", "-q", "-b", branch, str(place_of(tree, where)), cwd=tree)
    return place_of(tree, where)


@pytest.mark.turns
@pytest.mark.parametrize("kind", ["clone", "worktree"])
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("committed", [True, False])
def test_changed_files_of_a_worktree_are_beside_the_work(
    remote: Remote, tmp_path: Path, kind: str, where: str, committed: bool
) -> None:
    """`git worktree add ~/wt`: they were neither saved nor named."""
    with workspace(remote, tmp_path / "host", kind=kind) as made:
        tree = Path(made.open())
        folder = added(tree, where)
        head = commit(folder, {"c.txt": "c\n"}) if committed else remote.first
        write(folder, {"a.txt": "changed\n", "new/b.txt": "b\n", ".gitignore": "*.log\n", "noise.log": "x\n"})
        write(tree, {"w.txt": "work\n"})
        saved = made.save("saved")
        again = made.save("again")
    (told,) = (line for line in saved.beside if "changed files of a worktree" in line)
    assert saved.left_out == ()
    name = told.rpartition(": ")[2].partition(",")[0]
    files = [".gitignore", "a.txt", *(["c.txt"] if committed else []), "new/b.txt"]
    assert remote.files(name) == files
    assert remote.read(name, "a.txt") == "changed\n"
    assert remote.commit(f"{name}~1") == head
    assert "w.txt" in remote.files(saved.ref)
    assert "new/b.txt" not in remote.files(saved.ref)
    assert f"{told}, which is not in the work" in saved.amiss
    assert again.more == saved.more


@pytest.mark.turns
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("how", ["clean", "gone", "another in its place", "moved by hand", "locked"])
def test_a_worktree_without_changes_is_nothing_to_say(remote: Remote, tmp_path: Path, where: str, how: str) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        folder = added(tree, where)
        if how == "locked":
            git("worktree", "lock", str(folder), cwd=tree)
        elif how != "clean":
            folder.rename(tmp_path / "elsewhere")
        if how == "another in its place":
            write(within(folder.parent, folder.name), {"of another": "x\n"})
        write(tree, {"w.txt": "work\n"})
        saved = made.save("saved")
    assert (saved.beside, saved.left_out, saved.amiss) == ((), (), ())
    assert not any("another" in path for path in remote.files(saved.ref))


def test_what_is_no_worktree_of_the_workspace_is_not_published(remote: Remote, tmp_path: Path) -> None:
    """The home has the agent's settings and what it fetched; it may say of any folder that it is a worktree."""
    with workspace(remote, tmp_path / "host") as made:
        tree, home = Path(made.open()), Path(made.home)
        write(home, {".agent/credentials": "of the owner\n"})
        write(tmp_path, {"owner/key": "of the owner\n"})
        git("clone", "-q", str(remote.path), str(home / "other"))
        commit(home / "other", {"other.txt": "x\n"}, "mine")
        for number, place in enumerate((home, tmp_path / "owner", Path("/etc"))):
            own = tree / f".git/worktrees/w{number}"
            write(own, {"HEAD": f"{remote.first}\n", "gitdir": f"{place}/.git\n", "commondir": "../..\n"})
            if place != Path("/etc"):
                write(place, {".git": f"gitdir: {own}\n"})
        (home / "link").symlink_to(tmp_path / "owner")
        write(tree / ".git/worktrees/w3", {"HEAD": f"{remote.first}\n", "gitdir": f"{home}/link/.git\n"})
        saved = made.save("saved")
    assert remote.refs() == {}
    assert sorted(line.split(":")[0] for line in saved.beside) == [
        "the worktree w1",
        "the worktree w2",
        "the worktree w3",
    ]
    assert (saved.amiss, saved.left_out) == ((), ())


def test_repositories_submodules_and_what_is_staged_in_a_worktree_are_looked_at(
    remote: Remote, tmp_path: Path
) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        folder = added(tree, "home/wt")
        inner = within(folder, "inner")
        aside = commit(inner, {"i.txt": "i\n"}, "side")
        git("checkout", "-q", "--orphan", "empty", cwd=inner)
        sub = within(folder, "sub")
        linked = commit(sub, {"s.txt": "s\n"})
        git("add", "sub", cwd=folder)
        write(sub, {"s.txt": "changed in sub\n"})
        write(folder, {"f.txt": "staged\n", "ignored.log": "forced\n", ".gitignore": "*.log\n"})
        git("add", "f.txt", cwd=folder)
        git("add", "-f", "ignored.log", cwd=folder)
        write(folder, {"f.txt": "in the file\n"})
        os.mkfifo(folder / "pipe")
        saved = made.save("saved")
    assert saved.left_out == ()
    found = objects(remote, saved)
    assert {aside, linked} <= found, saved.beside
    texts = {git("cat-file", "-p", one, cwd=remote.path) for one in found}
    assert {"staged", "in the file", "forced", "changed in sub", "i"} <= texts


def test_a_worktree_that_git_cannot_read_is_named_and_all_else_is_saved(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        os.mkfifo(added(tree, "home/wt") / ".gitattributes")
        write(added(tree, "home/other", "other"), {"b.txt": "b\n"})
        saved = made.save("saved")
    why = "git cannot read it, and so changed files of this worktree are not saved"
    assert saved.left_out == (f"../home/wt/.gitattributes: {why}",)
    assert any("../home/other: changed files" in line for line in saved.beside)


def test_a_worktree_in_a_home_is_saved_from_where_the_workspace_was_moved(remote: Remote, tmp_path: Path) -> None:
    """As where its own attempt was killed, and the next one begins afresh."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(added(tree, "home/wt"), {"b.txt": "b\n"})
        folder = tree.parent
    folder.rename(f"{folder}.1")
    collect(made.places)
    assert remote.files(f"{remote.commit('refs/spool/edit/1.more')}^1") == ["a.txt", "b.txt"]


@pytest.mark.parametrize("seed", range(6))
def test_no_file_of_any_worktree_is_lost(remote: Remote, tmp_path: Path, seed: int) -> None:
    """Worktrees in a home, beside the tree, within it, ignored or not, one in another."""
    chance = random.Random(f"worktrees {seed}")
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {".gitignore": "/ignored\n"})
        wanted, folders = {}, [tree]
        for number in range(5):
            top = chance.choice((tree, tree / "ignored", Path(made.home), tree.parent, *folders))
            folder = top / f"wt-{number}"
            git("worktree", "add", "-q", *chance.choice((("-b", f"b{number}"), ("--detach",))), str(folder), cwd=tree)
            folders.append(folder)
        for number, folder in enumerate(folders):
            text = f"{seed} {number}\n"
            write(folder, {f"new-{number}.txt": text})
            wanted[content(tree, text)] = folder
            if chance.random() < 0.5:
                git("add", "--all", "--", f"new-{number}.txt", cwd=folder)
            if chance.random() < 0.3:
                git("commit", "-q", "--allow-empty", "-m", "x", cwd=folder)
        saved = made.save("saved")
    lost = {str(folder) for one, folder in wanted.items() if one not in objects(remote, saved)}
    assert not lost, saved
    assert saved.left_out == ()


def files_below(remote: Remote, saved: SavedWork) -> set[str]:
    """The paths of all files that lie beside the work."""
    rows = git("rev-list", "--objects", saved.more, f"^{saved.base}", cwd=remote.path).splitlines()
    return {row.partition(" ")[2] for row in rows}


@pytest.mark.parametrize("inner", ["", "inner", "home"])
def test_patches_that_are_still_to_be_applied_are_beside_the_work(remote: Remote, tmp_path: Path, inner: str) -> None:
    """`git am` keeps in .git what it has read, as from a pipe, and stops at the first conflict."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        where = within(tree, inner) if inner == "inner" else added(tree, "home/wt") if inner else tree
        commit(where, {"a.txt": "base\n"})
        git("checkout", "-q", "-b", "elsewhere", cwd=where)
        commit(where, {"a.txt": "other\n"})
        commit(where, {"a.txt": "and more\n"})
        patches = git("format-patch", "--stdout", "HEAD~2", cwd=where)
        git("reset", "-q", "--hard", "HEAD~2", cwd=where)
        commit(where, {"a.txt": "in the way\n"})
        git("branch", "-D", "elsewhere", cwd=where, check=False)
        subprocess.run(
            ["git", "am", "-q"], cwd=where, env={**os.environ, **NAMED}, input=patches.encode(), check=False
        )
        saved = made.save("saved")
    (told,) = (line for line in saved.beside if "files of the git directory" in line)
    assert any(path.endswith("rebase-apply/0002") for path in files_below(remote, saved))
    assert not any(told in line for line in saved.amiss)
    assert saved.left_out == ()


@pytest.mark.turns
@pytest.mark.parametrize("name", ["work.bundle", "any/deep/er.txt", "rr-cache/1/preimage", "lost-found/other/x"])
@pytest.mark.parametrize("where", [".git", "inner/.git", ".git/modules/gone", ".git/worktrees/aside"])
def test_files_that_only_a_git_directory_has_are_beside_the_work(
    remote: Remote, tmp_path: Path, name: str, where: str
) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        commit(within(tree, "inner"), {"i.txt": "x\n"})
        git("init", "-q", "--bare", str(tree / ".git/modules/gone"))
        git("worktree", "add", "-q", "-b", "aside", str(tmp_path / "aside"), cwd=tree)
        write(tree / where, {name: "only here\n"})
        (tree / where / "link").symlink_to("/etc/passwd")
        os.mkfifo(tree / where / "pipe")
        saved = made.save("saved")
        again = made.save("again")
    (told,) = (line for line in saved.beside if "files of the git directory" in line)
    assert name in told
    assert any(path.endswith(name) for path in files_below(remote, saved))
    assert (saved.left_out, saved.amiss, again.more) == ((), (), saved.more)


def test_what_git_writes_in_every_repository_is_nothing_to_say(remote: Remote, tmp_path: Path) -> None:
    """Settings, hooks, messages, and a file in which some program keeps the name of a commit."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("init", "-q", cwd=tree)  # with the template of this machine
        commit(within(tree, "inner"), {"i.txt": "x\n"})
        git("worktree", "add", "-q", "--lock", "--reason", "mine", str(tmp_path / "aside"), cwd=tree)
        commit(tree, {"b.txt": "two\n"})
        git("tag", "-a", "-m", "x", "x", cwd=tree)
        git("fetch", "-q", "origin", cwd=tree, check=False)
        git("merge", "-q", "--no-ff", "--no-commit", "HEAD", cwd=tree, check=False)
        git("update-index", "--split-index", cwd=tree)
        git("sparse-checkout", "set", "--no-cone", "/*", cwd=tree)
        git("gc", "-q", cwd=tree)
        write(tree / ".git", {"program": f"{remote.first}\n", "index.lock": "x", "gc.log": "warning: x", "none": ""})
        saved = made.save("saved")
    assert not any("files of the git directory" in line for line in saved.beside), saved.beside
    assert saved.left_out == ()


def test_files_of_a_git_directory_are_kept_up_to_a_bound(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer, "WITHIN_MAX", 3 << 20)
    monkeypatch.setattr(committing, "caged", beside)
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(
            tree / ".git",
            {"a.bundle": "a" * (2 << 20), "b.bundle": "b" * (2 << 20), "new\nline": "x", "d/git~1": "x"},
        )
        saved = made.save("saved")
        assert saved.left_out[:2] == (
            ".git/b.bundle: it has 2 MiB, and 3 MiB of such files are saved",
            ".git/new\\nline: it cannot be read",
        )
        assert any("d/git~1: its name means" in line for line in saved.left_out), saved.left_out
        assert "a.bundle" in files_below(remote, saved)
        (tree / ".git/many").mkdir()
        for number in range(agent_commits.TRACES_MAX):
            (tree / f".git/many/{number:05}").touch()
        told = [line for line in made.save("again").left_out if ".git/many/0" in line and "10,000 files" in line]
    assert len(told) == 1


def test_a_submodule_that_only_an_index_names_is_beside_the_work(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        here = git("commit-tree", "HEAD^{tree}", "-m", "in no log", cwd=tree)
        gone = "1" * 40
        for name, one in (("here", here), ("gone", gone)):
            git("update-index", "--add", "--cacheinfo", f"160000,{one},{name}", cwd=tree)
        sub = within(tree, "sub")
        linked = commit(sub, {"s.txt": "s\n"})
        git("add", "sub", cwd=tree)
        saved = made.save("saved")
    assert f"+Subproject commit {gone}\n" in git("log", "--all", "-m", "-p", "--format=", cwd=remote.path)
    assert {here, linked} <= objects(remote, saved)
    assert saved.left_out == ()
    assert sum("only the index names" in line for line in saved.beside) == 1


@pytest.mark.parametrize("inner", ["", "inner"])
@pytest.mark.parametrize("torn", [False, True])
def test_commits_that_were_only_fetched_are_beside_the_work(
    remote: Remote, tmp_path: Path, inner: str, torn: bool
) -> None:
    """`git fetch /tmp/clone`: nothing but FETCH_HEAD names them, and the clone is gone with its sandbox."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        where = within(tree, inner) if inner else tree
        git("clone", "-q", str(where), str(tmp_path / "clone"))
        head = commit(tmp_path / "clone", {"c.txt": "c\n"})
        git("fetch", "-q", str(tmp_path / "clone"), cwd=where)
        if torn:
            tear(tree)
        saved = made.save("saved")
    assert head in objects(remote, saved)
    assert any("stands only in .git/FETCH_HEAD" in line for line in saved.beside)
    assert all("torn" in line for line in saved.amiss)


def tear(tree: Path) -> None:
    """Have a reference name an object that is torn: then git refuses, and what it refuses is looked for."""
    name = content(tree, "torn\n")
    git("update-ref", "refs/snap/torn", name, cwd=tree)
    path = tree / ".git/objects" / name[:2] / name[2:]
    path.chmod(0o600)
    path.write_bytes(b"torn")


@pytest.mark.parametrize("where", ["", "inner", "home/wt"])
@pytest.mark.parametrize("how", ["cherry-pick", "rebase"])
@pytest.mark.parametrize("torn", [False, True])
def test_commits_that_are_still_to_be_picked_are_beside_the_work(
    remote: Remote, tmp_path: Path, where: str, how: str, torn: bool
) -> None:
    """`git cherry-pick A..B` that stops at a conflict names the others by the beginnings of their names."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        folder = within(tree, where) if where == "inner" else added(tree, where) if where else tree
        base = commit(folder, {"a.txt": "base\n"})
        git("clone", "-q", str(folder), str(tmp_path / "clone"))
        commit(tmp_path / "clone", {"a.txt": "other\n"})
        picked = [commit(tmp_path / "clone", {f"{number}.txt": "x\n"}) for number in range(3)]
        git("fetch", "-q", str(tmp_path / "clone"), cwd=folder)
        commit(folder, {"a.txt": "mine\n"})
        own = Path(git("rev-parse", "--absolute-git-dir", cwd=folder))
        if how == "cherry-pick":
            git("cherry-pick", f"{base}..{picked[-1]}", cwd=folder, check=False)
            assert picked[0] not in (own / "sequencer/todo").read_text()
        else:
            (own / "rebase-merge").mkdir()
            rows = "".join(f"pick {one[:7]} # said\n" for one in picked[1:])
            (own / "rebase-merge/git-rebase-todo").write_text(f"{rows}fixup -C {picked[0][:9]} # x\nexec 1234567\n")
        for file in (own / "FETCH_HEAD", own / "CHERRY_PICK_HEAD"):
            file.unlink(missing_ok=True)
        if torn:
            tear(tree)
        saved = made.save("saved")
    todo = "rebase-merge" if how == "rebase" else "sequencer"
    assert set(picked) <= objects(remote, saved), saved
    assert any(f"{todo}/" in line for line in saved.beside), saved.beside
    assert all("torn" in line for line in saved.left_out)


def test_a_beginning_of_several_names_is_named(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        top = git("rev-parse", "HEAD^{tree}", cwd=tree)
        seen, name, text = dict[str, str](), "", ""
        for number in range(1 << 18):
            text = f"tree {top}\nauthor a <a> {number} +0000\ncommitter a <a> {number} +0000\n\nx\n"
            name = hashlib.sha1(f"commit {len(text)}\0{text}".encode()).hexdigest()
            if seen.setdefault(name[:7], text) != text:
                break
        for one in (text, seen[name[:7]]):
            given(tree, one, "hash-object", "-t", "commit", "-w", "--stdin")
        write(tree / ".git/sequencer", {"todo": f"pick {name[:7]} x\npick 0000000 x\n"})
        saved = made.save("saved")
    why = f"more than one commit has a name that begins with {name[:7]}"
    assert saved.left_out == (f".git/sequencer/todo: {why}",)


IGNORED = ".worktrees/ignored"
OUTSIDE = ("home/wt", "home/deep/er [x]", IGNORED)


@pytest.mark.parametrize("kind", ["clone", "worktree"])
@pytest.mark.parametrize("where", OUTSIDE)
@pytest.mark.parametrize("owner", ["", "inner"])
def test_a_worktree_that_was_moved_by_hand_is_beside_the_work(
    remote: Remote, tmp_path: Path, kind: str, where: str, owner: str
) -> None:
    """`mv ~/wt ~/moved`: its repository has the old place, and only its own `.git` says what it is."""
    with workspace(remote, tmp_path / "host", kind=kind) as made:
        tree = Path(made.open())
        folder = added_to(tree, owner, "home/was" if where.startswith("home") else ".worktrees/was")
        place_of(tree, where).parent.mkdir(parents=True, exist_ok=True)
        folder.rename(place_of(tree, where))
        write(place_of(tree, where), {"staged.txt": "staged\n"})
        git("add", "staged.txt", cwd=place_of(tree, where))
        write(place_of(tree, where), {"new.txt": "new\n", "staged.txt": "other\n"})
        saved = made.save("saved")
    assert {"new", "staged", "other"} <= texts(remote, saved), saved
    assert saved.left_out == ()


def added_to(tree: Path, owner: str, where: str, branch: str = "aside") -> Path:
    """A worktree of a repository within, or of the workspace's own."""
    if not owner:
        return added(tree, where, branch)
    if not (tree / owner / ".git").exists():
        commit(within(tree, owner), {"i.txt": "i\n"})
    if where.startswith(".worktrees"):
        write(tree, {".gitignore": "/.worktrees\n"})
    git("worktree", "add", "-q", "-b", branch, str(place_of(tree, where)), cwd=tree / owner)
    return place_of(tree, where)


def texts(remote: Remote, saved: SavedWork) -> set[str]:
    return {git("cat-file", "-p", one, cwd=remote.path) for one in objects(remote, saved)}


OWNERS = ("inner", ".git/modules/gone", "home/wt/inner", "submodule")


@pytest.mark.parametrize("where", ["home/other", IGNORED, "in/the tree", "away"])
@pytest.mark.parametrize("owner", OWNERS)
def test_changed_files_of_a_worktree_of_another_repository_are_saved(
    remote: Remote, tmp_path: Path, where: str, owner: str
) -> None:
    """Of a repository within, of one that only the git directory has, of one in a worktree, and of a submodule."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        top = place_of(tree, owner)
        if owner.startswith("home"):
            added(tree, "home/wt")
        first = commit(within(top.parent, top.name), {"i.txt": "i\n"})
        if owner == "submodule":
            git("add", "submodule", cwd=tree)
        folder = tmp_path / "away" if where == "away" else place_of(tree, where)
        if where.startswith(".worktrees"):
            write(tree, {".gitignore": "/.worktrees\n"})
        git("worktree", "add", "-q", "-b", "aside", str(folder), cwd=top)
        write(folder, {"staged.txt": "staged\n"})
        git("add", "staged.txt", cwd=folder)
        write(folder, {"new.txt": "new\n", "staged.txt": "other\n"})
        saved = made.save("saved")
        again = made.save("again")
    wanted = {"staged"} if where == "away" else {"staged", "new", "other"}
    assert wanted <= texts(remote, saved), saved
    assert first in objects(remote, saved)
    assert saved.left_out == ()
    assert again.more == saved.more
    assert any(f"its folder {folder} is out of reach" in line for line in saved.beside) == (where == "away")


def test_worktrees_of_several_repositories_in_each_other_are_saved(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        outer = added_to(tree, "inner", "home/outer", "outer")
        git("worktree", "add", "-q", "-b", "mine", str(outer / "mine"), cwd=tree)
        deep = within(outer, "deep")
        commit(deep, {"d.txt": "d\n"})
        git("worktree", "add", "-q", "-b", "deeper", str(outer / "mine/deeper"), cwd=deep)
        git("worktree", "add", "-q", "-b", "copy", str(tree.parent / "home/copied"), cwd=tree)
        shutil.copytree(tree.parent / "home/copied", tree.parent / "home/copy")
        folders = (outer, outer / "mine", deep, outer / "mine/deeper", *(tree.parent.glob("home/cop*")))
        for number, folder in enumerate(folders):
            write(folder, {f"new-{number}.txt": f"new {number}\n"})
        saved = made.save("saved")
    assert {f"new {number}" for number in range(6)} <= texts(remote, saved), saved
    assert saved.left_out == ()


@pytest.mark.parametrize("how", ["gone", "a pipe", "a link", "garbage", "pruned"])
@pytest.mark.parametrize("where", OUTSIDE)
@pytest.mark.parametrize("owner", ["", "inner"])
def test_a_worktree_that_is_cut_off_from_its_repository_is_named(
    remote: Remote, tmp_path: Path, how: str, where: str, owner: str
) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        folder = added_to(tree, owner, where)
        if how == "pruned":
            shutil.rmtree(tree / owner / ".git/worktrees")
        else:
            (folder / ".git").unlink()
        if how == "a pipe":
            os.mkfifo(folder / ".git")
        elif how == "a link":
            (folder / ".git").symlink_to(tree / ".git")
        elif how == "garbage":
            (folder / ".git").write_text("gitdir: /nowhere\n")
        saved = made.save("saved")
    why = "it and its repository do not name each other any more, and so its files are not saved"
    assert saved.left_out == (f"{os.path.relpath(folder, tree)}: a worktree: {why}",)


def test_a_folder_that_is_no_worktree_any_more_is_nothing_to_say(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        for name in ("empty", "another", "in the tree"):
            folder = added(tree, "in the tree" if name == "in the tree" else f"home/{name}", name.replace(" ", "-"))
            (folder / ".git").unlink()
            if name != "in the tree":
                shutil.rmtree(folder)
                folder.mkdir()
        (tree.parent / "home/another").rmdir()
        within(tree.parent / "home", "another")
        saved = made.save("saved")
    assert "in the tree/a.txt" in remote.files(saved.ref)
    assert (saved.beside, saved.left_out) == ((), ())


@pytest.mark.parametrize("owner", ["", "inner"])
def test_a_worktree_that_nobody_else_can_see_is_named(remote: Remote, tmp_path: Path, owner: str) -> None:
    """As in /tmp, which is gone with its sandbox. Whether it had changed files, nobody can know."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        if owner:
            commit(within(tree, owner), {"i.txt": "i\n"})
        git("worktree", "add", "-q", "-b", "aside", str(tmp_path / "gone"), cwd=tree / owner)
        shutil.rmtree(tmp_path / "gone")
        write(tree, {"w.txt": "work\n"})
        saved = made.save("saved")
    why = "is out of reach, and so only what was committed or staged there is saved"
    said = f"{owner}: " * bool(owner) + f"the worktree gone: its folder {tmp_path}/gone {why}"
    assert said in saved.beside
    assert (saved.left_out, saved.amiss) == ((), ())
