"""`spool context`: put, get, list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import Done, spool


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "s"
    assert spool("init", str(root)).code == 0
    return root


def run(root: Path, *words: str, stdin: bytes = b"") -> Done:
    """The verb, for one batch."""
    return spool("context", *words, "--batch", "nightly", root=root, stdin=stdin)


def test_put_get_and_list(root: Path, tmp_path: Path) -> None:
    assert run(root, "ls").out == "nothing is shared\n"
    (tmp_path / "notes").write_bytes(b"one\xff\n")
    assert run(root, "put", "a.md", str(tmp_path / "notes")).out == "1\n"
    assert run(root, "put", "a.md", "-", stdin=b"two").out == "2\n"
    assert run(root, "get", "a.md").out == "two"
    assert json.loads(run(root, "get", "a.md", "--version", "1", "--json").out)["content"] == "one\ufffd\n"
    assert [row["version"] for row in json.loads(run(root, "log", "--json").out)] == [1, 2]
    assert run(root, "ls").lines[1].split()[:3] == ["a.md", "2", "1"]
    [row] = json.loads(run(root, "ls", "--json").out)
    assert (row["size"], row["task"], row["at"][:2]) == (3, "", "20")
    assert "@" in row["by"]
    (root / "context/nightly/3.0.w.bad.json").write_text("{")
    rows = {row["name"]: row for row in json.loads(run(root, "log", "--json").out)}
    assert (rows["bad"]["size"], rows["a.md"]["size"]) == (None, 3), "one that cannot be read is listed all the same"


def test_a_conflict_has_exit_code_1(root: Path) -> None:
    run(root, "put", "a", "-", stdin=b"one")
    done = run(root, "put", "a", "-", "--if-version", "0", stdin=b"two")
    assert (done.code, done.out) == (1, "")
    assert "conflict: a is at version 1, not 0: get it, merge, and put with version 1" in done.err
    assert json.loads(run(root, "put", "a", "-", "--if-version", "1", "--json", stdin=b"x").out)["version"] == 2


def test_two_that_did_not_know_of_each_other_are_told(root: Path) -> None:
    run(root, "put", "a", "-", stdin=b"one")
    (root / "context/nightly/2.0.w.a.json").write_text('{"text": "theirs"}')
    done = run(root, "get", "a")
    assert done.out == "theirs"
    assert "warning: a was put without knowledge of version 1" in done.err
    assert run(root, "ls").lines[1].split()[-1] == "1"


@pytest.mark.parametrize(
    ("words", "code"),
    [(("x",), 2), (("put", "a"), 2), (("ls", "a"), 2), (("get", "a"), 4), (("put", "a", "/not/there"), 2)],
)
def test_what_cannot_be(root: Path, words: tuple[str, ...], code: int) -> None:
    assert run(root, *words).code == code


def test_a_batch_has_to_be_named(root: Path) -> None:
    done = spool("context", "ls", root=root)
    assert "Name a batch (--batch)" in done.err
    assert done.code != 0
