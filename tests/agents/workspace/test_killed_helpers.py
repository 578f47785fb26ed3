"""A git that something else kills says nothing of the work: it is tried again, without the agent."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from spoold.agents.workspace import committing
from spoold.agents.workspace.attempt_workspace import RepositoryWorkspace, SavedWork
from spoold.agents.workspace.git import KILLED, Done, Git, GitFailed, RemoteAway, failure
from tests.agents.workspace.kills import beside
from tests.agents.workspace.repos import Remote, git, workspace, write


def again(made: RepositoryWorkspace) -> SavedWork:
    """What a save comes to, that is tried again as an attempt does."""
    try:
        return made.save("saved")
    except RemoteAway:
        return made.save("saved")


@pytest.mark.parametrize("number", range(1, 32, 3))
def test_one_that_is_killed_once_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """B12: the attempt was not accepted, and the agent was paid again."""
    remote, commands, real = Remote(tmp_path), list[tuple[str, ...]](), Git._once

    def once(self: Git, words: tuple[str, ...], given: str | int, within_s: float) -> Done:
        commands.append(words)
        return Done(-9, "", "") if len(commands) == number else real(self, words, given, within_s)

    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"mine.txt": "mine\n"})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "mine", cwd=tree)
        write(tree, {"left.txt": "left\n"})
        own = git("rev-parse", "HEAD", cwd=tree)
        monkeypatch.setattr(committing, "caged", beside)
        monkeypatch.setattr(Git, "_once", once)
        saved = again(made)
        monkeypatch.undo()
    assert (saved.amiss, saved.left_out, saved.changed_files) == ((), (), ("left.txt", "mine.txt"))
    assert git("merge-base", own, saved.ref, cwd=remote.path) == own
    assert len(commands) >= number


@pytest.mark.parametrize("times", [1, 2, 20])
def test_a_program_in_the_cage_that_is_killed_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    remote, real, runs = Remote(tmp_path), committing.caged, list[int]()

    def caged(program: str, request: object, reads: tuple[str, ...], scratch: str) -> str:
        runs.append(1)
        if len(runs) <= times:
            raise GitFailed(("save", "the workspace"), KILLED, "")
        return real(program, request, reads, scratch)  # type: ignore[arg-type]

    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"b.txt": "two\n"})
        monkeypatch.setattr(committing, "caged", caged)
        if times < 3:
            assert (made.save("saved").left_out, len(runs)) == ((), times + 1)
        else:
            with pytest.raises(RemoteAway, match="was killed"):
                made.save("saved")


@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize("dry", [True, False])
def test_a_push_that_is_killed_is_like_a_remote_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dry: bool, times: int
) -> None:
    """B4: the work was not pushed, and the task failed: the attempt was charged."""
    remote, real, killed = Remote(tmp_path), Git._once, list[int]()

    def once(self: Git, words: tuple[str, ...], given: str | int, within_s: float) -> Done:
        if words[0] == "push" and ("--dry-run" in words) == dry and len(killed) < times:
            killed.append(1)
            return Done(-9, "", "")
        return real(self, words, given, within_s)

    monkeypatch.setattr(Git, "_once", once)
    with workspace(remote, tmp_path / "host") as made:
        if dry:
            with pytest.raises(RemoteAway, match=r"no agent begins: git was killed") as told:
                made.open()
            assert "network" not in str(told.value)
            return
        write(made.open(), {"b.txt": "two\n"})
        if times == 1:
            assert remote.files(again(made).ref) == ["a.txt", "b.txt"]
        else:
            with pytest.raises(RemoteAway, match="git was killed"):
                made.save("saved")
            assert made.unsaved()


@pytest.mark.parametrize("words", [("checkout",), ("fetch",), ("for-each-ref",), ("init",)])
def test_a_git_that_is_killed_before_the_agent_starts_is_one_to_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    remote, real, killed = Remote(tmp_path), Git._once, list[int]()

    def once(self: Git, asked: tuple[str, ...], given: str | int, within_s: float) -> Done:
        if asked[: len(words)] == words and not killed:
            killed.append(1)
            return Done(-9, "", "")
        return real(self, asked, given, within_s)

    monkeypatch.setattr(Git, "_once", once)
    with workspace(remote, tmp_path / "host") as made, suppress(RemoteAway):
        made.open()
        assert not killed, "it went on without what was killed"


@pytest.mark.parametrize(
    "errors",
    [
        "error: pack-objects died of signal 9\nerror: failed to push some refs",
        "remote: error: unpack-objects died of signal 9\n! [remote rejected] a -> b (unpacker error)",
    ],
)
def test_a_helper_of_git_that_is_killed_refuses_nothing(errors: str) -> None:
    assert isinstance(failure(GitFailed(("push",), 1, errors), "why"), RemoteAway)
