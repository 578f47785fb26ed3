"""Every verb explains itself with an example, and the command starts fast."""

import re
import subprocess
import sys

import pytest

from spoold.faces.cli.app import VERBS, verb_of
from spoold.store.task_location import PREFIX_MIN
from tests.cli.commands import spool


def test_the_help_names_every_verb() -> None:
    done = spool("--help")
    listed = {line.split()[0] for line in done.lines if line.startswith("  ") and line.split()}
    assert set(VERBS) <= listed
    assert "Exit codes: 0 well, 1 a task failed" in done.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example_of_itself(verb: str) -> None:
    done = spool(verb, "--help")
    assert done.code == 0
    assert "Usage: spool" in done.out
    example = done.out.partition("Example")[2]
    assert "spool" in example, done.out
    assert verb in example, done.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained(verb: str) -> None:
    """An option's explanation stands behind it, or below it further in."""
    lines = spool(verb, "--help").lines
    options = [number for number, line in enumerate(lines) if re.match(r"  -", line)]
    assert options
    for number in options:
        explained = re.search(r"\S {2,}\S", lines[number]) or lines[number + 1].startswith(" " * 10)
        assert explained, lines[number]


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_shows_no_types_of_python(verb: str) -> None:
    shown = spool(verb, "--help").out
    assert not re.search(r"<[a-z]|TEXT\.\.\.|INTEGER", shown), shown


@pytest.mark.parametrize(
    ("verb", "row"),
    [
        ("submit", "FILE  A task"),
        ("wait", "ID  Tasks, by their whole ids"),
        ("pause", "--reason TEXT"),
        ("worker", "--name NAME"),
        ("doctor", "--files N"),
        ("doctor", "[DIR]  A directory on the share"),
        ("init", "--claim HOW"),
        ("drain", "WORKER  Their ids"),
    ],
)
def test_the_help_names_what_is_to_be_written(verb: str, row: str) -> None:
    assert row in " ".join(spool(verb, "--help").out.replace("  ", "\0").split()).replace("\0", "  ")


@pytest.mark.parametrize("verb", ["show", "explain", "history", "tree", "logs"])
def test_the_help_says_how_much_of_an_id_is_a_beginning(verb: str) -> None:
    assert f"from {PREFIX_MIN} characters on" in " ".join(spool(verb, "--help").out.split())


def test_an_unknown_verb_is_a_usage_error_that_guesses() -> None:
    done = spool("sumbit")
    assert done.code == 2
    assert "submit" in done.err


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        (["submit", "--type", "x"], "submit"),
        (["--spool", "run", "ls"], "ls"),
        (["--spool=x", "--debug", "wait"], "wait"),
        (["--help"], None),
        (["--version", "ls"], None),
        ([], None),
    ],
)
def test_the_verb_of_a_command_line(words: list[str], verb: str | None) -> None:
    assert verb_of(words) == verb


def test_a_verb_imports_neither_other_verbs_nor_what_only_a_run_of_it_needs() -> None:
    code = "import sys; from spoold.faces.cli.app import build; build(['submit']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    verbs = {f"spoold.faces.cli.verbs.{module}" for module in VERBS.values()}
    assert verbs & loaded == {"spoold.faces.cli.verbs.submit"}
    rooms = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("spoold.")}
    assert rooms == {"spoold.faces", "spoold.protocol"}
    assert not {"pydantic", "rich", "psutil"} & loaded


def test_shell_completion_is_on() -> None:
    assert "--install-completion" in spool("--help").out
