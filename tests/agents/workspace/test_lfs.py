"""Files of git-lfs: their content is on the server before the reference is, and in all checkouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.agents.merge.candidates import Candidate
from spoold.agents.workspace import committing, lfs
from spoold.agents.workspace.git import GitFailed, WorkspaceFailed
from tests.agents.merge.lanes import land, work
from tests.agents.sandbox.stage import prepared
from tests.agents.workspace.kills import beside
from tests.agents.workspace.repos import Remote, git, workspace, write

BIG = "big\n" * 1000


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    if why := prepared("git-lfs", "git-lfs"):
        pytest.skip(why)
    made = Remote(tmp_path)
    for name, value in lfs.FILTERS.items():
        git("config", name, value, cwd=made.clone)
    git("config", "remote.origin.url", f"file://{made.path}", cwd=made.clone)
    made.land({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "old.bin": BIG})
    git("lfs", "push", "--all", "origin", cwd=made.clone)
    return made


def content(remote: Remote, ref: str, path: str) -> str | None:
    """What a file of git-lfs holds, by the server alone; None where the server lacks it."""
    pointer = remote.read(ref, path) or ""
    assert pointer.startswith("version https://git-lfs"), pointer
    name = pointer.partition("sha256:")[2][:64]
    held = Path(lfs.place(f"{remote.path}/lfs", name))
    return held.read_text() if held.exists() else None


def test_new_content_is_on_the_server_whoever_committed_it(remote: Remote, tmp_path: Path) -> None:
    """G8: a pointer was pushed, and gc removed the only copy of its content."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        assert (tree / "old.bin").read_text() == BIG
        write(tree, {"mine.bin": "mine\n"})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "mine", cwd=tree)
        write(tree, {"left.bin": "left\n", "plain.txt": "x\n"})
        saved = made.save("saved")
        again = made.save("again")
    assert (saved.left_out, saved.amiss, again.commit) == ((), (), saved.commit)
    assert content(remote, saved.ref, "mine.bin") == "mine\n"
    assert content(remote, saved.ref, "left.bin") == "left\n"
    assert saved.changed_files == ("left.bin", "mine.bin", "plain.txt")
    with workspace(remote, tmp_path / "other", attempt=2) as made:
        assert (Path(made.open()) / "left.bin").read_text() == "left\n"
        assert made.save("nothing more").commit == saved.commit
        assert any(path.endswith("/lfs") for path in made.borrowed)


def test_attributes_that_make_themselves_a_pointer_hide_no_content(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"deep/.gitattributes": "* filter=lfs\n", "deep/a.txt": "deep\n"})
        git("rm", "-q", "--cached", ".gitattributes", cwd=made.directory)
        (Path(made.directory) / ".gitattributes").unlink()
        saved = made.save("saved")
    assert content(remote, saved.ref, "deep/.gitattributes") == "* filter=lfs\n"
    assert content(remote, saved.ref, "deep/a.txt") == "deep\n"


