"""What must not land does not, whatever its tests say; what lands is told where it was flaky."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

import pytest

from spoold.agents.configuration.merge_settings import MergeConfig
from spoold.agents.merge.candidates import Candidate
from spoold.agents.merge.guards import Guards
from spoold.agents.merge.testing import counted
from spoold.agents.workspace.git import Git
from spoold.rules.redaction.masking import Scanner
from tests.agents.merge.lanes import Scripted, land, work
from tests.agents.workspace.repos import Remote, git, workspace, write

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path, {"a.txt": "".join(f"line {n}\n" for n in range(20)), "tests/t.py": "1\n2\n3\n"})


class People:
    """People who answer as a test says."""

    def __init__(self, *answers: bool) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, tuple[str, ...]]]()

    def __call__(self, one: Candidate, paths: tuple[str, ...]) -> bool:
        self.asked.append((one.task, paths))
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("files", "bounds", "reason", "detail"),
    [
        (
            {f"{n}.txt": "" for n in range(4)},
            {"max_files": 3},
            "max_files",
            "it changes 4 files, and 3 may be changed",
        ),
        ({"a.txt": "x\n" * 5}, {"max_lines": 24}, "max_lines", "it adds and removes 25 lines, and 24 may be"),
        ({"a.txt": None}, {"max_lines": 19}, "max_lines", "it adds and removes 20 lines, and 19 may be"),
        ({"b.bin": "\0\n" * 9}, {"max_lines": 8}, "max_lines", "it adds and removes 9 lines, and 8 may be"),
        (
            {"big": "x" * (3 << 19), "a.txt": None},
            {"max_file_mb": 1},
            "max_file_mb",
            "big has 1.5 MiB, and a file may have 1 MiB",
        ),
    ],
)
def test_work_beyond_a_bound_is_refused_with_both_figures(
    remote: Remote, tmp_path: Path, files: dict[str, str | None], bounds: dict[str, Any], reason: str, detail: str
) -> None:
    bad, good = work(remote, tmp_path, "bad", files), work(remote, tmp_path, "good", {"g.txt": "g\n"})
    remote.land({f"of-a-person-{n}.txt": "x\n" * 50 for n in range(9)})
    outcome = land(remote, tmp_path, bad, good, **bounds)
    assert [(one.task, one.reason, one.detail) for one in outcome.refused] == [("bad", reason, detail)]
    assert [one.task for one, _ in outcome.landed] == ["good"]
    wider = {name: value + 1 for name, value in bounds.items()}
    assert land(remote, tmp_path, bad, **wider).whole


@pytest.mark.parametrize("how", ["a later commit", "a side that a merge drops", "an odd name"])
def test_a_large_file_that_the_work_no_longer_has_keeps_it_out(remote: Remote, tmp_path: Path, how: str) -> None:
    """C4: it was in the history of the branch for ever."""
    name = "big\u2028 blob 9\n.bin" if how == "an odd name" else "big.bin"
    with workspace(remote, tmp_path / "agents", "bad") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "b\n"})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "small", cwd=tree)
        if how == "a side that a merge drops":
            git("checkout", "-q", "-b", "side", cwd=tree)
        write(tree, {name: "x" * (3 << 19)})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "large", cwd=tree)
        if how == "a side that a merge drops":
            git("checkout", "-q", "-", cwd=tree)
            git("merge", "-q", "-s", "ours", "-m", "without it", "side", cwd=tree)
        else:
            (tree / name).unlink()
        saved = made.save("work")
    bad, good = Candidate("bad", saved.commit, saved.ref), work(remote, tmp_path, "good", {"g.txt": "g\n"})
    remote.land({"of-a-person.bin": "x" * (3 << 19)})
    outcome = land(remote, tmp_path, bad, good, max_file_mb=1)
    ((refused),) = outcome.refused
    assert (refused.task, refused.reason) == ("bad", "max_file_mb")
    assert refused.detail.startswith("big")
    assert refused.detail.endswith(" has 1.5 MiB in one of its commits, and a file may have 1 MiB")
    assert [one.task for one, _ in outcome.landed] == ["good"]
    assert land(remote, tmp_path, bad, max_file_mb=2).whole


def test_the_files_of_many_commits_are_not_held_to_find_a_large_one(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All names of all commits were in memory twice, and a repository may have millions."""
    with workspace(remote, tmp_path / "agents", "bad") as made:
        tree = Path(made.open())
        write(tree, {f"many/{number}": f"{number}" for number in range(500)} | {"large": "x" * (3 << 19)})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "many", cwd=tree)
        git("rm", "-q", "-r", "many", "large", cwd=tree)
        write(tree, {"b.txt": "b\n"})
        saved = made.save("work")
    real, held = Git.__call__, list[int]()

    def seen(self: Git, *words: str, **more: Any) -> Any:
        done = real(self, *words, **more)
        held.append(len(done.out))
        return done

    monkeypatch.setattr(Git, "__call__", seen)
    config = MergeConfig(repos=(str(remote.path),), max_file_mb=1)
    guards = Guards(config, People(), Scanner({}))
    refused = guards.refused(Git(str(remote.path)), remote.first, Candidate("bad", saved.commit, saved.ref))
    assert refused is not None
    assert refused.detail == "large has 1.5 MiB in one of its commits, and a file may have 1 MiB"
    assert max(held) < 1000


