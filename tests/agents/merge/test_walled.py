"""Tests of a merge in the sandbox that its worker names: they judge, and reach nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.agents.merge.testing import Walled
from spoold.agents.sandbox.sandbox_policy import NoSandbox
from tests.agents.merge.test_program import Handler, edited
from tests.agents.workspace.repos import Remote


@pytest.fixture
def handler(tmp_path: Path, bubblewrap: None) -> Handler:
    return Handler(tmp_path, Remote(tmp_path))


def test_nothing_that_tests_run_reaches_what_lies_outside(
    handler: Handler, capfd: pytest.CaptureFixture[str]
) -> None:
    """G1: setup, tests and what lists them run what agents wrote, and ran it as the worker's user."""
    canary, spool = handler.top / "canary", handler.top / "spool"
    canary.write_text("a key")
    spool.mkdir()
    handler.env = {"SPOOL_ROOT": str(spool), "PATH": "/usr/bin:/bin", "SECRET_OF_LINES": "s"}
    evil = f"""
        cat {canary} && touch {canary}.read; echo x >> {canary}; touch {spool}/x {handler.remote.path}/x
        printf %s "${{SPOOL_MERGE-}}${{SPOOL_ROOT-}}" > seen; echo "$SECRET_OF_LINES" > "$HOME/once"
        rm -rf .git; ln -s {handler.top} .git
        exit 0
    """
    edited(handler, files={"evil.sh": evil})
    runs = "test ! -e evil.sh || sh evil.sh"
    lines = ["--setup", runs, "--test", runs, "--no-fewer-tests", f"{runs}; echo 3 tests"]
    judged = ["--test", 'test ! -s seen && test -e "$HOME/once" && test ! -e ' + str(handler.remote.path)]
    code = handler.run("--sandbox", "bwrap", *lines, *judged)
    assert code == 0, capfd.readouterr()
    assert canary.read_text() == "a key"
    assert not (handler.top / "canary.read").exists()
    assert list(spool.iterdir()) == []
    assert not (handler.remote.path / "x").exists()
    assert "a key" not in capfd.readouterr().out


def test_git_works_in_there_and_what_fails_is_said(handler: Handler) -> None:
    said = edited(handler)
    assert handler.run("--sandbox", "bwrap", "--test", "git log -1 --format=%s && git cat-file -e HEAD^2") == 0
    assert handler.result["landed"][0]["commit"] == said["commit"]
    edited(handler, "bad", {"bad.txt": "x\n"})
    assert handler.run("--sandbox", "bwrap", "--test", "echo so; test ! -e bad.txt", tasks=("bad",)) == 65
    assert "`echo so; test ! -e bad.txt` ended with 1: so" in handler.result["refused"][0]["detail"]
    edited(handler, "slow", {"slow.txt": "x\n"})
    words = ("--within", "0.5", "--test", "test ! -e slow.txt || sleep 60")
    assert handler.run("--sandbox", "bwrap", *words, tasks=("slow",)) == 65
    assert "ended with 124: it has not ended within 0.5 s" in handler.result["refused"][0]["detail"]


def test_each_checkout_has_a_home_of_its_own(handler: Handler) -> None:
    edited(handler, "bad", {"bad.txt": "x\n"})
    edited(handler, "good", {"good.txt": "x\n"})
    poisons = 'test ! -e bad.txt || { touch "$HOME/poison"; exit 1; }'
    words = ("--setup", 'test ! -e "$HOME/poison"', "--test", poisons)
    assert handler.run("--sandbox", "bwrap", *words, tasks=("bad", "good")) == 65
    assert [one["task"] for one in handler.result["landed"]] == ["good"]
    assert "poison" in handler.result["refused"][0]["detail"]


def test_a_sandbox_that_is_not_to_be_had_tests_nothing(
    handler: Handler, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(*given: object) -> None:
        raise NoSandbox("there is no bwrap", "install it")

    monkeypatch.setattr("spoold.agents.process.confinement.entered", refuses)
    edited(handler)
    assert handler.run("--sandbox", "bwrap", "--test", "true") == 126
    assert "there is no bwrap. Install it." in capsys.readouterr().err
    assert handler.remote.commit("main") == handler.remote.first


def test_a_line_that_misses_something_in_there_is_given_a_hint(tmp_path: Path, bubblewrap: None) -> None:
    (tmp_path / "1" / "tree").mkdir(parents=True)
    run = Walled("bwrap", {"PATH": "/usr/bin:/bin"}, ())
    code, said = run("cat /srv/nowhere", str(tmp_path / "1" / "tree"), None)
    assert code == 1
    assert "what `show` lists can be read" in said
