"""Secrets in work: those of the task never leave the machine, and what looks like one is named."""

from __future__ import annotations

import os
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.attempt import cleanup
from spoold.agents.configuration.profiles import REDACT
from spoold.agents.workspace import secret_scan as reading
from spoold.agents.workspace.attempt_workspace import RepositoryWorkspace, collect
from spoold.agents.workspace.git import Git, GitFailed
from spoold.agents.workspace.secret_scan import HoldsSecret, added, pieces
from spoold.rules.redaction.known_secrets import spellings
from spoold.rules.redaction.masking import Scanner
from tests.agents.test_remote import Place
from tests.agents.workspace.repos import Remote, git, workspace, write

SECRET = "c0rrect+horse=battery/staple"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
SCANNER = Scanner({"KEY": SECRET})


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


def scanned(remote: Remote, top: Path, attempt: int = 1, task: str = "edit", **config: Any) -> RepositoryWorkspace:
    made = workspace(remote, top / "host", task, attempt, **config)
    made._scanner = SCANNER
    made._record = made._record.model_copy(update={"secrets": ("KEY",)})
    return made


def everything(remote: Remote) -> bytes:
    """The content of all objects of the remote."""
    with Git(str(remote.path)).piped("cat-file", "--batch-all-objects", "--batch", "--unordered") as said:
        return said.read()


@pytest.mark.parametrize("seed", range(8))
def test_no_spelling_of_a_secret_reaches_the_remote(remote: Remote, tmp_path: Path, seed: int) -> None:
    """G30: wherever an agent puts a secret of its task, the remote has no object that holds it."""
    chance = random.Random(seed)
    spelled = chance.choice(sorted(spellings(SECRET)))
    with scanned(remote, tmp_path) as made:
        tree = Path(made.open())
        write(tree, {f"good{number}.txt": "x\n" for number in range(3)})
        padding = bytes(chance.randrange(256) for _ in range(chance.randrange(200)))
        match seed % 4:
            case 0:  # in a file, among bytes
                (tree / "sub").mkdir()
                (tree / "sub" / "b.bin").write_bytes(padding + b"\n" + spelled + b"\n" + padding)
                where = "sub/b.bin:" + str(padding.count(b"\n") + 2 + (spelled[:1] == b"\n")) + " (KEY)"
            case 1:  # in a commit whose successor removes it
                (tree / "b.txt").write_bytes(spelled)
                git("add", "-A", cwd=tree)
                git("commit", "-qm", "one", cwd=tree)
                (tree / "b.txt").unlink()
                where = "b.txt:1 (KEY)"
            case 2:  # as the way to a file, in a commit whose successor removes it
                path = tree / SECRET / "y"
                path.parent.mkdir(parents=True)
                path.write_text("x\n")
                if seed == 2:
                    git("add", "-A", cwd=tree)
                    git("commit", "-qm", "one", cwd=tree)
                    path.unlink()
                where = "the path of a file (KEY)"
            case _:  # in the text of a commit
                git("add", "-A", cwd=tree)
                git("commit", "-qm", f"log in with {SECRET}", cwd=tree)
                where = "the text of a commit (KEY)"
        with pytest.raises(HoldsSecret) as refused:
            made.save("work")
    assert where in str(refused.value)
    assert SECRET not in str(refused.value)
    assert remote.refs() == {}
    found = everything(remote)
    assert not [one for one in spellings(SECRET) if one in found]


def test_the_next_attempt_does_not_push_it_either(remote: Remote, tmp_path: Path) -> None:
    """G30: what stays in a workspace is no longer pushed by who comes next, and is not removed."""
    with scanned(remote, tmp_path) as first:
        write(first.open(), {"b.txt": SECRET})
        with pytest.raises(HoldsSecret):
            first.save("work")
    with scanned(remote, tmp_path, attempt=2) as second:
        second.open()
        assert second.save("nothing").no_change
    assert remote.refs() == {}
    (kept,) = (tmp_path / "host" / "work").glob("*.1")
    assert (kept / "tree" / "b.txt").read_text() == SECRET


@pytest.mark.parametrize("early", [False, True])
def test_what_a_person_removed_from_it_is_pushed_then(remote: Remote, tmp_path: Path, early: bool) -> None:
    with scanned(remote, tmp_path) as first:
        tree = first.open()
        write(tree, {"b.txt": SECRET, "c.txt": "c\n"})
        with pytest.raises(HoldsSecret):
            first.save("work")
    write(tree, {"b.txt": None})
    with scanned(remote, tmp_path, attempt=2) as second:
        second.open()
        assert second.resumed == "refs/spool/edit/1"
    assert remote.files("refs/spool/edit/1") == ["a.txt", "c.txt"]