def test_content_that_is_not_here_is_amiss(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        oid = "0" * 64
        write(tree, {"new.bin": f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 5\n"})
        saved = made.save("saved")
    assert saved.amiss == ("the content of 1 file of git-lfs: it is not here",)
    assert content(remote, saved.ref, "new.bin") is None


def test_content_that_an_earlier_attempt_lacked_is_still_amiss_and_does_not_land(
    remote: Remote, tmp_path: Path
) -> None:
    """B3: the second attempt appended to another file, was accepted, and the pointer landed."""
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"new.bin": text, "good.bin": "good\n"})
        again = made.save("saved")
        assert again.amiss
    for attempt, host in ((2, "host"), (3, "other")):
        with workspace(remote, tmp_path / host, attempt=attempt) as made:
            write(made.open(), {"b.txt": f"{attempt}\n"})
            again = made.save("saved")
            assert again.amiss == ("the content of 1 file of git-lfs: it is not here",)
    outcome = land(remote, tmp_path, Candidate("edit", again.commit, again.ref))
    said = "the server of git-lfs does not have the content of 1 file: new.bin"
    assert [(one.reason, one.detail) for one in outcome.refused] == [("lfs", said)]
    with workspace(remote, tmp_path / "other", attempt=4) as made:
        write(made.open(), {"new.bin": None})
        fixed = made.save("saved")
    assert (fixed.amiss, land(remote, tmp_path, Candidate("edit", fixed.commit, fixed.ref)).whole) == ((), True)
    assert content(remote, "main", "good.bin") == "good\n"


def test_content_that_an_earlier_attempt_gave_the_server_is_not_amiss(remote: Remote, tmp_path: Path) -> None:
    made_of = []
    for attempt, host in ((1, "a"), (2, "b"), (3, "c")):
        with workspace(remote, tmp_path / host, attempt=attempt) as made:
            write(made.open(), {"new.bin": f"{attempt}\n", f"{attempt}.bin": f"of {attempt}\n"})
            made_of.append(made.save("saved"))
    assert [(one.amiss, one.left_out) for one in made_of] == [((), ())] * 3
    saved = made_of[-1]
    assert land(remote, tmp_path, Candidate("edit", saved.commit, saved.ref)).whole
    assert content(remote, "main", "1.bin") == "of 1\n"


def test_a_pointer_in_a_repository_without_git_lfs_is_text(tmp_path: Path) -> None:
    remote = Remote(tmp_path)
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"fixture.txt": text})
        saved = made.save("saved")
    assert (saved.amiss, remote.read(saved.ref, "fixture.txt")) == ((), text)


def test_where_git_lfs_is_missing_the_files_are_saved_as_they_lie(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lfs, "program", lambda: "")
    monkeypatch.setattr(committing, "caged", beside)
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        assert (tree / "old.bin").read_text().startswith("version https://git-lfs")
        write(tree, {"new.bin": "new\n"})
        saved = made.save("saved")
    assert remote.read(saved.ref, "new.bin") == "new\n"
    assert saved.changed_files == ("new.bin",)


def test_an_address_that_an_agent_wrote_is_never_asked(remote: Remote, tmp_path: Path) -> None:
    """G5: the host's git-lfs sent what the agent chose where the agent chose."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:1/x\n", "new.bin": "new\n"})
        saved = made.save("saved")
    assert content(remote, saved.ref, "new.bin") == "new\n"
    with workspace(remote, tmp_path / "other", attempt=2) as made:
        assert (Path(made.open()) / "new.bin").read_text() == "new\n"


def test_the_address_that_the_base_says_is_asked(remote: Remote, tmp_path: Path) -> None:
    server = tmp_path / "server.git"
    git("init", "-q", "--bare", str(server))
    remote.land({".lfsconfig": f"[lfs]\n\turl = file://{server}\n"})
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"new.bin": "new\n"})
        saved = made.save("saved")
    assert content(remote, saved.ref, "new.bin") is None
    assert any((server / "lfs" / "objects").rglob("*"))


def test_a_server_that_takes_nothing_is_said_and_the_work_stays(remote: Remote, tmp_path: Path) -> None:
    remote.land({".lfsconfig": f"[lfs]\n\turl = file://{tmp_path}/none.git\n"})
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"new.bin": "new\n"})
        with pytest.raises(WorkspaceFailed, match="files of git-lfs cannot be pushed"):
            made.save("saved")
    assert remote.refs() == {}


def test_what_is_not_what_its_name_says_is_not_pushed(tmp_path: Path) -> None:
    (tmp_path / "object").write_text("x")
    with pytest.raises(GitFailed, match="is not what its name says"):
        lfs.taken_in(f"{tmp_path}/object", "0" * 64, f"{tmp_path}/lfs")
    (tmp_path / "link").symlink_to("object")
    with pytest.raises(OSError, match="link"):
        lfs.taken_in(f"{tmp_path}/link", "0" * 64, f"{tmp_path}/lfs")


def test_the_tests_of_a_merge_have_the_content(remote: Remote, tmp_path: Path) -> None:
    """G8: no merge of such a repository worked, not even of a text file."""
    one = work(remote, tmp_path, "edit", {"new.bin": "new\n", "b.txt": "two\n"})
    tests = (f'test "$(wc -c <old.bin)" = {len(BIG)}', "grep -q '^new$' new.bin")
    outcome = land(remote, tmp_path, one, tests=tests)
    assert outcome.whole, outcome.told()
    assert content(remote, "main", "new.bin") == "new\n"
