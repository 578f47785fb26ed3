"""What an agent left in no commit and in no file of its workspace: it is beside the work, or it is named."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from spoold.agents.workspace import committing, packer
from spoold.agents.workspace.attempt_workspace import SavedWork
from spoold.agents.workspace.git import WorkspaceFailed
from spoold.rules.redaction.masking import Scanner
from tests.agents.workspace.kills import beside
from tests.agents.workspace.repos import Remote, git, workspace, write
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
