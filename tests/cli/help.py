"""What `--help` prints, sentence by sentence, however wide its reader's terminal is."""

from __future__ import annotations

import re

from typer.testing import CliRunner

from spoold.faces.cli.app import build

_HEADINGS = re.compile(r"^(Usage|Arguments|Options|Commands):")


def sentences(verb: str | None) -> list[str]:
    """The sentences of the help of a verb, or of the whole command, without headings and without `Example:`.

    A verb's line in the list of all verbs may be cut short; its own page has it in full.
    """
    words = ["--help"] if verb is None else [verb, "--help"]
    result = CliRunner().invoke(
        build(words), words, prog_name="spool", terminal_width=100_000, max_content_width=100_000
    )
    assert result.exit_code == 0, result.output
    found: list[str] = []
    for line in result.output.splitlines():
        for part in re.split(r" {2,}", line.strip()):
            if part and not _HEADINGS.match(part):
                found += re.split(r"(?<=[.:;])\s+", part.removeprefix("Example: "))
    return [sentence.removesuffix("...").rstrip(".") for sentence in found if sentence]