def test_a_large_file_of_the_branch_is_not_of_the_work_that_takes_it_in(remote: Remote, tmp_path: Path) -> None:
    remote.land({"large.bin": "x" * (3 << 19), "gone.bin": "y" * (3 << 19)})
    with workspace(remote, tmp_path / "agents", "one") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "b\n"})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "mine", cwd=tree)
        remote.land({"later.bin": "z" * (3 << 19), "gone.bin": None})
        git("fetch", "-q", str(remote.path), "main", cwd=tree)
        git("merge", "-q", "-m", "theirs too", "FETCH_HEAD", cwd=tree)
        saved = made.save("work")
    assert land(remote, tmp_path, Candidate("one", saved.commit, saved.ref), max_file_mb=1).whole


def test_protected_paths_need_a_yes_and_nothing_waits_for_it(remote: Remote, tmp_path: Path) -> None:
    """G29: deleted tests landed."""
    bad = work(remote, tmp_path, "bad", {"tests/t.py": None})
    good = work(remote, tmp_path, "good", {"g.txt": "g\n"})
    seen: list[str | None] = []

    def silent(one: Candidate, paths: tuple[str, ...]) -> bool:
        seen.append(remote.read("main", "g.txt"))
        return False

    outcome = land(remote, tmp_path, bad, good, protect=["tests/**"], ask=silent)
    assert seen == ["g\n"]
    assert [(one.reason, one.detail) for one in outcome.refused] == [
        ("protected", "it got no yes to its change of tests/t.py")
    ]
    people = People(True)
    assert land(remote, tmp_path, bad, protect=["tests/**"], ask=people).whole
    assert people.asked == [("bad", ("tests/t.py",))]


def test_a_yes_counts_again_after_a_lost_race_and_not_for_other_work(remote: Remote, tmp_path: Path) -> None:
    one = work(remote, tmp_path, "one", {"tests/t.py": "1\n"})
    people, races = People(True), [1]

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        if races.pop() if races else 0:
            remote.land({"c.txt": "faster\n"})
        return 0, ""

    assert land(remote, tmp_path, one, protect=["tests/**"], ask=people, tests=("x",), run=run).whole
    assert len(people.asked) == 1
    theirs = work(remote, tmp_path, "theirs", {"tests/t.py": "2\n"})
    remote.land({"tests/t.py": "3\n"})

    def agent(conflict: object) -> Candidate:
        with workspace(remote, tmp_path / "agents", "resolve", base=theirs.ref) as made:
            tree = made.open()
            git("merge", "-q", "origin/main", cwd=tree, check=False)
            write(tree, {"tests/t.py": "2 and 3\n"})
            git("add", "-A", cwd=tree)
            saved = made.save("resolved")
        return replace(theirs, commit=saved.commit, ref=saved.ref, rounds=1)

    people = People(True, False)
    outcome = land(remote, tmp_path, theirs, protect=["tests/**"], ask=people, helper=Scripted(agent))
    assert [found.reason for found in outcome.refused] == ["protected"]


