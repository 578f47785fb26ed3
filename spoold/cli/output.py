"""What a verb prints: JSON for programs, columns and sentences for people. Data goes to stdout, remarks to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from spoold.protocol.result import Result

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
TaskArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A task: its id, or the beginning of it, from 4 characters on.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only, one a line.")]


def print_json(value: Any, *, compact: bool = False) -> None:
    """A model, dataclass or plain value as JSON: indented, or on one line."""
    import orjson
    from pydantic import BaseModel

    def plain(other: Any) -> Any:
        if isinstance(other, BaseModel):
            return other.model_dump(mode="json")
        return str(other)

    option = 0 if compact else orjson.OPT_INDENT_2
    print_line(orjson.dumps(value, default=plain, option=option).decode())


def print_line(text: str) -> None:
    """One line of data; what the terminal's encoding cannot say is shown as an escape."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def why_ended(result: Result) -> str:
    """Why an attempt ended as it did: a code and a sentence; its status where nothing else is known."""
    return f"{result.error.code}: {result.error.message}" if result.error else str(result.status)


def remark(text: str) -> None:
    """Something for the person at the terminal, which no program should read."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns, each as wide as its widest cell; the last one is not padded."""
    cells = [[one_line(str(cell)) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        print_line("  ".join([*padded, row[-1]]).rstrip())


def one_line(text: str, limit: int = 120) -> str:
    """The text without line breaks and control characters, cut where it gets long."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def write_bytes(data: bytes) -> None:
    """A piece of a log, as it is: it may be in any encoding, or in none."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    flush()


def hush() -> None:
    """Nobody reads any more: the interpreter must not try to flush the rest at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush() -> None:
    """Show what was printed: somebody watches."""
    sys.stdout.flush()
