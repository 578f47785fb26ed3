"""`spool limits`: the limits with their figures; close one, or open it again.

Law: what is open or closed is what the requests in control/ say; the figures are the leader's.

Touches: the terminal.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.output import JsonOption, one_line, print_json, print_line, print_table, remark
from spoold.faces.cli.pause import For, Reason, Until
from spoold.faces.cli.session import session

if TYPE_CHECKING:
    from spoold.client.spool.limits_and_budgets import Limit

ACTIONS = ("open", "close")

EPILOG = """Example: spool limits

Example: spool limits close anthropic --for 2h --reason 'the account is blocked'

Example: spool limits open anthropic"""


def _actions(incomplete: str) -> list[str]:
    return [action for action in ACTIONS if action.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("limits", epilog=EPILOG)(limits)


def limits(
    ctx: typer.Context,
    action: Annotated[
        str | None,
        typer.Argument(metavar="ACTION", help="open or close; without it, a list.", autocompletion=_actions),
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The limit.")] = None,
    for_: For = None,
    until: Until = None,
    reason: Reason = "",
    as_json: JsonOption = False,
) -> None:
    """List the limits, or close or open one.

    While a limit is closed no task that uses it starts; running tasks go on. It opens by `spool limits open`, or at
    the moment of --for or --until. A limit that an attempt found used up is opened in the same way."""
    from spoold.faces.cli import values
    from spoold.protocol.errors import BadFile

    if action is None:
        _list(ctx, as_json)
        return
    if action not in ACTIONS or name is None:
        problem = f"says {action!r}" if action not in ACTIONS else f"says {action} and names no limit"
        fix = "write `spool limits open NAME` or `spool limits close NAME`."
        raise BadFile("the command line", "", f"{problem}.", fix)
    if action == "open" and (for_ is not None or until is not None):
        raise BadFile("the command line", "", "opens a limit until a moment.", "leave out --for and --until.")
    if for_ is not None and until is not None:
        raise BadFile("the command line", "", "has both --for and --until.", "keep one of them.")
    name = name.strip().lower()  # as limits are spelled
    moment = None if until is None else values.moment(until, "--until")
    for_s = None if for_ is None else values.duration(for_, "--for")
    with session(ctx).spool() as spool:
        if action == "open":
            spool.open_limit(name, reason=reason)
            remark(f"limit {name} will be open")
            return
        end = spool.close_limit(name, reason=reason, until=moment, for_s=for_s)
    ends = "" if end is None else f"{end.isoformat().replace('+00:00', 'Z')} or "
    remark(f"limit {name} will be closed until {ends}`spool limits open {name}`")


def _list(ctx: typer.Context, as_json: bool) -> None:
    from spoold.client.spool.limits_and_budgets import list_limits

    with session(ctx).spool() as spool, spool.reaching():
        found = list_limits(spool.store)
    if as_json:
        print_json([asdict(limit) for limit in found])
    elif found:
        print_table(("LIMIT", "PER", "USED", "MAX", "RATE", "CLOSED"), [_row(limit) for limit in found])
    else:
        print_line("no limits: spool.toml names none ([limits.NAME])")


def _row(limit: Limit) -> tuple[str, ...]:
    from spoold.client.spool.limits_and_budgets import NOT_NAMED

    rate = limit.rate
    started = "" if rate is None or rate["used"] is None else f"{rate['used']} of "
    closed = [f"until {limit.until}" if limit.until else "yes"] if limit.closed else []
    closed += ["spool.toml names no such limit"] if limit.per == NOT_NAMED else []
    closed += [limit.why] if limit.why else []
    closed += [f"on trial by {limit.trying or 'the next task'}"] if limit.trying is not None else []
    closed += [f"on {node}" for node in limit.closed_on]
    used = "-" if limit.used is None else f"{limit.used}{f' + {limit.doubtful} in doubt' if limit.doubtful else ''}"
    used += f", {limit.lent} lent" if limit.lent else ""
    used += f", {limit.back} wanted back" if limit.back else ""
    return (
        limit.name,
        limit.per,
        used,
        "-" if limit.max is None else str(limit.max),
        "-" if rate is None else f"{started}{rate['count']} in {rate['per_s']:g} s",
        one_line("; ".join(closed), 100) or "no",
    )
