"""Completion at Tab: the words that a shell offers, of the command line's spool, and the scripts by which it asks.

Law: an answer within one second, or none, and no other output: a share that hangs must not hang a prompt. So a thread
looks at the spool, and the program does not wait longer for it. A named shell counts; only without a name it is the
shell that started `spool`.

Touches: threads, the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from spoold.client.read.completion import Store


# The rest of the second after the start of Python and of the shell's own script.
PATIENCE_S = 0.5
MOST = 200
READ_MOST = 1000
# These take long to import, and are imported before the share's time begins.
_MODELS = ("spoold.protocol.heartbeat", "spoold.protocol.settings")
_SELECTING = ("spoold.client.read.selecting", *_MODELS)


def ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """All tasks."""
    return _offer(ctx, incomplete, lambda store: _ids(store, ()))


def living(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tasks that have not ended."""
    return _offer(ctx, incomplete, lambda store: _ids(store, ("pending", "waiting", "ready", "claimed")))


def failed(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tasks that failed."""
    return _offer(ctx, incomplete, lambda store: _ids(store, ("failed",)))


def states(incomplete: str) -> list[str]:
    """States, also behind a comma."""
    from spoold.protocol.lifecycle import SHOWN

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{state}" for state in SHOWN if state.startswith(last.lower())]


def types(ctx: typer.Context, incomplete: str) -> list[str]:
    """Types that lanes, settings and workers name, also behind a comma."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{kind}" for kind in _offer(ctx, last, _types, _SELECTING)]


def workers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Workers, by their ids and by the names that they were started with."""
    return _offer(ctx, incomplete, _workers, _MODELS)


def batches(ctx: typer.Context, incomplete: str) -> list[str]:
    """Batches, as far as the first tasks of the spool name them."""
    return _offer(ctx, incomplete, _batches, _SELECTING)


def _offer(
    ctx: typer.Context, incomplete: str, look: Callable[[Store], Iterable[str]], needs: Iterable[str] = ()
) -> list[str]:
    """Return the found words that begin so; none if the look takes too long or fails. needs: its modules."""
    from threading import Thread

    for module in needs:
        import_module(module)
    given = ctx.find_root().params.get("spool")
    found: list[list[str]] = []

    def run() -> None:
        # Any error, of the spool or of ours, is reported when the command runs.
        with suppress(Exception):
            fit = (word for word in look(_opened(given)) if word.startswith(incomplete))
            found.append(list(islice(dict.fromkeys(fit), MOST)))

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return found[0] if found else []


def _opened(given: str | None) -> Store:
    from spoold.client.read.completion import look_in

    return look_in(given)


def _ids(store: Store, names: tuple[str, ...]) -> Iterator[str]:
    from spoold.client.read.completion import select_by_name
    from spoold.protocol.lifecycle import SHOWN

    wanted = [state for state in SHOWN if not names or state in names]
    return (located.id for located in select_by_name(store, wanted) if located.id != located.drop)


def _types(store: Store) -> list[str]:
    from spoold.client.read.selecting import list_types

    return sorted(list_types(store))


def _workers(store: Store) -> list[str]:
    from spoold.client.read.completion import list_workers

    return sorted(list_workers(store))


def _batches(store: Store) -> list[str]:
    from spoold.client.read.selecting import list_batches

    return sorted(list_batches(store, READ_MOST))


# The scripts by which bash, zsh and fish ask for completions: printed, or installed for the user.


SHELLS = ("bash", "zsh", "fish")
OPTIONS = ("--show-completion", "--install-completion")
# Stands for a shell without a name; no shell is called so.
CURRENT = "."
_METAVAR = "[SHELL]"


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
        help="Print the completions for bash, zsh or fish.",
    ),
]
InstallOption = Annotated[
    str | None,
    typer.Option(
        "--install-completion",
        metavar=_METAVAR,
        callback=_install,
        is_eager=True,
        help="Install them; without a name, for this shell.",
    ),
]
