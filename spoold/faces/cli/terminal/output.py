"""The output of a verb: JSON for programs, columns and sentences for people. Data goes to stdout, remarks to stderr.

Law: any member may write names and messages in a spool. Output for people shows their control characters as escapes:
they could clear the screen or forge a line. Output for programs is exact: JSON, and the output of a task; on a
terminal that, too, is for people: its text and its colours. Whatever one file of others adds to output for people has
a bound: of lines (`few`), and of the characters of each (`sentence`, `one_line`). Output for programs is whole, and
so is what a person is asked to confirm.

Touches: files, the terminal.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from spoold.faces.cli.terminal import completion
from spoold.protocol.amount import amount, clip, figure

if TYPE_CHECKING:
    from spoold.protocol.result import Result, Total

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
TaskArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A task, by its whole id.", autocompletion=completion.ids)
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only ids, one per line.")]

T = TypeVar("T")

# Characters of a sentence with words of others, of which a member may make as many as a file holds.
SENTENCE_MAX = 2000
# On a terminal with fewer columns a table cannot be read.
STACK_BELOW = 60
# Characters of a cell, and the fewest of a last one that is cut where the terminal ends.
CELL_MAX, LAST_LEAST = 120, 20

# Control characters, also those of 8 bits, marks for right-to-left text, and lone surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """Return the text with its line breaks and tabs, and every other control character as an escape."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def within(text: str) -> str:
    """Return the same for a name or message within a line: line breaks and tabs are escapes, too."""
    return harmless(text).replace("\n", "\\n").replace("\t", "\\t")


