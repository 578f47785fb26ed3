"""A picture or a report to stdout, or into a file of the caller.

Law: what is written is exact, in UTF-8 on every terminal. A file that cannot be written is no error of the spool.

Touches: files, the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import output
from spoold.protocol.errors import BadFile

OutputOption = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write into this file; else, or for -, to stdout."),
]


def save(text: str, path: str | None, option: str = "--output") -> None:
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
