"""Submodules: what an agent made in one is on the remote or told, and nobody gets a work that cannot be cloned."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.agents.workspace.attempt_workspace import addresses
from spoold.agents.workspace.git import Git, RemoteAway, WorkspaceFailed
from tests.agents.workspace.repos import Remote, git, workspace, write


@pytest.fixture
def library(tmp_path: Path) -> Remote:
    (tmp_path / "library").mkdir()
    return Remote(tmp_path / "library", {"lib.txt": "lib\n"})


@pytest.fixture
def remote(tmp_path: Path, library: Remote) -> Remote:
    made = Remote(tmp_path)
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.path), "lib", cwd=made.clone)
    made.land({"b.txt": "two\n"})
    return made


def commit(tree: Path, files: dict[str, str]) -> str:
    write(tree, files)
    git("add", "-A", cwd=tree)
    git("commit", "-q", "-m", "mine", cwd=tree)
    return git("rev-parse", "HEAD", cwd=tree)


def test_its_files_are_there_where_they_are_asked_for(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host", submodules="fetch") as made:
        tree = Path(made.open())
        assert (tree / "lib/lib.txt").read_text() == "lib\n"
        assert len(made.borrowed) == 2
        write(tree, {"c.txt": "x\n"})
        saved = made.save("saved")
    assert (saved.amiss, saved.more, saved.changed_files) == ((), "", ("c.txt",))
    with workspace(remote, tmp_path / "host", "other") as made:
        assert list((Path(made.open()) / "lib").iterdir()) == []
        assert made.save("nothing").no_change


def test_changed_files_and_commits_in_one_are_beside_the_work_and_amiss(remote: Remote, tmp_path: Path) -> None:
    """G7: a reference to a commit that nobody has was pushed, and gc removed the only copy."""
    with workspace(remote, tmp_path / "host", submodules="fetch") as made:
        tree = Path(made.open())
        write(tree, {"lib/lib.txt": "changed\n", "lib/new.txt": "new\n"})
        first = made.save("changed")
        assert first.no_change
        assert [line.partition(":")[0] for line in first.amiss] == ["lib"]
        files = git("show", f"{first.more}^:new.txt", cwd=remote.path)
        own = commit(tree / "lib", {"lib.txt": "mine\n"})
        second = made.save("committed")
    assert files == "new"
    assert git("rev-parse", f"{second.commit}:lib", cwd=remote.path) == own
    assert [line for line in second.amiss if "is not in" in line and "push it there" in line]
    assert git("cat-file", "-t", own, cwd=remote.path) == "commit"


def test_files_in_the_empty_folder_of_one_are_beside_the_work(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"lib/new.txt": "new\n", "c.txt": "x\n"})
        saved = made.save("saved")
    assert saved.amiss[0].startswith("lib: changed files of a submodule: ")
    assert git("show", f"{saved.more}^:new.txt", cwd=remote.path) == "new"
    assert saved.changed_files == ("c.txt",)


def test_one_whose_repository_cannot_be_read_has_its_files_saved(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host", submodules="fetch") as made:
        tree = Path(made.open())
        (tree / "lib/.git/objects/info/alternates").write_text("/elsewhere\n")
        inner = tree / "lib/inner"
        inner.mkdir()
        git("init", "-q", cwd=inner)
        write(tree, {"lib/new.txt": "new\n", "lib/inner/x.txt": "x\n"})
        saved = made.save("saved")
    assert [line.partition(":")[0] for line in saved.amiss] == ["lib", "lib"]
    for name in ("lib.txt", "new.txt", "inner/x.txt"):
        assert git("show", f"{saved.more}^:{name}", cwd=remote.path) is not None


def test_a_commit_that_its_remote_has_is_well(remote: Remote, library: Remote, tmp_path: Path) -> None:
    newer = library.land({"lib.txt": "newer\n"})
    with workspace(remote, tmp_path / "host", submodules="fetch") as made:
        tree = Path(made.open())
        git("fetch", "-q", cwd=tree / "lib")
        git("checkout", "-q", newer, cwd=tree / "lib")
        saved = made.save("newer")
    assert (saved.amiss, saved.changed_files) == ((), ("lib",))


def test_one_that_the_base_does_not_have_is_amiss_and_its_address_is_not_asked(
    remote: Remote, library: Remote, tmp_path: Path
) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.path), "more")
        git(*words, cwd=tree)
        git("config", "-f", ".gitmodules", "submodule.lib.url", "http://127.0.0.1:1/x.git", cwd=tree)
        saved = made.save("added")
    assert saved.amiss == (
        f"more: a submodule that the base does not have, so nobody knows that {library.first[:12]} exists",
    )


@pytest.mark.parametrize("branch", ["", "spool/edit"])
def test_addresses_of_an_agent_are_not_asked_where_another_begins_with_its_work(
    remote: Remote, library: Remote, tmp_path: Path, branch: str
) -> None:
    """An agent's `.gitmodules` and `.lfsconfig` were asked, as soon as its work was the base of another task."""
    (tmp_path / "private").mkdir()
    private = Remote(tmp_path / "private", {"private.txt": "private\n"})
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("config", "-f", ".gitmodules", "submodule.lib.url", str(private.path), cwd=tree)
        write(tree, {".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:1/x\n", ".gitattributes": "*.bin filter=lfs\n"})
        git("update-index", "--add", "--cacheinfo", f"160000,{private.first},lib", cwd=tree)
        git("add", ".gitmodules", cwd=tree)
        git("commit", "-q", "-m", "mine", cwd=tree)
        saved = made.save("saved")
        if branch:
            made.push_branch(branch)
    with (
        workspace(remote, tmp_path / "host", "next", base=branch or saved.ref, submodules="fetch") as made,
        pytest.raises(WorkspaceFailed, match=f"{library.path} has no branch, tag or commit {private.first}"),
    ):
        made.open()


