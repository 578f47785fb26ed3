"""The scripts by which bash, zsh and fish ask for completions: printed, or installed for the user.

Law: a named shell counts. Only without a name it is the shell that started `spool`.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

SHELLS = ("bash", "zsh", "fish")
OPTIONS = ("--show-completion", "--install-completion")
# Stands for a shell without a name; no shell is called so.
CURRENT = "."
_METAVAR = f"[{'|'.join(SHELLS)}]"


def named(args: Iterable[str]) -> list[str]:
    """Return the command line with a value behind each of these options: the parser has no optional values."""
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
    """Return the arguments for typer's own callbacks. Errors: typer.BadParameter for an unknown shell."""
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
        help="Print a shell's completion script; without a name, for the current shell.",
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
