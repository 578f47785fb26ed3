"""A picture, a report or a page as a file on this machine, or to stdout: written, or replaced as a whole.

Law: what is written is exact, in UTF-8 on every terminal. A file that cannot be written is no error of the spool. Of
a file that is replaced, readers see the old one or the new one, never a part; it never lies in a spool, where nothing
is renamed onto a name that exists (`spool_layout.md`, The laws).

Touches: files, processes, the terminal.
"""

from __future__ import annotations

import contextlib
import os
from typing import Annotated, Any

import typer

from spoold.faces.cli.terminal import output
from spoold.protocol.errors import BadFile, SpoolError

OutputOption = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write into this file; else, or for -, to stdout."),
]


def older(name: str) -> Any:
    """Return the option by which a verb of an earlier release named its file. It works, and no help shows it."""
    return typer.Option(name, metavar="FILE", hidden=True)


def named(file: str | None, old: str | None, name: str) -> str | None:
    """Return the file that -o names, or that the option of an earlier release names, with a remark that it is -o now.

    name: that option. Errors: BadFile for both.
    """
    if old is None:
        return file
    if file is not None:
        raise BadFile(
            "the command line", "", f"has -o and {name}.", f"leave out {name}: it is the older word for -o."
        )
    output.remark(f"spool: {name} FILE is written -o FILE now")
    return old


def save(text: str, path: str | None, option: str = "-o") -> None:
    """Write the text. Errors: BadFile, which names the option, for a file that cannot be written."""
    data = text.encode()
    if path in (None, "-"):
        output.write_bytes(data)
        return
    try:
        with open(str(path), "wb") as file:
            file.write(data)
    except OSError as error:
        problem = f"{path} cannot be written: {error.strerror}."
        raise BadFile(
            option, "", problem, "name a file in a folder that exists and that you may write to."
        ) from error


# A file on this machine that is replaced as a whole: its readers see the old one or the new one, never a part.


def replace(path: str, text: str, *, spool: str, option: str) -> None:
    """Write the text to a file, or over it. spool: the spool's directory; option: who named the file.

    Errors: SpoolError for a place in the spool and for one that is no file; OSError.
    """
    if os.path.lexists(path) and not os.path.isfile(path):
        raise SpoolError(f"{option}: {path} is no regular file. Fix: name a file, or a new one.")
    path = os.path.realpath(path)
    root = os.path.realpath(spool)
    if os.path.commonpath((root, path)) == root:
        raise SpoolError(
            f"{option}: {path} lies in the spool, whose files are never replaced. Fix: name a local file."
        )
    new = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}.new")
    try:
        with open(new, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
