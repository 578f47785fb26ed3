"""The scripts by which bash, zsh and fish ask what may follow: printed, or installed for the user.

Law: the shell is the one that is named. Only where none is named it is the one that `spool` was started from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

SHELLS = ("bash", "zsh", "fish")
OPTIONS = ("--show-completion", "--install-completion")
# Stands for the shell that is not named; no shell is called so.
CURRENT = "."
_METAVAR = f"[{'|'.join(SHELLS)}]"


def named(args: Iterable[str]) -> list[str]:
    """The command line with a value behind each of these options: the parser knows no value that may be missing."""
    found: list[str] = []
    for word in args:
        if found and found[-1] in OPTIONS and word.startswith("-"):
            found.append(CURRENT)
        found.append(word)
    return [*found, CURRENT] if found and found[-1] in OPTIONS else found


def _show(ctx: typer.Context, shell: str | None) -> None:
    if shell is not None:
        from typer.completion import show_callback

        show_callback(*_call(ctx, shell))


def _install(ctx: typer.Context, shell: str | None) -> None:
    if shell is not None:
        from typer.completion import install_callback

        install_callback(*_call(ctx, shell))


def _call(ctx: typer.Context, shell: str) -> tuple[Any, Any, str | bool]:
    """What typer's own callbacks take. Errors: typer.BadParameter for what is none of the shells."""
    if shell not in (*SHELLS, CURRENT):
        raise typer.BadParameter(f"{shell!r} is no shell that can complete. Name one of {', '.join(SHELLS)}.")
    return ctx, None, True if shell == CURRENT else shell


ShowOption = Annotated[
    str | None,
    typer.Option(
        "--show-completion",
        metavar=_METAVAR,
        callback=_show,
        is_eager=True,
        help="Print the script by which a shell completes; without a name, of the current shell.",
    ),
]
InstallOption = Annotated[
    str | None,
    typer.Option(
        "--install-completion",
        metavar=_METAVAR,
        callback=_install,
        is_eager=True,
        help="Install that script for yourself.",
    ),
]
