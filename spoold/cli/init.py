"""`spool init`: make a spool."""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.cli import output

EPILOG = """Example: spool init /mnt/share/spool"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("init", epilog=EPILOG)(init)


def init(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A new or empty directory, on the share.")],
    as_json: output.JsonOption = False,
) -> None:
    """Make a spool in a directory.

    Its tree, spool.toml to edit, and spool.json, by which it is known."""
    import os
    import uuid

    from spoold.protocol.errors import Unavailable
    from spoold.store.initialise import initialise
    from spoold.system.clock import SystemClock
    from spoold.system.posix import PosixFileSystem

    path = os.path.abspath(os.path.expanduser(directory))
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{path} cannot be made: {error.strerror}. Is the share mounted?") from error
    marker = initialise(PosixFileSystem(path), SystemClock(), uuid.uuid4().hex[:12], path)
    if as_json:
        output.print_json({"directory": path, "spool_id": marker.spool_id})
        return
    output.print_line(f"made a spool in {path}")
    output.remark(f"next: spool --spool {path} up      (settings: {os.path.join(path, 'spool.toml')})")