def test_where_a_file_is_in_the_branch_by_now_counts(remote: Remote, tmp_path: Path) -> None:
    """Git carries a change over to the new name of a file."""
    sly = work(remote, tmp_path, "sly", {"a.txt": "".join(f"line {n}\n" for n in range(19)) + "sly\n"})
    git("mv", "a.txt", "tests/a.txt", cwd=remote.clone)
    remote.land({})
    outcome = land(remote, tmp_path, sly, protect=["tests/**"])
    assert [(one.reason, one.detail[-11:]) for one in outcome.refused] == [("protected", "tests/a.txt")]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_work_does_to_a_protected_place_is_seen(remote: Remote, tmp_path: Path, seed: int) -> None:
    """A seeded search: files added, changed, removed, moved, made links of, in other case: what lands with no yes has
    left every protected place as it was."""
    chance = random.Random(seed)
    patterns = ["tests/**", ".github/**", "**/conftest.py", "Makefile"]
    names = [
        "tests/t.py",
        "Tests/t.py",
        "tests",
        ".github/w.yml",
        "x/conftest.py",
        "conftest.py",
        "Makefile",
        "x/Makefile",
    ]
    names += ["a.txt", "free/b.txt", "tests2/c", "x/tests/d", "t\u00e9sts/e"]

    def inside(path: str) -> bool:
        low = path.lower()
        return (
            low.startswith(("tests/", ".github/"))
            or low in ("tests", ".github", "makefile")
            or (fnmatchcase(f"/{low}", "*/conftest.py"))
        )

    candidates, touched = [], {}
    for number in range(4):
        with workspace(remote, tmp_path / "agents", f"t{number}", resume="fresh") as made:
            tree = Path(made.open())
            chosen = chance.sample(names, chance.randrange(1, 3))
            for name in chosen:
                _disturb(tree, name, chance)
            saved = made.save("work")
            touched[f"t{number}"] = saved.changed_files
            if saved.ref:
                candidates.append(Candidate(f"t{number}", saved.commit, saved.ref))
    before = git("ls-tree", "-r", "main", cwd=remote.path).splitlines()
    outcome = land(remote, tmp_path, *candidates, protect=patterns)
    after = git("ls-tree", "-r", "main", cwd=remote.path).splitlines()
    for row in set(before) ^ set(after):
        assert not inside(row.split("\t")[1]), row
    for one in outcome.refused:
        if one.reason == "protected":
            assert any(map(inside, touched[one.task]))


def _disturb(tree: Path, name: str, chance: random.Random) -> None:
    path = tree / name
    for parent in (path, *path.parents):
        if parent.is_symlink() or (parent.is_file() and parent != path):
            return
    if path.is_dir():
        for found in path.rglob("*"):
            found.unlink()
        path.rmdir()
    match chance.randrange(4):
        case 0:
            path.unlink(missing_ok=True)
        case 1:
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to("a.txt")
        case _:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{chance.random()}\n")


@pytest.mark.parametrize(
    "where", ["message", "author", "committer", "body of a merge", "name of a file", "gone name"]
)
def test_a_secret_that_is_in_no_line_keeps_work_out(remote: Remote, tmp_path: Path, where: str) -> None:
    """B11: a token in the text of a commit landed."""
    with workspace(remote, tmp_path / "agents", "bad") as made:
        tree = Path(made.open())
        named = f"{TOKEN}.txt" if "name" in where else "b.txt"
        write(tree, {named: "b\n"})
        git("add", "-A", cwd=tree)
        words = ("-m", f"use {TOKEN}") if where == "message" else ("-m", "plain")
        author = (f"--author={TOKEN} <a@example.org>",) if where == "author" else ()
        git("commit", "-q", *author, *words, cwd=tree)
        if where == "committer":
            head = git("cat-file", "commit", "HEAD", cwd=tree)
            anew = head.replace("committer ada", f"committer {TOKEN}") + "\n"
            (tmp_path / "commit").write_text(anew)
            made_anew = git("hash-object", "-t", "commit", "-w", str(tmp_path / "commit"), cwd=tree)
            git("reset", "-q", "--hard", made_anew, cwd=tree)
        elif where == "body of a merge":
            git("checkout", "-q", "-b", "side", "HEAD~1", cwd=tree)
            write(tree, {"side.txt": "side\n"})
            git("add", "-A", cwd=tree)
            git("commit", "-q", "-m", "side", cwd=tree)
            git("checkout", "-q", "-", cwd=tree)
            git("merge", "-q", "--no-ff", "-m", f"merge\n\n{TOKEN}", "side", cwd=tree)
        elif where == "gone name":
            git("mv", named, "b.txt", cwd=tree)
            git("commit", "-q", "-m", "moved", cwd=tree)
        write(tree, {"c.txt": "c\n"})
        saved = made.save("work")
    bad = Candidate("bad", saved.commit, saved.ref)
    good = work(remote, tmp_path, "good", {"g.txt": "g\n"})
    outcome = land(remote, tmp_path, bad, good, no_secrets=True)
    assert [(one.task, one.reason) for one in outcome.refused] == [("bad", "secret")]
    said = outcome.refused[0].detail
    assert "(github-token)" in said
    assert TOKEN not in said
    assert [one.task for one, _ in outcome.landed] == ["good"]


