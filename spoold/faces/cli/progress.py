"""Waiting for tasks: with a bar on a terminal, silent elsewhere.

Law: the bar is on stderr, and only on a terminal, so that a program that reads the output never meets it.

Touches: the terminal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spoold.faces.cli.patience import saying_why

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient
    from spoold.protocol.result import Result


def wait_with_bar(spool: SpoolClient, ids: list[str], timeout: float | None) -> dict[str, Result]:
    """Wait for tasks, timeout in seconds; the bar is on stderr, and goes when it is over. Errors: as Spool.wait."""
    with saying_why(spool, ids):
        return _wait(spool, ids, timeout)


def _wait(spool: SpoolClient, ids: list[str], timeout: float | None) -> dict[str, Result]:
    if not sys.stderr.isatty():
        return spool.wait(ids, timeout)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    failed = 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("waiting", total=len(ids))

        def tell(came: dict[str, Result]) -> None:
            nonlocal failed
            failed += sum(result.status not in ("success", "skipped") for result in came.values())
            bar.update(task, advance=len(came), description=f"waiting, {failed} failed" if failed else "waiting")

        return spool.wait(ids, timeout, progress=tell)