def test_the_name_of_a_file_counts_too(remote: Remote, tmp_path: Path) -> None:
    with scanned(remote, tmp_path) as made:
        write(made.open(), {f"{SECRET.replace('/', '-')}/x": "x"})
        made._scanner = Scanner({"KEY": SECRET.replace("/", "-")})
        with pytest.raises(HoldsSecret, match=r"the names in its top folder \(KEY\)"):
            made.save("work")


def test_a_token_is_pushed_and_named_until_it_is_gone(remote: Remote, tmp_path: Path) -> None:
    """G30: it is not the task's own, so the work is kept, and the next attempt is told what to remove."""
    with scanned(remote, tmp_path) as made:
        write(made.open(), {"b.txt": f"one\n\nkey = {TOKEN}\n", "c.txt": "-----BEGIN PRIVATE KEY-----\n"})
        saved = made.save("work")
    why = "b.txt:3 (github-token) looks like a secret, and has been pushed: remove it, and revoke it"
    assert saved.amiss == (why,)
    assert saved.ref
    with scanned(remote, tmp_path, attempt=2) as made:
        tree = made.open()
        write(tree, {"d.txt": "d\n"})
        assert made.save("more").amiss == (why,)
        write(tree, {"b.txt": "one\n"})
        assert made.save("clean").amiss == ()


