"""One thing that git refuses keeps nothing else off the remote, and is named; the time stays bounded."""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from spoold.agents.workspace import committing, packer, sanitize
from spoold.agents.workspace.attempt_workspace import collect
from spoold.agents.workspace.git import WorkspaceFailed
from spoold.pictures.wording import visible
from tests.agents.workspace.kills import beside
from tests.agents.workspace.refused import ALONE, FILES, HISTORY, Made
from tests.agents.workspace.repos import Remote, git, workspace, write

# In so many workspaces all kinds come once, at places that the seed says.
GROUPS = 6
SEEDS = (1, 2)


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    made = Remote(tmp_path)
    git("config", "receive.fsckObjects", "true", cwd=made.path)
    return made


def group_of(kinds: Sequence[str], seed: int, number: int) -> list[str]:
    found = sorted(kinds)
    random.Random(seed).shuffle(found)
    return found[number::GROUPS]


def lay(made: Made, kinds: Sequence[str], files: Sequence[str]) -> None:
    """Leave all of these, at places that chance says."""
    chance, tree, first = made.chance, made.folder, git("rev-parse", "HEAD", cwd=made.folder)
    head, stash = first, first
    for number, kind in enumerate(kinds):
        place = chance.choice(("head", "head", "stash") * (kind not in ALONE) + ("branch", "tag", "kept"))
        if place == "head":
            head = HISTORY[kind](made, head)
        elif place == "stash":
            stash = HISTORY[kind](made, stash)
            write(tree, {".git/refs/stash": f"{stash}\n"})
        else:
            one = HISTORY[kind](made, first)
            if place == "tag" and chance.random() < 0.5:
                one = made.write("tag", b"object %s\ntype commit\ntag t\n\nmine\n" % one.encode())
            folder = {"tag": "tags", "branch": "heads"}.get(place, place)
            write(tree, {f".git/refs/{folder}/place-{number}": f"{one}\n"})
    write(tree, {".git/HEAD": f"{head}\n"})
    for number, kind in enumerate(files):
        FILES[kind](made, f"files-{number}")
    made.file("plain", made.text())


def broken(made: Made, remote: Remote, told: Sequence[str]) -> Iterator[str]:
    """Yield what is neither on the remote nor named."""
    there = set(git("rev-list", "--objects", "--no-object-names", "--all", cwd=remote.path).split())
    yield from (f"lost: {one}" for one in sorted(made.good - there))
    text = "\n".join(told)
    yield from (f"not named: {words}" for words in made.named if not any(visible(word) in text for word in words))


@pytest.mark.turns
@pytest.mark.parametrize("number", range(GROUPS))
@pytest.mark.parametrize("seed", SEEDS)
def test_all_else_is_on_the_remote(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, number: int
) -> None:
    monkeypatch.setattr(packer, "TOLD_MAX", 1000)
    monkeypatch.setattr(committing, "caged", beside)
    with workspace(remote, tmp_path / "host") as made:
        left = Made(Path(made.open()), random.Random(f"{seed} {number}"))
        lay(left, group_of(list(HISTORY), seed, number), group_of(list(FILES), seed, number))
        saved = made.save("saved")
        again = made.save("again")
        assert list(broken(left, remote, saved.left_out)) == []
        assert set(saved.left_out) <= set(saved.amiss), "what is not saved as it was is not accepted"
        assert (again.commit, again.more) == (saved.commit, saved.more)
        left.file("later", left.text())
        assert list(broken(left, remote, made.save("later").left_out)) == []
        places = made.places
    judged = collect(places, keep_s=0)
    assert [one.removed for one in judged] == [False], "it is the only copy"
    assert git("fsck", "--strict", "--no-dangling", cwd=remote.path) == ""


@pytest.mark.parametrize("kind", sorted(HISTORY))
def test_git_refuses_it(tmp_path: Path, kind: str) -> None:
    """That none of the kinds is one which git takes: then it would show nothing."""
    git("init", "-q", str(tmp_path))
    made = Made(tmp_path, random.Random(1))
    first = made.commit(made.tree([]), ())
    git("update-ref", "HEAD", first, cwd=tmp_path)
    write(tmp_path, {".git/refs/heads/bad": f"{HISTORY[kind](made, first)}\n"})
    done = subprocess.run(["git", "fsck", "--strict"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode != 0


def test_a_file_of_the_base_that_git_refuses_is_no_fault_of_the_agent(tmp_path: Path) -> None:
    """The remote has it: nothing could be saved in such a repository."""
    odd = '[submodule "a"]\n\tpath = a\n\tupdate = !cmd\n'
    remote = Remote(tmp_path, {".gitmodules": odd, "a.txt": "one\n"})
    with workspace(remote, tmp_path / "a host, with blanks") as made:
        write(made.open(), {"b.txt": "two\n"})
        saved = made.save("saved")
        assert (saved.left_out, saved.amiss) == ((), ())
        write(made.directory, {"sub/.gitmodules": odd + "# mine\n", "c.txt": "three\n"})
        again = made.save("again")
    assert remote.files(saved.commit) == [".gitmodules", "a.txt", "b.txt"]
    assert [line.partition(":")[0] for line in again.left_out] == ["sub/.gitmodules"]
    assert remote.files(again.ref) == [".gitmodules", "a.txt", "b.txt", "c.txt"]


def test_a_thousand_bad_paths_take_no_longer_than_a_few(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        left = Made(Path(made.open()), random.Random(1))
        head = git("rev-parse", "HEAD", cwd=left.folder)
        for number in range(1000):
            left.file(f"many/{number}/.g\u200cit", left.text(), good=False)
            left.file(f"many/{number}/good", left.text())
            if number % 10 == 0:
                head = HISTORY["hasDotgit"](left, head)
        write(left.folder, {".git/HEAD": f"{head}\n"})
        begun = time.monotonic()
        saved = made.save("saved")
        assert time.monotonic() - begun < 60, "a command for each would take minutes"
    left.named.clear()
    assert list(broken(left, remote, [])) == []
    assert len(saved.left_out) == 21
    assert re.fullmatch(r"and \d+ more", saved.left_out[-1])


@pytest.mark.parametrize("files_s", [60.0, -1.0])
def test_where_there_is_no_time_to_look_the_files_are_not_taken_for_removed(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_s: float
) -> None:
    """The work had no files then, and was accepted."""
    monkeypatch.setattr(sanitize, "LOOK_S", -1.0)
    monkeypatch.setattr(sanitize, "FILES_S", files_s)
    monkeypatch.setattr(committing, "caged", beside)
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"b.txt": "two\n", "d/.g\u200cit": "x"})
        if files_s < 0:
            with pytest.raises(WorkspaceFailed):
                made.save("saved")
        else:
            assert remote.files(made.save("saved").ref) == ["a.txt", "b.txt"]
