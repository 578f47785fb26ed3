"""The merge lane: only what was tested lands, and nothing that can land is kept out by what cannot."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from spoold.agents.merge.candidates import Candidate, Refused
from tests.agents.merge.lanes import Scripted, land, work
from tests.agents.workspace.repos import Remote, git, pushed, workspace, write
from tests.e2e.pool import wait_for
from tests.support.trees import deep


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path, {"a.txt": "".join(f"line {n}\n" for n in range(20)), "green": ""})


def first_parents(remote: Remote) -> list[str]:
    return git("rev-list", "--first-parent", "main", cwd=remote.path).splitlines()


def test_what_lands_is_the_commit_that_was_tested(remote: Remote, tmp_path: Path) -> None:
    one = work(remote, tmp_path, "one", {"b.txt": "one\n"})
    remote.land({"c.txt": "of a person\n"})
    tip = remote.commit("main")
    seen: list[str] = []

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        seen.append(git("rev-parse", "HEAD", cwd=tree))
        write(tree, {"b.txt": "changed by the tests\n"})
        git("commit", "-qam", "by the tests", cwd=tree)
        return 0, ""

    outcome = land(remote, tmp_path, one, tests=("make test",), run=run)
    assert outcome.whole
    assert (outcome.before, outcome.after, outcome.tested) == (tip, seen[0], seen)
    assert remote.commit("main") == seen[0]
    assert git("log", "-1", "--format=%P|%an", "main", cwd=remote.path) == f"{tip} {one.commit}|merge"
    assert git("log", "-1", "--format=%B", "main", cwd=remote.path).splitlines() == [
        "Merge one",
        "",
        "Spool-Task: one",
        "Spool-Merge: m1",
    ]
    assert (remote.read("main", "b.txt"), remote.read("main", "c.txt")) == ("one\n", "of a person\n")
    assert outcome.as_output()["landed"] == [{"task": "one", "commit": one.commit, "merge": seen[0]}]


def test_many_are_tested_together_and_land_as_one_commit(remote: Remote, tmp_path: Path) -> None:
    several = [work(remote, tmp_path, f"t{n}", {f"b{n}.txt": "x\n"}) for n in range(3)]
    outcome = land(remote, tmp_path, *several, tests=("test -e green",))
    assert [one.task for one, _ in outcome.landed] == ["t0", "t1", "t2"]
    assert first_parents(remote) == [outcome.after, remote.first]
    assert len(outcome.tested) == 1


def test_the_bad_one_is_found_and_the_good_ones_land(remote: Remote, tmp_path: Path) -> None:
    several = [work(remote, tmp_path, f"t{n}", {f"b{n}.txt": "x\n"}) for n in range(5)]
    bad = work(remote, tmp_path, "bad", {"green": None})
    lines: list[str] = []

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        lines.append(line)
        return (0, "") if (Path(tree) / "green").exists() else (1, "no longer green")

    outcome = land(remote, tmp_path, *several[:2], bad, *several[2:], tests=("check",), run=run)
    assert [one.task for one, _ in outcome.landed] == ["t0", "t1", "t2", "t3", "t4"]
    assert [(one.task, one.reason) for one in outcome.refused] == [("bad", "tests")]
    assert "`check` ended with 1: no longer green" in outcome.refused[0].detail
    assert not outcome.whole
    assert first_parents(remote) == [*reversed(outcome.tested), remote.first]
    assert len(lines) < 10
    assert remote.read("main", "green") == ""


def test_two_that_are_good_alone_and_bad_together(remote: Remote, tmp_path: Path) -> None:
    one = work(remote, tmp_path, "one", {"x": "", "b.txt": "1\n"})
    two = work(remote, tmp_path, "two", {"y": "", "c.txt": "1\n"})
    outcome = land(remote, tmp_path, one, two, tests=("! test -e x || ! test -e y",))
    assert [found.task for found, _ in outcome.landed] == ["one"]
    assert [found.task for found in outcome.refused] == ["two"]


def test_a_branch_that_fails_its_own_tests_blames_nobody(remote: Remote, tmp_path: Path) -> None:
    remote.land({"green": None})
    tip = remote.commit("main")
    one = work(remote, tmp_path, "one", {"b.txt": "one\n"})
    outcome = land(remote, tmp_path, one, tests=("test -e green",))
    assert outcome.refused == []
    assert re.match(r"main fails its own tests at [0-9a-f]{12}: `test -e green` ended with 1", outcome.waits)
    assert (outcome.whole, remote.commit("main")) == (False, tip)


def test_conflict_markers_and_changes_of_nothing_are_refused(remote: Remote, tmp_path: Path) -> None:
    marked = work(remote, tmp_path, "marked", {"b.txt": "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"})
    taught = work(remote, tmp_path, "taught", {"doc.txt": "A conflict begins with\n<<<<<<< ours\n"})
    same = work(remote, tmp_path, "same", {"c.txt": "c\n"})
    remote.land({"c.txt": "c\n"})
    outcome = land(remote, tmp_path, marked, taught, same)
    assert [one.task for one, _ in outcome.landed] == ["taught"]
    assert {one.task: (one.reason, one.detail) for one in outcome.refused} == {
        "marked": ("markers", "conflict markers in b.txt"),
        "same": ("empty", "it changes nothing in the branch"),
    }


def test_what_repeats_another_is_judged_after_it(remote: Remote, tmp_path: Path) -> None:
    bad = work(remote, tmp_path, "bad", {"c.txt": "c\n", "green": None})
    same = work(remote, tmp_path, "same", {"c.txt": "c\n"})
    outcome = land(remote, tmp_path, bad, same, tests=("test -e green",))
    assert [one.task for one, _ in outcome.landed] == ["same"]
    assert [(one.task, one.reason) for one in outcome.refused] == [("bad", "tests")]


def test_merged_again_it_is_there_already(remote: Remote, tmp_path: Path) -> None:
    one = work(remote, tmp_path, "one", {"b.txt": "one\n"})
    land(remote, tmp_path, one)
    tip = remote.commit("main")
    outcome = land(remote, tmp_path, one, tests=("false",))
    assert (outcome.whole, outcome.already, outcome.landed) == (True, [one], [])
    assert remote.commit("main") == tip


def test_a_lost_race_begins_again_with_new_tests(remote: Remote, tmp_path: Path) -> None:
    one = work(remote, tmp_path, "one", {"b.txt": "one\n"})
    trees: list[bool] = []

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        trees.append((Path(tree) / "c1.txt").exists())
        if len(trees) < 3:
            remote.land({f"c{len(trees)}.txt": "a person was faster\n"})
        return 0, ""

    outcome = land(remote, tmp_path, one, tests=("check",), run=run)
    assert trees == [False, True, True]
    assert len(outcome.landed) == len(outcome.tested) == 1
    assert remote.read("main", "c2.txt") == "a person was faster\n"
    assert remote.read(f"{outcome.after}^1", "c2.txt") == "a person was faster\n"
    assert outcome.before == remote.first


def test_a_branch_that_never_stands_still_is_tried_later(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spoold.agents.merge.bisection.RACES", 1)
    one = work(remote, tmp_path, "one", {"b.txt": "one\n"})
    count: list[int] = []

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        count.append(1)
        remote.land({f"c{len(count)}.txt": "x\n"})
        return 0, ""

    outcome = land(remote, tmp_path, one, tests=("check",), run=run)
    assert outcome.waits == "1 other push to main came first; it is tried again later"
    assert (outcome.landed, remote.read("main", "b.txt")) == ([], None)


def test_a_branch_that_was_turned_back_meanwhile_is_not_overwritten(remote: Remote, tmp_path: Path) -> None:
    second = remote.land({"c.txt": "c\n"})
    one = work(remote, tmp_path, "one", {"b.txt": "one\n"})

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        git("update-ref", "refs/heads/main", remote.first, second, cwd=remote.path, check=False)
        return 0, ""

    outcome = land(remote, tmp_path, one, tests=("check",), run=run)
    assert git("log", "-1", "--format=%P", outcome.after, cwd=remote.path).split()[0] == remote.first


def test_a_remote_that_refuses_the_push_is_asked_once(remote: Remote, tmp_path: Path) -> None:
    """G15: a protected main ran the tests four times, and what the server said was no end."""
    one, two = work(remote, tmp_path, "one", {"a.txt": "one\n"}), work(remote, tmp_path, "two", {"a.txt": "two\n"})
    hook = remote.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho main is protected >&2\nexit 1\n")
    hook.chmod(0o755)
    lines: list[str] = []

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        lines.append(line)
        return 0, ""

    resolved = Scripted(lambda conflict: replace(two, rounds=0))
    outcome = land(remote, tmp_path, one, two, tests=("check",), run=run, helper=resolved)
    assert [(found.task, found.reason) for found in outcome.refused] == [("one", "remote"), ("two", "remote")]
    words = "the hook there says: main is protected (pre-receive hook declined). Fix: do what the hook says, or let"
    assert f"does not take the merge into main: {words}" in outcome.refused[0].detail
    assert words in outcome.summary()
    assert lines == ["check"]
    assert not outcome.waits
    assert remote.commit("main") == remote.first


def test_a_push_whose_answer_was_lost_counts_by_what_the_remote_shows(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spoold.agents.workspace.git import Done, Git, GitFailed

    real = Git._once

    def cut(self: Git, words: tuple[str, ...], given: str, within_s: float) -> Done:
        done = real(self, words, given, within_s)
        if words[0] == "push":
            raise GitFailed(words, 124, "it has not ended in time")
        return done

    one = work(remote, tmp_path, "one", {"b.txt": "one\n"})
    monkeypatch.setattr(Git, "_once", cut)
    outcome = land(remote, tmp_path, one)
    assert outcome.after == remote.commit("main") == outcome.tested[0]


def test_a_conflict_keeps_only_itself_out(remote: Remote, tmp_path: Path) -> None:
    mine = work(remote, tmp_path, "mine", {"a.txt": "mine\n"})
    theirs = work(remote, tmp_path, "theirs", {"a.txt": "theirs\n"})
    other = work(remote, tmp_path, "other", {"b.txt": "x\n"})
    helper = Scripted()
    outcome = land(remote, tmp_path, mine, theirs, other, helper=helper)
    assert [one.task for one, _ in outcome.landed] == ["mine", "other"]
    assert [(one.task, one.reason) for one in outcome.refused] == [("theirs", "conflict")]
    (seen,) = helper.seen
    assert (seen.base, seen.ours, seen.theirs) == (remote.first, outcome.after, theirs.commit)
    assert seen.paths == ("a.txt",)
    assert "CONFLICT (content): Merge conflict in a.txt" in seen.messages


def test_a_resolved_conflict_lands_with_both_sides(remote: Remote, tmp_path: Path) -> None:
    theirs = work(remote, tmp_path, "theirs", {"a.txt": "theirs\n"})
    remote.land({"a.txt": "ours\n"})

    def agent(conflict_: object) -> Candidate:
        with workspace(remote, tmp_path / "agents", "resolve", base=theirs.ref) as made:
            tree = made.open()
            git("merge", "-q", "origin/main", cwd=tree, check=False)
            write(tree, {"a.txt": "ours and theirs\n"})
            git("add", "-A", cwd=tree)
            saved = made.save("resolved")
        return replace(theirs, commit=saved.commit, ref=saved.ref, rounds=1)

    outcome = land(remote, tmp_path, theirs, helper=Scripted(agent))
    assert [one.task for one, _ in outcome.landed] == ["theirs"]
    assert remote.read("main", "a.txt") == "ours and theirs\n"
    assert git("merge-base", "--is-ancestor", theirs.commit, "main", cwd=remote.path) == ""


def test_a_resolution_without_the_work_does_not_count(remote: Remote, tmp_path: Path) -> None:
    theirs = work(remote, tmp_path, "theirs", {"a.txt": "theirs\n"})
    remote.land({"a.txt": "ours\n"})

    def drops(conflict_: object) -> Candidate:
        ref = pushed(remote, tmp_path / "agents", "resolve", {"c.txt": "something else\n"})
        return replace(theirs, commit=remote.commit(ref), ref=ref, rounds=1)

    helper = Scripted(drops)
    outcome = land(remote, tmp_path, theirs, helper=helper)
    assert [(one.task, one.reason) for one in outcome.refused] == [("theirs", "conflict")]
    assert [one.candidate.rounds for one in helper.seen] == [0, 1]
    assert remote.read("main", "c.txt") is None


def test_work_without_a_commit_in_common_is_refused(remote: Remote, tmp_path: Path) -> None:
    git("checkout", "-q", "--orphan", "alone", cwd=remote.clone)
    git("commit", "-q", "-m", "alone", cwd=remote.clone)
    git("push", "-q", "origin", "alone:refs/spool/alone/1", cwd=remote.clone)
    alone = Candidate("alone", remote.commit("refs/spool/alone/1"))
    outcome = land(remote, tmp_path, alone)
    assert outcome.refused == [Refused("alone", "conflict", "it has no commit in common with the branch")]


def test_setup_runs_before_the_tests_and_a_late_test_is_ended(remote: Remote, tmp_path: Path) -> None:
    from spoold.agents.merge.testing import run

    one = work(remote, tmp_path, "one", {"b.txt": "one\n"})
    assert land(remote, tmp_path, one, setup=("touch ready",), tests=("test -e ready",)).whole
    code, said = run("echo begun; sleep 60", str(tmp_path), 0.3)
    assert (code, said) == (124, "it has not ended within 0.3 s; begun")
    late = work(remote, tmp_path, "late", {"c.txt": "c\n"})
    line = "test ! -e c.txt || { seq 100; sleep 60; }"

    def soon(words: str, place: str, _: float | None = None) -> tuple[int, str]:
        return run(words, place, 2)

    (refused,) = land(remote, tmp_path, late, tests=(line,), run=soon).refused
    assert refused.detail.startswith(f"`{line}` ended with 124: it has not ended within 2 s; 81 | 82")


def test_what_a_line_leaves_behind_neither_holds_it_up_nor_lives_on(tmp_path: Path) -> None:
    from spoold.agents.merge.testing import run

    code, said = run("(sleep 60; touch late) & echo $!; exit 3", str(tmp_path), None)
    assert code == 3

    def gone() -> bool:
        try:
            return psutil.Process(int(said)).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    wait_for(gone, "what it left behind has ended")


def test_nothing_of_a_merge_stays_on_this_machine(remote: Remote, tmp_path: Path) -> None:
    left = tmp_path / "merger" / "merges" / "0"
    left.mkdir(parents=True)
    (left / "of a killed merge").touch()
    land(remote, tmp_path, work(remote, tmp_path, "one", {"b.txt": "one\n"}))
    assert list((tmp_path / "merger" / "merges").iterdir()) == []


def test_what_tests_leave_in_the_tree_holds_no_good_work_up(remote: Remote, tmp_path: Path) -> None:
    """N2, G18: a read-only folder, or 1,300 levels, in the tree of work that fails stopped the lane."""

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        deep(Path(tree) / "deep")
        (Path(tree) / "closed" / "in").mkdir(parents=True)
        (Path(tree) / "closed").chmod(0o500)
        return int((Path(tree) / "bad.txt").exists()), "it is bad"

    deep(tmp_path / "merger" / "merges" / "0" / "deep")
    good, bad = work(remote, tmp_path, "good", {"b.txt": "1\n"}), work(remote, tmp_path, "bad", {"bad.txt": "1\n"})
    outcome = land(remote, tmp_path, bad, good, tests=("judge",), run=run)
    assert [one.task for one, _ in outcome.landed] == ["good"]
    assert list((tmp_path / "merger" / "merges").iterdir()) == []


def test_of_a_long_output_its_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spoold.agents.merge import testing

    monkeypatch.setattr(testing, "OUTPUT_MAX", 20)
    monkeypatch.setattr(testing, "_PIECE", 32)
    assert testing.run("seq 1000; echo the end", str(tmp_path)) == (0, "98\n999\n1000\nthe end")
