"""A pause says who asked for it and why, wherever it is seen."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import leader, make
from tests.cli.commands import Done, spool
from tests.cli.test_verbs import put, requests

Run = Callable[..., Done]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    put(root, "ready/type=review/5000.0000000001-1.open.a1f0c0.json", {"id": "open", "type": "review"})
    return root


@pytest.fixture
def run(root: Path) -> Run:
    return lambda *words: spool(*words, root=root)


def test_status_and_explain_say_the_reason(root: Path, run: Run) -> None:
    assert run("pause", "review", "--reason", "quota\x1b[2J used up").code == 0
    master = leader(root)
    shown = run("status").out
    (line,) = [line for line in shown.splitlines() if line.startswith("pause of review: asked for by ")]
    assert line.endswith("quota [2J used up")
    (told,) = json.loads(run("status", "--json").out)["pauses"]
    assert (told["verb"], told["target"], told["reason"]) == ("pause", "review", "quota\x1b[2J used up")
    explained = run("explain", "open").out
    assert "type review is paused" in explained
    assert "quota [2J used up" in explained
    assert run("resume").code == 0
    master.step()
    master.close()
    assert "pause of" not in run("status").out


def test_a_type_that_nothing_is_of_is_paused_with_a_remark(root: Path, run: Run) -> None:
    done = run("pause", "Reviw")
    assert (done.code, requests(root)) == (0, [("pause", "reviw")])
    assert "nothing here is of type reviw yet; did you mean review?" in done.err
    assert "nothing here" not in run("pause", "review").err
    assert "nothing here" not in run("pause").err
