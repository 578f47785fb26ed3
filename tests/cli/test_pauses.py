"""A pause says who asked for it and why, wherever it is seen."""

import json
import re
import time
from collections.abc import Callable
from datetime import datetime
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


def test_a_pause_for_a_while_ends_by_itself_and_says_until_when(root: Path, run: Run) -> None:
    begun = time.time()
    done = run("pause", "review", "--for", "3s", "--reason", "quota")
    assert done.code == 0
    (until,) = re.findall(r"tasks of type review will be held until (\S+Z) or `spool resume`", done.err)
    assert begun + 3 <= datetime.fromisoformat(until).timestamp() <= time.time() + 4.1
    master = leader(root)
    assert f"pause of review until {until}: asked for by " in run("status").out
    (told,) = json.loads(run("status", "--json").out)["pauses"]
    assert (told["target"], told["until"], told["reason"]) == ("review", until, "quota")
    explained = run("explain", "open").out
    assert re.search(rf"type review is paused: \d s more, until {until}; asked for by .*: quota", explained)
    assert "time; or `spool resume review`" in explained
    assert (root / "waiting/type=review").exists()
    while requests(root):
        step = master.step()
        assert step.next_due is not None
        assert step.next_due <= time.monotonic() + 5
        time.sleep(0.05)
    assert time.time() >= datetime.fromisoformat(until).timestamp()
    assert len(list((root / "ready/type=review").iterdir())) == 1
    assert "pause of" not in run("status").out
    assert "PAUSE_ENDED" in run("events").out
    master.close()


def test_a_pause_until_a_moment(root: Path, run: Run) -> None:
    done = run("pause", "--until", "2999-01-31T18:00:00+01:00")
    assert (done.code, requests(root)) == (0, [("pause", "+all")])
    assert "all tasks will be held until 2999-01-31T18:00:00+01:00 or `spool resume`" in done.err
    assert "another pause of everything" in run("pause", "review", "--for", "1m").err
    assert "until 2999-01-31T17:00:00Z" in run("explain", "open").out
    assert "pause of everything until 2999-01-31T18:00:00+01:00: asked for by" in run("status").out
    assert "the whole spool is paused" in run("ls", "--long").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for", "soon"), "--for: 'soon' is no time."),
        (("--for", "0"), "over already"),
        (("--until", "18:00"), "--until: '18:00' is no moment with a zone."),
        (("--until", "2026-01-31T18:00:00"), "is no moment with a zone."),
        (("--until", "2001-01-31T18:00:00Z"), "over already: name a moment after 2"),
        (("--for", "1m", "--until", "2999-01-31T18:00:00Z"), "has both --for and --until"),
        (("--for", "99999999d"), "no calendar has the moment"),
    ],
)
def test_an_end_that_is_none_is_refused_and_nothing_is_paused(
    root: Path, run: Run, words: tuple[str, ...], said: str
) -> None:
    done = run("pause", *words)
    assert (done.code, requests(root)) == (2, [])
    assert said in done.err
