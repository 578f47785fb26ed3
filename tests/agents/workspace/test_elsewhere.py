"""What only files of git name, or worktrees elsewhere hold: saved up to a bound, accepted or named, and looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.agents.workspace import committing
from tests.agents.workspace.repos import Remote, git, workspace, write
from tests.agents.workspace.test_hostile import commit, within
from tests.agents.workspace.test_uncommitted import OWNERS, added, place_of


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


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
