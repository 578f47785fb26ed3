"""A mirror whose machine lost power: single objects are empty or cut short, and references name them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spoold.agents.workspace import mirror
from spoold.agents.workspace.git import Git, WorkspaceFailed
from tests.agents.workspace.repos import Remote, git, pushed


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    """A remote, and the mirror of a machine that has worked on it."""
    made = Remote(tmp_path, {"a.txt": "one\n"})
    pushed(made, tmp_path, "one", {"b.txt": "one\n"})
    made.land({"c.txt": "of a person\n"})
    pushed(made, tmp_path, "one", {"d.txt": "two\n"}, 2)
    return made


def mirror_of(top: Path) -> Path:
    """The git directory of the mirror."""
    (found,) = (top / "mirrors").glob("*.git")
    return found


def loose(top: Path) -> list[Path]:
    """The single objects of the mirror."""
    return sorted(path for path in (mirror_of(top) / "objects").glob("??/*") if len(path.parent.name) == 2)


def restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "this_start", lambda: "another start")


def cut(path: Path, size: int) -> None:
    path.chmod(0o600)
    os.truncate(path, size)


@pytest.mark.parametrize("size", [0, 12])
@pytest.mark.parametrize("every", [1, 3])
def test_a_mirror_is_whole_again_after_a_power_cut(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, every: int
) -> None:
    assert len(loose(tmp_path)) > 3
    for path in loose(tmp_path)[::every]:
        cut(path, size)
    restarted(monkeypatch)
    assert pushed(remote, tmp_path, "three", {"e.txt": "three\n"}) == "refs/spool/three/1"
    assert pushed(remote, tmp_path, "one", {"f.txt": "more\n"}, 3) == "refs/spool/one/3"
    assert remote.files("refs/spool/one/3") == ["a.txt", "b.txt", "d.txt", "f.txt"]
    git("fsck", "--connectivity-only", cwd=mirror_of(tmp_path))


def test_references_that_were_torn_are_fetched_again(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = [path for path in (mirror_of(tmp_path) / "refs").rglob("*") if path.is_file()]
    assert len(torn) > 1
    cut(torn[0], 0)
    for path in torn[1:]:
        path.write_bytes(bytes(41))
    restarted(monkeypatch)
    assert pushed(remote, tmp_path, "one", {"f.txt": "more\n"}, 3) == "refs/spool/one/3"
    assert remote.files("refs/spool/one/3") == ["a.txt", "b.txt", "d.txt", "f.txt"]


@pytest.mark.parametrize("gone", [True, False])
def test_a_mirror_whose_head_was_torn_is_a_repository_again(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    head = mirror_of(tmp_path) / "HEAD"
    cut(head, 0)
    if gone:
        head.unlink()
    restarted(monkeypatch)
    assert pushed(remote, tmp_path, "one", {"f.txt": "more\n"}, 3) == "refs/spool/one/3"


def test_what_was_lost_is_fetched_also_if_the_remote_is_away_at_first(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in loose(tmp_path):
        cut(path, 0)
    restarted(monkeypatch)
    away = remote.path.rename(tmp_path / "away.git")
    with pytest.raises(WorkspaceFailed):
        pushed(remote, tmp_path, "three", {"e.txt": "three\n"})
    away.rename(remote.path)
    assert pushed(remote, tmp_path, "three", {"e.txt": "three\n"}) == "refs/spool/three/1"


def test_objects_are_looked_at_once_after_each_start(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    real = mirror.torn

    def look(directory: str) -> list[str]:
        looks.append(directory)
        return real(directory)

    monkeypatch.setattr(mirror, "torn", look)
    pushed(remote, tmp_path, "three", {"e.txt": "three\n"})
    assert not looks
    restarted(monkeypatch)
    pushed(remote, tmp_path, "four", {"e.txt": "four\n"})
    pushed(remote, tmp_path, "five", {"e.txt": "five\n"})
    assert looks == [str(mirror_of(tmp_path))]


def test_git_waits_until_the_objects_of_a_mirror_are_on_the_disk(remote: Remote, tmp_path: Path) -> None:
    assert Git(str(mirror_of(tmp_path)))("config", "core.fsync").out.strip() == "committed,reference"


def test_a_reference_in_capital_letters_stays(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git reads it, and an agent in a worktree may have written it: it was taken for a torn one, and removed."""
    where = mirror_of(tmp_path)
    name = git("for-each-ref", "--count=1", "--format=%(objectname)", cwd=where)
    (where / "refs/heads").mkdir(exist_ok=True)
    (where / "refs/heads/mine").write_text(f"{name.upper()}\n")
    packed = where / "packed-refs"
    packed.write_text(f"{packed.read_text() if packed.exists() else ''}{name.upper()} refs/heads/packed\n")
    assert not mirror.forget_names_of_nothing(Git(str(where)))
    restarted(monkeypatch)
    pushed(remote, tmp_path, "one", {"f.txt": "more\n"}, 3)
    assert git("rev-parse", "refs/heads/mine", "refs/heads/packed", cwd=where).split() == [name] * 2