def test_secrets_that_cannot_be_looked_for_stop_the_push(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spoold.agents.workspace.git import WorkspaceFailed

    def fails(*given: object) -> None:
        raise GitFailed(("rev-list",), 128, "torn")

    monkeypatch.setattr("spoold.agents.workspace.secret_scan.refuse", fails)
    with scanned(remote, tmp_path) as made:
        write(made.open(), {"b.txt": "x"})
        with pytest.raises(WorkspaceFailed, match="secrets cannot be looked for"):
            made.save("work")
    assert remote.refs() == {}


def test_an_agent_that_writes_its_secret_down_is_blocked(tmp_path: Path) -> None:
    """G30: the pushed commit kept what was masked in every output."""
    place = Place(tmp_path, "open('c.txt', 'w').write(os.environ['KEY'])", secrets=["KEY"])
    place.desk.env = {"KEY": SECRET}
    ended = place.run()
    assert (ended.code, ended.result["outcome"]) == (65, "blocked"), ended.said
    assert "c.txt:1 (KEY)" in ended.result["reasons"][0]
    assert SECRET not in ended.said
    assert place.remote.refs() == {}


@pytest.mark.parametrize("seed", range(8))
def test_added_lines_are_read_as_they_are(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever the files hold, also lines of differences: each run is what the file has, and none is missing."""
    monkeypatch.setattr(reading, "PIECE", 256)
    monkeypatch.setattr(reading, "OVERLAP", 32)
    chance = random.Random(seed)
    lines = [
        b"+++ b/x",
        b"@@ -1,3 +1,9 @@",
        b"--- a/x",
        b"\\ No newline at end of file",
        b"x" * 600,
        b"\0\xff",
        b"",
        b"y",
    ]
    names = ["plain", "with space", 'quo"te', "ta\tb", "\u00e9", "-x", "b/+++ b"]

    def content() -> bytes:
        made = b"\n".join(chance.choice(lines) for _ in range(chance.randrange(9)))
        return made + b"\n" * chance.randrange(2)

    for _ in range(2):
        for name in names:
            path = remote.clone / name
            path.parent.mkdir(exist_ok=True)
            if chance.random() < 0.8:
                path.write_bytes(content())
            else:
                path.unlink(missing_ok=True)
        git("add", "-A", cwd=remote.clone)
        git("commit", "-q", "--allow-empty", "-m", "next", cwd=remote.clone)
    count = dict.fromkeys(names, 0)
    for run in added(Git(str(remote.clone / ".git")), "diff-tree", "-r", "HEAD~1", "HEAD"):
        has = (remote.clone / run.path).read_bytes().splitlines(keepends=True)
        place = b"".join(has[run.line - 1 :]).find(run.text.removesuffix(b"\n"))
        assert 0 <= place <= len(has[run.line - 1])
        assert run.at(len(run.text)).startswith(f"{run.path}:")
        count[run.path] += run.text.count(b"\n")
    stat = git("diff-tree", "-r", "--numstat", "--text", "-z", "--no-renames", "HEAD~1", "HEAD", cwd=remote.clone)
    for row in filter(None, stat.split("\0")):
        more, _, name = row.split("\t", 2)
        assert more == "-" or count[name] >= int(more)


def test_what_git_says_is_read_to_its_end_or_is_an_error(remote: Remote) -> None:
    with pytest.raises(GitFailed, match="unknown revision"), Git(str(remote.path)).piped("log", "nothing") as said:
        said.read()
    for cut in (b"@@ -1,9 +1,9 @@\n-x\n", b"@@ -0,0 +1,9 @@\n+x\n"):
        assert [run.text for run in reading._read(BytesIO(cut))] in ([], [b"x\n"])


def left_by_a_kill(
    remote: Remote, top: Path, text: str, secrets: tuple[str, ...] = ("KEY",), **said: Any
) -> RepositoryWorkspace:
    """A workspace whose process was killed before it saved anything."""
    made = scanned(remote, top, task="killed", **said)
    looked = {"secrets": secrets, "scans": {"tokens": True, "patterns": ["corp-[0-9]+"]}}
    made._record = made._record.model_copy(update=looked)
    write(made.open(), {"b.txt": text})
    made._note(worked=True)
    made._let_go()
    return made


def test_what_a_killed_attempt_left_is_searched_for_what_is_known_without_its_secrets(
    remote: Remote, tmp_path: Path
) -> None:
    """G30: it was pushed without any search."""
    made = left_by_a_kill(remote, tmp_path, f"x\n{TOKEN}\ncorp-42\n", (), keep_s=0)
    (judged,) = collect(made.places, keep_s=0, wall=lambda: 1000.0)
    assert judged.removed
    assert "b.txt:2 (github-token) looks like a secret, and has been pushed" in judged.why
    assert "b.txt:3 (pattern-1) looks like a secret" in judged.why
    assert TOKEN not in judged.why


def test_what_a_killed_attempt_left_is_searched_for_the_secrets_that_another_knows(
    remote: Remote, tmp_path: Path
) -> None:
    made = left_by_a_kill(remote, tmp_path, SECRET)
    (judged,) = collect(made.places, scanner=SCANNER)
    assert (judged.removed, judged.unsaved) == (False, True)
    assert "nothing was pushed, since the work holds a secret: b.txt:1 (KEY)" in judged.why
    assert remote.refs() == {}


def test_the_process_beside_an_attempt_knows_the_secrets_of_its_profile(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = left_by_a_kill(remote, tmp_path, SECRET)
    monkeypatch.setenv("KEY", SECRET)
    monkeypatch.setenv(REDACT, '{"secrets": ["KEY"]}')
    monkeypatch.setattr(os, "nice", lambda step: step)  # or all later tests of this process had what others leave
    assert cleanup.main(str(remote.path), made.places.top) == 0
    assert remote.refs() == {}
    for others in ("{}", '{"secrets": ["OTHER"]}'):  # of profiles that do not know it
        monkeypatch.setenv("OTHER", "0ther-secret")
        monkeypatch.setenv(REDACT, others)
        assert cleanup.main(str(remote.path), made.places.top) == 0
        assert remote.refs() == {}


@pytest.mark.parametrize("ended", ["killed", "blocked"])
@pytest.mark.parametrize("text", [SECRET, "x"])
@pytest.mark.parametrize("scanner", [None, Scanner({}), Scanner({"OTHER": "0ther-secret"})])
def test_nobody_pushes_what_may_hold_a_secret_that_he_does_not_know(
    remote: Remote, tmp_path: Path, ended: str, text: str, scanner: Scanner | None
) -> None:
    """`spool workspace gc`, and an attempt of another profile, pushed what had been blocked."""
    made = left_by_a_kill(remote, tmp_path, text, keep_s=0)
    if ended == "blocked" and text == SECRET:
        with pytest.raises(HoldsSecret):
            made.save("work")
    for _ in range(2):
        (judged,) = collect(made.places, keep_s=0, wall=lambda: 1000.0, scanner=scanner)
        assert (judged.removed, judged.unsaved) == (False, True)
        assert "it may hold a secret (KEY), which only an attempt of coder on this machine knows" in judged.why
        assert remote.refs() == {}
    notes = [path.read_text() for path in Path(made.places.unsaved).iterdir()]
    assert ["`spool retry killed`" in note and "workspace gc" not in note for note in notes] == [True]
    (judged,) = collect(made.places, keep_s=0, wall=lambda: 1000.0, scanner=SCANNER)
    assert (judged.removed, list(remote.refs())) == ((True, ["refs/spool/killed/1"]) if text == "x" else (False, []))


def test_a_content_that_breaks_off_ends() -> None:
    assert [piece for piece, _ in pieces(BytesIO(b"abc"), 9, 1)] == [b"abc"]
