"""Explains once, in a long wait without any start, why a task has not begun: a task itself cannot say that.

Law: in one wait it speaks once at most, and not at all if a task that it looks at has begun. It does not delay or end
the wait: an error here is dropped, since the wait itself reports an unreadable spool.

Touches: threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

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
    from spoold.faces.cli.output import remark, sentence
    from spoold.protocol.errors import SpoolError
    from spoold.protocol.lifecycle import State

    # The wait itself reports an unreadable spool, after a while.
    with contextlib.suppress(SpoolError, OSError), SpoolClient(directory) as spool:
        found = spool.locate_all(ids)
        if not found or any(one.state not in (State.PENDING, State.WAITING, State.READY) for one in found):
            return
        answer = spool.explain(found[0].id)
        change = f" What would change it: {answer.reasons[0].change}." if answer.reasons else ""
        remark(f"spool: {answer.id} has not begun: {sentence(answer.verdict)}.{change}")
