"""`spool limits`: what there is, what is closed, and how it is closed and opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import leader, make
from tests.cli.commands import Done, spool
from tests.cli.test_verbs import put, requests

Run = Callable[..., Done]
SETTINGS = """
[limits.llm]
max = 3
rate = {count = 9, per_s = 60}
[limits.own]
per = "worker"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    (root / "spool.toml").write_text(SETTINGS)
    return root


@pytest.fixture
def run(root: Path) -> Run:
    return lambda *words: spool(*words, root=root)


def test_they_are_listed_with_and_without_a_leader(root: Path, run: Run) -> None:
    rows = {row["name"]: row for row in json.loads(run("limits", "--json").out)}
    assert (rows["llm"]["max"], rows["llm"]["used"], rows["llm"]["closed"]) == (3, None, False)
    assert rows["own"]["per"] == "worker"
    master = leader(root)
    master.step()
    shown = run("limits").out
    master.close()
    assert "0 of 9 in 60 s" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("own")]
    assert line.split() == ["own", "worker", "-", "-", "-", "no"]


def test_types_of_which_only_so_many_may_run_are_listed(root: Path, run: Run) -> None:
    """H8: `limits` did not show max_concurrent."""
    (root / "spool.toml").write_text("[types.review]\nmax_concurrent = 5\n")
    assert [line.split() for line in run("limits").lines] == [
        ["TYPE", "READY", "OR", "RUNNING", "MAX_CONCURRENT"],
        ["review", "-", "5"],
    ]
    put(root, "pending/one.json", {"id": "one", "type": "review"})
    master = leader(root)
    for _ in range(5):
        master.step()
    shown = run("limits").lines
    master.close()
    assert shown[-1].split() == ["review", "1", "5"]
    (root / "spool.toml").write_text(f"{SETTINGS}[types.review]\nmax_concurrent = 5\n")
    assert [line.split()[:1] for line in run("limits").lines] == [
        ["LIMIT"],
        ["llm"],
        ["own"],
        [],
        ["TYPE"],
        ["review"],
    ]
    assert [row["name"] for row in json.loads(run("limits", "--json").out)] == ["llm", "own"]


def test_without_limits_it_says_so(tmp_path: Path) -> None:
    assert "no limits: spool.toml names none" in spool("limits", root=make(tmp_path / "s")).out


def test_one_is_closed_and_opened(root: Path, run: Run) -> None:
    done = run("limits", "close", "LLM", "--for", "2h", "--reason", "blocked")
    assert done.code == 0
    assert "limit llm will be closed until" in done.err
    assert "or `spool limits open llm`" in done.err
    assert requests(root) == [("close", "llm")]
    shown = run("limits").out
    assert "until" in shown
    assert "blocked" in shown
    (row,) = [row for row in json.loads(run("limits", "--json").out) if row["name"] == "llm"]
    assert (row["closed"], bool(row["until"])) == (True, True)
    assert "limit llm will be open" in run("limits", "open", "llm").err
    assert ("open", "llm") in requests(root)


def test_a_closed_limit_that_spool_toml_does_not_name_is_listed_while_it_stands(root: Path, run: Run) -> None:
    """It held nothing and could be opened, but nothing showed it."""
    put(root, "control/quota.ghost.a-1.json", {"reason": "task t"})
    (line,) = [line for line in run("limits").out.splitlines() if line.startswith("ghost")]
    assert ("spool.toml names no such limit" in line, "task t" in line) == (True, True)
    (row,) = [row for row in json.loads(run("limits", "--json").out) if row["name"] == "ghost"]
    assert (row["per"], row["max"], row["rate"], row["closed"]) == ("-", None, None, True)
    assert "limit ghost will be open" in run("limits", "open", "ghost").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("shut", "llm"), "write `spool limits open NAME` or `spool limits close NAME`."),
        (("close",), "says close and names no limit"),
        (("close", "lm"), "did you mean llm?"),
        (("open", "lm"), "did you mean llm?"),
        (("open", "llm", "--for", "2h"), "leave out --for and --until"),
        (("close", "llm", "--for", "2h", "--until", "2999-01-01T00:00:00Z"), "keep one of them"),
        (("close", "llm", "--until", "2001-01-01T00:00:00Z"), ""),
    ],
)
def test_a_wrong_command_line_names_the_fix(root: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    done = run("limits", *words)
    assert done.code == 2
    assert said.replace("'", "") in done.err.replace("'", "")
    assert requests(root) == []
