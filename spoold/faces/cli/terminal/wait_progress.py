"""Waiting for tasks: a bar on a terminal, once in a long wait without any start why a task has not begun, and of one
task each attempt that ends.

Law: the bar is on stderr, and only on a terminal, so that a program that reads the output never meets it. The hint is
said once at most, and not at all if a task that it looks at has begun. It does not delay or end the wait: an error in
it is dropped, since the wait itself reports an unreadable spool.

Touches: threads, the terminal.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING

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


# Explains once, in a long wait without any start, why a task has not begun: a task itself cannot say that.


SAY_AFTER_S = 10.0
# At most so many of the tasks are looked at.
LOOKED_AT = 100


@contextlib.contextmanager
def saying_why(spool: SpoolClient, ids: Sequence[str]) -> Iterator[None]:
    """Wrap a wait for these tasks: if none has begun after SAY_AFTER_S, say on stderr why the first has not."""
    timer = Timer(SAY_AFTER_S, _say, (spool.directory, ids[:LOOKED_AT]))
    timer.daemon = True  # the program does not wait for an explanation
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(directory: str, ids: Sequence[str]) -> None:
    from spoold.client.spool_client import SpoolClient
    from spoold.faces.cli.terminal.output import remark, sentence
    from spoold.protocol.errors import SpoolError
    from spoold.protocol.lifecycle import State

    # The wait itself reports an unreadable spool, after a while.
    with contextlib.suppress(SpoolError, OSError), SpoolClient(directory) as spool:
        found = spool.locate_all(ids)
        unbegun = (State.PENDING, State.WAITING, State.READY)
        if not found or any(one.state not in unbegun for one in found):
            return
        answer = spool.explain(found[0].id)
        if answer.state not in unbegun:  # it has begun since
            return
        change = f" What would change it: {answer.reasons[0].change}." if answer.reasons else ""
        remark(f"spool: {answer.id} has not begun: {sentence(answer.verdict)}.{change}")


# Says of one task each attempt that ends and is followed by another: a long wait is no silence.


LOOK_S = 2.0


@contextlib.contextmanager
def saying_attempts(spool: SpoolClient, task: str) -> Iterator[None]:
    """Wrap a wait for this task: say on stderr how each attempt ended that is not its last."""
    over = Event()
    thread = Thread(target=_say_attempts, args=(spool.directory, task, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LOOK_S)


def _say_attempts(directory: str, task: str, over: Event) -> None:
    from spoold.client.spool_client import SpoolClient
    from spoold.faces.cli.terminal.output import one_line, remark, why_ended
    from spoold.protocol.errors import SpoolError

    told = 0
    while not over.wait(LOOK_S):
        # The wait itself reports an unreadable spool, after a while.
        with contextlib.suppress(SpoolError, OSError), SpoolClient(directory) as spool:
            info = spool.show(task)
            for one in info.attempts:
                if told < one.attempt < info.attempt:
                    remark(one_line(f"{task}: attempt {one.attempt} ended, another follows: {why_ended(one)}", 500))
                    told = one.attempt
