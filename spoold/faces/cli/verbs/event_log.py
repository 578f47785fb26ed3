"""`spool history`: everything that happened to a task, in its order. `spool events`: the events of all journals.

Law: no sentence is made here; each is that of the client, and in the order in which the client gives them.

Touches: the terminal.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import completion, output, streams, task_selection, values
from spoold.faces.cli.terminal.global_options import session
from spoold.protocol.amount import precise

if TYPE_CHECKING:
    from spoold.client.read.histories import Chapter
    from spoold.protocol.event import Event


HISTORY_EPILOG = """Example: spool history review-3f9a

Example: spool history review-3f9a --json"""
_HEADER = ("AT", "AFTER", "ATTEMPT", "BY", "WHAT")


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("history", epilog=HISTORY_EPILOG)(history)
    app.command("events", epilog=EVENTS_EPILOG)(events)


def history(ctx: typer.Context, task: task_selection.REF, as_json: output.JsonOption = False) -> None:
    """Tell everything that happened to a task.

    From all journals, in the order of its attempts; times are by the clocks of the nodes that wrote them. What the
    journals have lost is told from the results.
    """
    with session(ctx).spool() as spool:
        found = task_selection.read_one(spool, task, spool.history)
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


# `spool events`: the events of all journals.


EVENTS_EPILOG = """Example: spool events -f

Example: spool events --since 10m

Example: spool events --task review-3f9a --json"""


def events(
    ctx: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events, until Ctrl-C.")] = False,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="ID", help="Only the events of this task.", autocompletion=completion.ids),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only newer ones: 90s, 2h, 1d ago, or a moment with its zone."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Print the events.

    All journals together, by the clocks of their writers. `spool history` tells those of one task as a story."""
    begin = values.past(since, "--since") if since is not None else None
    with session(ctx).spool() as spool:
        for event in spool.iter_events(follow=follow, task=task or "", since=begin, sleep=streams.sleep):
            if as_json:
                output.print_json(event.model_dump(mode="json", exclude_none=True), compact=True)
            else:
                output.print_line(_line(event))
            if follow:
                output.flush()


def _line(event: Event) -> str:
    subject = f"{event.task}{f' #{event.attempt}' if event.attempt else ''}" if event.task else ""
    detail = event.detail.items() if isinstance(event.detail, dict) else ()
    more = " ".join(f"{name}={value}" for name, value in detail)
    # It comes early: all that follows is the line's own, and what is long is cut.
    doubt = f"  (the line names {event.misattributed} as its writer)" if event.misattributed else ""
    return output.one_line(f"{event.at[:40]}  {event.writer:<20}{doubt}  {event.event:<10}  {subject}  {more}", 400)