def quoted(text: str, limit: int = 200) -> str:
    """Return a line that a task wrote, within a sentence: with escapes as in `within`, and cut to the limit."""
    shown = within(text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def print_json(value: Any, *, compact: bool = False) -> None:
    """Print a model, dataclass or plain value as JSON: indented, or on one line."""
    import orjson

    def plain(other: Any) -> Any:
        dump = getattr(other, "model_dump", None)
        return str(other) if dump is None else dump(mode="json")

    option = 0 if compact else orjson.OPT_INDENT_2
    text = orjson.dumps(value, default=plain, option=option).decode()
    # The same value to a program; orjson leaves these as they are, and a terminal obeys some of them.
    print_exactly(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if sys.stdout.isatty() else text)


def print_line(text: str) -> None:
    """Print one line for people."""
    print_exactly(harmless(text))


def print_exactly(text: str) -> None:
    """Print one line as it is: data, or harmless text. A character that the encoding lacks becomes an escape."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def summed(total: Total) -> str:
    """Return the sums of some attempts, as far as they are known."""
    parts = [amount(total.attempts, "attempt"), f"{figure(total.duration_s, 1)} s"]
    if total.cpu_s is not None:
        parts.append(f"{figure(total.cpu_s, 1)} s of CPU")
    return ", ".join([*parts, *spent(total.tokens_used, total.cost_usd)])


def spent(tokens: float | None, cost_usd: float | None) -> list[str]:
    """Return tokens and cost in words, as far as they are known."""
    parts = [amount(round(tokens), "token")] if tokens else []
    return [*parts, *([f"{figure(cost_usd, 4)} USD"] if cost_usd else [])]


def why_ended(result: Result) -> str:
    """Return why an attempt ended: a code and a sentence; its status where nothing else is known."""
    from spoold.protocol.result import why_ended as why

    return why(result) or str(result.status)


def remark(text: str) -> None:
    """Print a remark on stderr, for the person at the terminal."""
    sys.stdout.flush()
    print(wrapped(harmless(text), width(sys.stderr)), file=sys.stderr, flush=True)


def confirmed(question: str) -> bool:
    """Ask on a terminal, and return whether the answer is yes; without a terminal it is yes unasked."""
    if not may_ask():
        return True
    sys.stdout.flush()
    print(harmless(f"{question} [y/N]"), end=" ", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def may_ask() -> bool:
    """Return whether a person can be asked: who reads stderr also types."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def width(stream: TextIO | None = None) -> int | None:
    """Return the terminal's columns; None for a file or a pipe, which has no width, and is searched."""
    if not (stream or sys.stdout).isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def wrapped(text: str, columns: int | None, indent: str = "") -> str:
    """Return the text in lines of so many columns, broken only between words, so that long words can be copied.
    indent: of the lines after the first."""
    if columns is None or len(text) <= columns:
        return text
    import textwrap

    begin = text[: len(text) - len(text.lstrip())]
    words = textwrap.TextWrapper(
        max(columns, len(indent) + 1),
        initial_indent=begin,
        subsequent_indent=indent or begin,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join("\n".join(words.wrap(line)) for line in text.lstrip().split("\n"))


def print_prose(text: str, indent: str = "") -> None:
    """Print a sentence for people, broken between words at the terminal's width. indent: as for `wrapped`."""
    print_line(wrapped(harmless(text), width(), indent))


def stacks(columns: int | None) -> bool:
    """Return whether a table has no room, so that each row becomes a block of lines."""
    return columns is not None and columns < STACK_BELOW


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, fit: bool = False) -> None:
    """Print columns, each as wide as its widest cell, the last not padded; on a narrow terminal a block per row.

    fit: cut the last one where the terminal ends, but leave it LAST_LEAST columns.
    """
    cells = [[one_line(str(cell)) for cell in row] for row in [header, *rows]]
    if stacks(columns := width()):
        for line in stacked(cells[0], cells[1:], columns):
            print_line(line)
        return
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    room = max(LAST_LEAST, columns - sum(widths[:-1]) - 2 * (len(widths) - 1)) if fit and columns else CELL_MAX
    for row in cells:
        padded = [cell.ljust(size) for cell, size in zip(row[:-1], widths, strict=False)]
        print_line("  ".join([*padded, one_line(row[-1], room)]).rstrip())


def stacked(header: Sequence[str], rows: Iterable[Sequence[str]], columns: int | None) -> Iterator[str]:
    """Yield each row as lines `field: value`, without empty fields, and an empty line between two rows."""
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, cell in zip(header, row, strict=True):
            if cell not in ("", "-"):
                yield wrapped(f"{name.lower()}: {cell}", columns, "  ")


def one_line(text: str, limit: int = CELL_MAX) -> str:
    """Return the text without line breaks and control characters, cut to the limit."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def sentence(text: str) -> str:
    """Return a whole sentence on one line. A forged one is cut in its middle: the fix, often with a path, is last."""
    return clip(one_line(text, len(text)), SENTENCE_MAX)


def few(lines: Sequence[T], most: int) -> tuple[list[T], str]:
    """Return the first of these lines, which others have written, and a line on the number of the others, if any."""
    more = len(lines) - most
    return list(lines[:most]), f"… and {amount(more, 'more line')}; --json has all" if more > 0 else ""


def print_data(text: str) -> None:
    """Print a line that a task or a person wrote, as `write_bytes` does. A lone surrogate becomes an escape."""
    write_bytes(f"{text}\n".encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def write_bytes(data: bytes) -> None:
    """Write what a task or a person wrote: to a file or a pipe as it is, to a terminal its text and its colours."""
    Log().show(data, last=True)


class Log:
    """Writes the log of one task, in pieces and in any encoding: to a file or a pipe as it is, to a terminal its text
    and its colours alone."""

    def __init__(self) -> None:
        from spoold.pictures.log_colours import Terminal

        self._terminal = Terminal() if sys.stdout.isatty() else None

    def show(self, data: bytes, *, last: bool = False) -> None:
        """Write a piece. last: no other piece comes."""
        if self._terminal is not None:
            text = self._terminal.feed(data, last=last)
            data = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        flush()


def flush() -> None:
    """Flush stdout, for a person who watches."""
    sys.stdout.flush()
