"""`spool events`: the events of all journals.

Law: events are printed in the order in which the client gives them, one line for each.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli import completing, output, streams, values
from spoold.faces.cli.session import session

if TYPE_CHECKING:
    from spoold.protocol.event import Event

EPILOG = """Example: spool events -f

Example: spool events --since 10m

Example: spool events --task review-3f9a --json"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("events", epilog=EPILOG)(events)


def events(
    ctx: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events, until Ctrl-C.")] = False,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="ID", help="Only the events of this task.", autocompletion=completing.ids),
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
