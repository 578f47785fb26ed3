"""`spool history`: everything that happened to a task, told in its order.

Law: no sentence is made here; each is that of the client.

Touches: the terminal.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from spoold.faces.cli import choosing, output
from spoold.faces.cli.session import session
from spoold.protocol.amount import precise

if TYPE_CHECKING:
    from spoold.client.read.histories import Chapter

EPILOG = """Example: spool history review-3f9a

Example: spool history review-3f9a --json"""
_HEADER = ("AT", "AFTER", "ATTEMPT", "BY", "WHAT")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("history", epilog=EPILOG)(history)


def history(ctx: typer.Context, task: choosing.REF, as_json: output.JsonOption = False) -> None:
    """Tell everything that happened to a task.

    From all journals, in the order of its attempts; times are by the clocks of the nodes that wrote them. What the
    journals have lost is told from the results.
    """
    with session(ctx).spool() as spool:
        found = choosing.read_one(spool, task, spool.history)
    told = found.chapters
    if as_json:
        output.print_json({"id": found.id, "state": found.state, "history": list(map(_as_json, told))})
        return
    began = _moment(told[0].at) if told else None
    output.print_line(output.one_line(f"{found.id} ({found.state}, attempt {found.attempt})", 400))
    if told:
        output.print_table(_HEADER, [_row(chapter, began) for chapter in told])
    else:
        output.remark("no journal tells of it")


def _as_json(chapter: Chapter) -> dict[str, Any]:
    return {
        "at": chapter.at,
        "writer": chapter.writer,
        "event": chapter.event,
        "attempt": chapter.attempt,
        "text": chapter.text,
        "source": chapter.source,
        "detail": chapter.detail,
    }


def _row(chapter: Chapter, began: datetime | None) -> tuple[object, ...]:
    at = _moment(chapter.at)
    after_s = (at - began).total_seconds() if at is not None and began is not None else -1.0
    shown = "-" if after_s < 0 else precise(after_s)
    attempt = "-" if chapter.attempt is None else chapter.attempt
    said = chapter.text if chapter.source == "journal" else f"{chapter.text} (as its result says)"
    return chapter.at or "-", shown, attempt, chapter.writer, output.one_line(said, 300)


def _moment(stamp: str) -> datetime | None:
    """The moment of a stamp; None for one that is no moment, or has no zone."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
