"""Every verb explains itself with an example, and the command starts fast."""

import re
import subprocess
import sys

import pytest

from spoold.faces.cli.app import verb_of
from spoold.faces.cli.panels import GROUPS, START, VERBS
from spoold.store.task_location import PREFIX_MIN
from tests.cli.commands import spool


def test_the_help_names_every_verb_in_one_row_of_a_group() -> None:
    done = spool("--help", columns=80)
    listed = [verb for row in rows_of(done.lines) for verb in row]
    assert sorted(listed) == sorted(VERBS)
    assert "start here  run, submit, status, top, explain" in done.out
    assert set(START) <= set(VERBS)
    assert "Exit codes: 0 well, 1 a task failed" in done.out


def test_the_help_is_short_and_no_row_of_it_is_cut_or_broken() -> None:
    done = spool("--help", columns=80)
    assert len(done.lines) <= 60
    assert max(map(len, done.lines)) <= 80
    assert "..." not in done.out.partition("Commands:")[2]
    assert all(1 <= len(row) <= 2 for row in rows_of(done.lines))
    assert all(sum(len(verbs) for verbs, _ in some) <= 9 for some in GROUPS.values())


def test_on_a_narrow_terminal_no_word_of_the_help_is_lost() -> None:
    wide, narrow = spool("--help", columns=200), spool("--help", columns=50)
    assert narrow.out.partition("Commands:")[2].split() == wide.out.partition("Commands:")[2].split()


def test_the_list_of_verbs_costs_no_start_of_theirs() -> None:
    code = "import sys; from spoold.faces.cli.app import build; build(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.startswith("spoold.faces.cli.verbs.")]
    assert loaded == ["spoold.faces.cli.verbs.init"]


def rows_of(lines: list[str]) -> list[list[str]]:
    """The verbs of each row of the list, without what they do."""
    begin = lines.index("Commands:") + 2
    shown = lines[begin : lines.index("", begin)]
    return [re.split(r" {2,}", line[12:].strip())[0].split(", ") for line in shown]


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
