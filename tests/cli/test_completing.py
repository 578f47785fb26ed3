"""What a shell offers behind Tab, and that it never waits for a share, nor hears of one."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from spoold.faces.cli.app import words
from spoold.faces.cli.terminal import completion
from tests.cli.command import make
from tests.cli.commands import environment
from tests.cli.commands import spool as run
from tests.cli.test_verbs import end, put

ASK = {
    "bash": lambda line: {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)},
    "zsh": lambda line: {"_TYPER_COMPLETE_ARGS": line},
    "fish": lambda line: {
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": "",
    },
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    end(root, "good")
    end(root, "bad", "failed")
    put(root, "ready/type=review/5000.0000000001-1.open.a1f0c0.json", {"id": "open", "type": "review", "batch": "b2"})
    put(root, "heartbeats/lap-aaaaa.1.json", {"capabilities": {"handlers": ["render"]}})
    put(root, "heartbeats/m-desk-bbbbb.1.json", {"role": "master"})
    return root


def offered(root: Path, line: str, shell: str = "bash") -> list[str]:
    """The words that are offered at the end of a line."""
    done = asked(root, line, shell)
    assert done.stderr == b""
    text = done.stdout.decode()
    if shell == "zsh":
        return [part.split('"')[1] for part in text.split() if part.startswith('"')]
    return text.split()


def asked(root: Path, line: str, shell: str = "bash") -> subprocess.CompletedProcess[bytes]:
    env = {**environment(root), "_SPOOL_COMPLETE": f"complete_{shell}", **ASK[shell](line)}
    return subprocess.run([sys.executable, "-m", "spoold"], env=env, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("spool show ", ["open", "good", "bad"]),
        ("spool show g", ["good"]),
        ("spool cancel ", ["open"]),
        ("spool retry ", ["bad"]),
        ("spool ls --state re", ["ready", "rejected"]),
        ("spool ls --state failed,re", ["failed,ready", "failed,rejected"]),
        ("spool ls --type ", ["render", "review"]),
        ("spool pause rev", ["review"]),
        ("spool drain ", ["lap", "lap-aaaaa"]),
        ("spool status --batch ", ["b1", "b2"]),
        ("spool can", ["cancel"]),
    ],
)
def test_what_fits_is_offered(root: Path, line: str, meant: list[str]) -> None:
    assert offered(root, line) == meant


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_hear_the_same(root: Path, shell: str) -> None:
    assert b"bad" in asked(root, "spool retry ", shell).stdout
    assert b"good" not in asked(root, "spool retry ", shell).stdout


def test_the_spool_of_the_command_line_is_meant(root: Path, tmp_path: Path) -> None:
    assert offered(tmp_path, f"spool --spool {root} retry ") == ["bad"]
    assert offered(tmp_path, f"spool retry --spool {root} ") == ["bad"]


@pytest.mark.parametrize("line", ["spool show ", "spool pause ", "spool drain ", "spool status --batch "])
def test_a_spool_that_cannot_be_reached_is_silence(tmp_path: Path, line: str) -> None:
    done = asked(tmp_path / "nowhere", line)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, b"", b"")


def test_a_share_that_hangs_is_not_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "_opened", lambda _: time.sleep(30))
    monkeypatch.setenv("_SPOOL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "spool show ")
    monkeypatch.setenv("COMP_CWORD", "2")
    before = time.monotonic()
    done = run(root=root)
    assert (done.code, done.out.strip(), done.err) == (0, "", "")
    assert completion.PATIENCE_S <= time.monotonic() - before < 20


def test_only_the_verb_that_is_completed_is_loaded() -> None:
    bash = {"_SPOOL_COMPLETE": "complete_bash", "COMP_WORDS": "spool show a"}
    assert words([], bash) == ["show"]
    assert words([], {**bash, "COMP_WORDS": "spool show"}) == []
    assert words([], {"_SPOOL_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "spool ls "}) == ["ls"]
    assert words(["ls"], {}) == ["ls"]


MARKS = {"bash": "COMPREPLY", "zsh": "#compdef spool", "fish": "complete --command spool"}


@pytest.mark.parametrize("shell", MARKS)
@pytest.mark.parametrize("written", ["--show-completion {}", "--show-completion={}"])
def test_the_script_is_that_of_the_shell_that_is_named(tmp_path: Path, shell: str, written: str) -> None:
    done = run(*written.format(shell).split())
    assert (done.code, done.err) == (0, "")
    assert [other for other, mark in MARKS.items() if mark in done.out] == [shell]
    run_as = {**environment(tmp_path), "PATH": "/usr/bin:/bin"}
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.out.encode(), env=run_as, check=True, timeout=60)


def test_a_shell_that_cannot_complete_is_refused() -> None:
    done = run("--show-completion", "tcsh")
    assert done.code == 2
    assert "'tcsh' is no shell that can complete. Name one of bash, zsh, fish." in done.err


def test_without_a_name_it_is_the_current_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "fish")
    for words_ in (["--show-completion"], ["--show-completion", "--debug"]):
        done = run(*words_)
        assert (done.code, MARKS["fish"] in done.out) == (0, True)


def test_help_names_the_shells() -> None:
    done = run("--help")
    assert "--show-completion [SHELL]" in done.out
