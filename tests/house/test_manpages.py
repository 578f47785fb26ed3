"""A man page says what --help says: each sentence of each verb, and roff takes it without a warning."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from spoold.faces.cli.panels import VERBS
from tests.cli.help import sentences
from tools.manpage import pages, write

PAGES = pages()
ROFF = {"\\-": "-", "\\e": "\\", "\\(aq": "'", "\\(ga": "`", "\\(dq": '"', "\\(ha": "^", "\\(ti": "~", "\\&": ""}


def read(page: str) -> str:
    """The words of a page, in one line: no request, no escape."""
    kept = [line for line in page.splitlines() if not re.match(r"\.(?!B |SS )", line)]
    lines = [re.sub(r"^\.(B|SS) ", "", line) for line in kept]
    text = re.sub(r"\\\[u([0-9A-F]{4})\]", lambda code: chr(int(code[1], 16)), " ".join(lines))
    text = re.sub("|".join(map(re.escape, ROFF)), lambda found: ROFF[found[0]], text)
    return " ".join(text.split())


def test_there_is_a_page_for_each_verb() -> None:
    assert set(PAGES) == {"spool.1", *(f"spool-{verb}.1" for verb in VERBS)}


@pytest.mark.parametrize("verb", [None, *VERBS])
def test_a_page_holds_each_sentence_of_the_help(verb: str | None) -> None:
    page = read(PAGES["spool.1" if verb is None else f"spool-{verb}.1"])
    said = sentences(verb)
    assert len(said) >= 5
    missing = [sentence for sentence in said if sentence not in page]
    assert not missing


def test_a_sentence_that_is_missing_would_be_seen() -> None:
    assert any(sentence not in read(PAGES["spool-ls.1"]) for sentence in sentences("submit"))


def test_no_line_of_the_help_is_taken_for_a_request() -> None:
    """A line of text that began with a dot would vanish, and what it says with it."""
    known = r"\.(TH|SH|SS|PP|TP|B|BR|nf|fi)( |$)"
    for name, page in PAGES.items():
        assert [
            line for line in page.splitlines() if line.startswith((".", "'")) and not re.match(known, line)
        ] == [], name


def test_roff_finds_nothing_to_warn_of(tmp_path: Path) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed here")
    for page in write(tmp_path):
        done = subprocess.run(
            [groff, "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), page.name


def test_the_command_line_of_no_machine_gets_into_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("SPOOL_DIR", "/somewhere")
    assert pages() == PAGES