def test_a_remote_of_one_that_cannot_be_asked_is_said(remote: Remote, library: Remote, tmp_path: Path) -> None:
    newer = library.land({"lib.txt": "newer\n"})
    with workspace(remote, tmp_path / "host", submodules="fetch") as made:
        tree = Path(made.open())
        git("fetch", "-q", cwd=tree / "lib")
        git("checkout", "-q", newer, cwd=tree / "lib")
        library.path.rename(f"{library.path}.away")
        saved = made.save("newer")
    assert "it cannot be asked" in saved.amiss[0]


def test_a_remote_of_one_that_is_away_blames_no_work(remote: Remote, tmp_path: Path) -> None:
    """For a minute without its server an attempt was not accepted, and the agent was paid again."""
    git("config", "-f", ".gitmodules", "submodule.lib.url", "http://127.0.0.1:1/lib.git", cwd=remote.clone)
    remote.land({"c.txt": "x\n"})
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("update-index", "--cacheinfo", f"160000,{'1' * 40},lib", cwd=tree)
        git("commit", "-q", "-m", "mine", cwd=tree)
        with pytest.raises(RemoteAway, match=r"the repository http://127\.0\.0\.1:1/lib\.git of a submodule"):
            made.save("saved")
        assert list(remote.refs()) == ["refs/spool/edit/1"], "the work itself is safe"
        assert not made._record.saved


def test_a_commit_that_its_remote_lacks_is_said_before_the_agent(
    remote: Remote, library: Remote, tmp_path: Path
) -> None:
    commit(remote.clone / "lib", {"lib.txt": "only here\n"})
    remote.land({"c.txt": "x\n"})
    with (
        workspace(remote, tmp_path / "host", submodules="fetch") as made,
        pytest.raises(WorkspaceFailed, match="has no branch, tag or commit"),
    ):
        made.open()


@pytest.mark.parametrize(
    ("repo", "url", "found"),
    [
        ("/srv/git/app.git", "../lib.git", "/srv/git/lib.git"),
        ("https://example.org/team/app.git", "../lib.git", "https://example.org/team/lib.git"),
        ("ssh://git@example.org/team/app.git", "../../other/lib.git", "ssh://git@example.org/other/lib.git"),
        ("git@example.org:team/app.git", "../lib.git", "git@example.org:team/lib.git"),
        ("/srv/git/app.git", "https://example.org/lib.git", "https://example.org/lib.git"),
        ("/srv/git/app.git", "ext::sh -c x", None),
        ("/srv/git/app.git", "--upload-pack=x", None),
    ],
)
def test_addresses_are_those_of_the_base(tmp_path: Path, repo: str, url: str, found: str | None) -> None:
    git("init", "-q", str(tmp_path))
    (tmp_path / ".gitmodules").write_text(f'[submodule "lib"]\n\tpath = lib\n\turl = {url}\n[other "x"]\n\ty = z\n')
    base = commit(tmp_path, {"a.txt": "x\n"})
    known = addresses(Git(f"{tmp_path}/.git"), repo, base)
    assert known == ({} if found is None else {"lib": found})
    assert addresses(Git(f"{tmp_path}/.git"), repo, f"{base}:none") == {}


def test_only_a_clone_has_them(tmp_path: Path) -> None:
    from spoold.agents.workspace.repository_config import WorkspaceConfig

    with pytest.raises(ValueError, match="fetches no submodules"):
        WorkspaceConfig.model_validate({"repo": "/r", "kind": "worktree", "submodules": "fetch"})
