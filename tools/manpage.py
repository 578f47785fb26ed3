"""Man pages from the command line itself: spool.1, and spool-VERB.1 for each verb.

Law: every word is one that `--help` prints; a page adds only its headings, and the exit codes of the whole command.
Touches: the folder that it is given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from spoold import __version__
from spoold.faces.cli import panels
from spoold.faces.cli.app import build

_EXAMPLE, _EXIT = "Example: ", "Exit codes: "


def pages() -> dict[str, str]:
    """Each page by the name of its file."""
    group: Any = typer.main.get_command(build([]))
    top = _context(group, "spool", None)
    verbs = {name: group.get_command(top, name) for name in group.list_commands(top)}
    whole = _paragraphs(group.epilog)
    found = {"spool.1": "\n".join(_page(top, whole, list(verbs)))}
    for name, verb in verbs.items():
        found[f"spool-{name}.1"] = "\n".join(_page(_context(verb, name, top), whole, []))
    return {name: f"{page}\n" for name, page in found.items()}


def write(folder: Path) -> list[Path]:
    """Write all pages into a folder, which is made if it is not there; returns them. Errors: OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, page in pages().items():
        (folder / name).write_text(page, encoding="utf-8")
        written.append(folder / name)
    return written


def _context(command: Any, name: str, parent: Any) -> Any:
    # All that a command line may bring along is left out, so that nothing of this machine gets into a page.
    settings = {**command.context_settings, "terminal_width": 1000, "max_content_width": 1000}
    return command.context_class(command, info_name=name, parent=parent, **settings)


def _page(context: Any, whole: list[str], verbs: list[str]) -> Iterator[str]:
    """The lines of one page. whole: the paragraphs below the help of all verbs; verbs: their names, in spool.1."""
    command, name = context.command, context.command_path.replace(" ", "-")
    paragraphs, below = _paragraphs(command.help), _paragraphs(command.epilog)
    yield f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "spoold {__version__}" "spoold"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(_first(paragraphs))}"
    yield ".SH SYNOPSIS"
    yield f".B {_text(context.command_path)}"
    yield _text(" ".join(command.collect_usage_pieces(context)))
    yield ".SH DESCRIPTION"
    for paragraph in paragraphs:
        yield from (".PP", _text(paragraph))
    records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            records[parameter.param_type_name].append(record)
    yield from _section("ARGUMENTS", records["argument"])
    yield from _section("OPTIONS", records["option"])
    yield from _commands() if verbs else ()
    examples = [text.removeprefix(_EXAMPLE) for text in below if text.startswith(_EXAMPLE)]
    if examples:
        yield ".SH EXAMPLES"
    for example in examples:
        yield from (".PP", ".nf", _text(example), ".fi")
    yield ".SH EXIT STATUS"
    for text in [*whole, *(below if below != whole else ())]:
        if not text.startswith(_EXAMPLE):
            yield from (".PP", _text(text))
    yield ".SH SEE ALSO"
    others = (".BR spool (1)",) if not verbs else (f".BR spool\\-{_text(verb)} (1)" for verb in verbs)
    yield from others


def _commands() -> Iterator[str]:
    """The verbs by groups, as `spool --help` has them."""
    yield ".SH COMMANDS"
    before = ""
    for title, names, said in panels.rows():
        if title != before:
            yield f".SS {_text(title)}"
        yield from (".TP", f".B {_text(names)}", _text(said)) if said else (".PP", _text(names))
        before = title


def _section(title: str, records: list[tuple[str, str]]) -> Iterator[str]:
    if records:
        yield f".SH {title}"
    for term, text in records:
        yield from (".TP", f".B {_text(term)}", _text(text))


def _paragraphs(text: str | None) -> list[str]:
    """What --help wraps anew: paragraphs without their line breaks."""
    parts = (text or "").replace("\b", "").split("\n\n")
    return [" ".join(part.split()) for part in parts if part.strip()]


def _first(paragraphs: list[str]) -> str:
    return paragraphs[0].removesuffix(".") if paragraphs else ""


def _text(text: str) -> str:
    """The text as roff takes it: every character is itself, and no line is a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    escaped = escaped.replace("^", "\\(ha").replace("~", "\\(ti").replace('"', "\\(dq")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    print(*write(Path(sys.argv[1])), sep="\n")