class Told(io.BytesIO):
    """What git prints, and the most that was asked for at once."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        Told.most = max(Told.most, size or 0)
        return super().read(size)


@pytest.mark.parametrize("before", [0, (4 << 20) - 20, 9 << 20])
def test_the_text_of_a_commit_is_read_in_pieces_whatever_its_size(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    tree = tmp_path / "tree"
    git("clone", "-q", str(remote.path), str(tree), cwd=tmp_path)
    old = git("rev-parse", "HEAD", cwd=tree)
    (tmp_path / "message").write_text(f"long\n\n{'x ' * (before // 2)} {TOKEN}\n")
    git("commit", "-q", "--allow-empty", "-F", str(tmp_path / "message"), cwd=tree)
    piped = Git.piped

    @contextmanager
    def told(self: Git, *words: str, given: str | int = "") -> Iterator[IO[bytes]]:
        with piped(self, *words, given=given) as said:
            yield Told(said.read()) if words[0] == "cat-file" else said

    monkeypatch.setattr(Git, "piped", told)
    monkeypatch.setattr(Told, "most", 0)
    guards = Guards(MergeConfig(repos=(str(remote.path),), no_secrets=True), People(), Scanner({}))
    one = Candidate("t", git("rev-parse", "HEAD", cwd=tree), "")
    refused = guards.refused(Git(str(tree / ".git")), old, one)
    assert refused is not None
    assert refused.detail.startswith("what looks like a secret is in the message of commit ")
    assert Told.most <= 4 << 20


def test_a_secret_in_any_commit_keeps_work_out(remote: Remote, tmp_path: Path) -> None:
    """G30: also one that a later commit takes back."""
    with workspace(remote, tmp_path / "agents", "early") as made:
        tree = made.open()
        write(tree, {"b.txt": f"one\nkey: {TOKEN}\n"})
        git("add", "-A", cwd=tree)
        git("commit", "-qm", "b", cwd=tree)
        write(tree, {"b.txt": "one\n"})
        saved = made.save("clean again")
    early = Candidate("early", saved.commit, saved.ref)
    late = work(remote, tmp_path, "late", {"c.txt": f"{TOKEN}\n"})
    good = work(remote, tmp_path, "good", {"g.txt": "g\n"})
    outcome = land(remote, tmp_path, early, late, good, no_secrets=True)
    assert {one.task: (one.reason, one.detail) for one in outcome.refused} == {
        "early": ("secret", "what looks like a secret is in b.txt:2 (github-token)"),
        "late": ("secret", "what looks like a secret is in c.txt:1 (github-token)"),
    }
    assert [one.task for one, _ in outcome.landed] == ["good"]
    assert land(remote, tmp_path, late, max_files=9).whole, "it is off until it is asked for"


def test_work_that_has_nothing_in_common_meets_no_guard(remote: Remote, tmp_path: Path) -> None:
    git("checkout", "-q", "--orphan", "alone", cwd=remote.clone)
    git("commit", "-q", "-m", "alone", cwd=remote.clone)
    git("push", "-q", "origin", "alone:refs/spool/alone/1", cwd=remote.clone)
    alone = Candidate("alone", remote.commit("refs/spool/alone/1"))
    outcome = land(remote, tmp_path, alone, protect=["**"], max_files=1)
    assert [one.reason for one in outcome.refused] == ["conflict"]


def flaky(fails: int) -> tuple[list[str], Callable[[str, str, float | None], tuple[int, str]]]:
    """What fails so often, where there is a b.txt, and passes then."""
    seen: list[str] = []

    def run(line: str, tree: str, within_s: float | None) -> tuple[int, str]:
        if not (Path(tree) / "b.txt").exists():
            return 0, ""
        seen.append(line)
        return (1, "a port was taken") if len(seen) <= fails else (0, "")

    return seen, run


def test_what_fails_once_is_tested_again_and_named(remote: Remote, tmp_path: Path) -> None:
    """G29: a test that failed once refused good work for good."""
    one = work(remote, tmp_path, "one", {"b.txt": "x\n"})
    seen, run = flaky(1)
    outcome = land(remote, tmp_path, one, tests=("check",), run=run, retest=1)
    assert outcome.whole
    assert len(seen) == 2
    assert outcome.as_output()["flaky"] == ["one failed, and passed then: `check` ended with 1: a port was taken"]
    assert any(line.startswith("flaky: one failed") for line in outcome.told())


def test_what_fails_each_time_is_refused(remote: Remote, tmp_path: Path) -> None:
    one = work(remote, tmp_path, "one", {"b.txt": "x\n"})
    for retest in (0, 1):
        seen, run = flaky(9)
        outcome = land(remote, tmp_path, one, tests=("check",), run=run, retest=retest)
        assert [found.reason for found in outcome.refused] == ["tests"]
        assert (len(seen), outcome.flaky) == (1 + retest, [])
        assert "flaky" not in outcome.as_output()


def test_a_setup_that_fails_counts_as_failed_tests(remote: Remote, tmp_path: Path) -> None:
    one = work(remote, tmp_path, "one", {"b.txt": "x\n"})
    outcome = land(remote, tmp_path, one, setup=("test ! -e b.txt",))
    assert [(found.reason, found.detail[:26]) for found in outcome.refused] == [
        ("tests", "`test ! -e b.txt` ended wi")
    ]


def test_fewer_tests_keep_work_out(remote: Remote, tmp_path: Path) -> None:
    """G29: work that deleted its tests landed."""
    fewer = work(remote, tmp_path, "fewer", {"tests/t.py": "1\n2\n"})
    more = work(remote, tmp_path, "more", {"tests/u.py": "4\n"})
    same = work(remote, tmp_path, "same", {"b.txt": "x\n"})
    outcome = land(remote, tmp_path, more, listing="cat tests/*.py")
    assert outcome.whole
    outcome = land(remote, tmp_path, fewer, same, listing="cat tests/*.py | wc -l")
    assert [(one.task, one.reason, one.detail) for one in outcome.refused] == [
        ("fewer", "fewer_tests", "it leaves 3 tests of 4")
    ]
    assert [one.task for one, _ in outcome.landed] == ["same"]


def test_tests_that_cannot_be_counted_blame_nobody_but_who_breaks_them(remote: Remote, tmp_path: Path) -> None:
    broken = work(remote, tmp_path, "broken", {"tests/t.py": None})
    outcome = land(remote, tmp_path, broken, listing="cat tests/t.py")
    assert [one.reason for one in outcome.refused] == ["tests"]
    assert "`cat tests/t.py` ended with 1" in outcome.refused[0].detail
    mends = work(remote, tmp_path, "mends", {"tests/new.py": "1\n"})
    outcome = land(remote, tmp_path, mends, listing="cat tests/new.py")
    assert re.match("the tests of main cannot be counted at [0-9a-f]{12}: `cat tests/new.py`", outcome.waits)
    assert outcome.refused == []


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("t.py::a\nt.py::b\n\n123 tests collected in 0.12s\n", 123),
        ("1 test collected in 0.01s", 1),
        ("120/123 tests collected (3 deselected) in 1s", 120),
        ("collected 5 items\n\n<Module a.py>\n  <Function b>", 5),
        ("no tests collected in 0.00s", 0),
        ("a: test\nb: test\n\n2 tests, 0 benchmarks", 2),
        ("t.py::has 9 tests\nt.py::b\nwarning: x", 2),
        ("TestA\nTestB\nok  \texample.org/x\t0.1s\n", 3),
        ("lists\n42\n", 42),
        ("", 0),
    ],
)
def test_tests_are_counted_by_what_is_printed(said: str, count: int) -> None:
    assert counted(said) == count
