"""`spool pause`, `resume`, `limits`, `halt` and `budget`: what the pool may start, and how much it may spend.

Law: what is open or closed is what the requests in control/ say; the figures are the leader's. A command line gives a
pause one end at most. The remarks on unknown types and on other pauses come after the request is posted, and change
nothing. An emergency stop asks no question, and it never ends by itself: only a resume of everything ends it.
`budget` changes nothing but for a raise.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import completion, output
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import (
    JsonOption,
    one_line,
    print_json,
    print_line,
    print_prose,
    print_table,
    remark,
)
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from datetime import datetime

    from spoold.client.spool.limits_and_budgets import Limit
    from spoold.client.spool_client import SpoolClient


PAUSE_EPILOG = """Example: spool pause review --reason 'quota used up'

Example: spool pause review --for 2h"""
RESUME_EPILOG = """Example: spool resume review

Example: spool resume"""

Kind = Annotated[
    str | None,
    typer.Argument(metavar="TYPE", help="A type of tasks; without it, all types.", autocompletion=completion.types),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; status, explain and the journal say it.")]


For = Annotated[
    str | None,
    typer.Option("--for", metavar="TIME", help="End it by itself after so long: seconds, or 90s, 5m, 2h."),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="MOMENT", help="End it by itself at that moment, with its zone: 2026-01-31T18:00:00Z."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("pause", epilog=PAUSE_EPILOG)(pause)
    app.command("resume", epilog=RESUME_EPILOG)(resume)
    app.command("limits", epilog=LIMITS_EPILOG)(limits)
    app.command("halt", epilog=HALT_EPILOG)(halt)
    app.command("budget", epilog=BUDGET_EPILOG)(budget)


def pause(ctx: typer.Context, kind: Kind = None, for_: For = None, until: Until = None, reason: Reason = "") -> None:
    """Start no more tasks.

    Of one type, or of any; running tasks go on. It lasts until `spool resume`, or until the moment of --for or
    --until. Of several pauses of one type, the one that lasts longest counts."""
    from spoold.faces.cli.terminal import values
    from spoold.protocol.errors import BadFile

    if for_ is not None and until is not None:
        raise BadFile("the command line", "", "has both --for and --until.", "a pause has one end: keep one of them.")
    moment = None if until is None else values.moment(until, "--until")
    for_s = None if for_ is None else values.duration(for_, "--for")
    with session(ctx).spool() as spool:
        end = spool.pause(kind, reason=reason, until=moment, for_s=for_s)
        _doubt(spool, kind)
        if end is not None:
            _longer(spool, kind, end)
    ends = "" if end is None else f"{end.isoformat().replace('+00:00', 'Z')} or "
    output.remark(f"{_tasks(kind)} will be held until {ends}`spool resume`")


def resume(ctx: typer.Context, kind: Kind = None, reason: Reason = "") -> None:
    """Take a pause or a halt back.

    Without a type, all pauses and a halt."""
    with session(ctx).spool() as spool:
        spool.resume(kind, reason=reason)
    output.remark(f"{_tasks(kind)} may start again")


def _longer(spool: SpoolClient, kind: str | None, end: datetime) -> None:
    """Report another pause that holds these tasks for longer than this one."""
    from spoold.client.spool.standing_requests import list_pauses
    from spoold.protocol.request import EVERYTHING, Verb, kind_target

    with spool.reaching():
        standing = list_pauses(spool.store)
    for pause in standing:
        lasts = pause.ends is None or pause.ends > end
        if pause.verb == Verb.PAUSE and pause.target in (kind_target(kind), EVERYTHING) and lasts:
            what = "everything" if pause.target == EVERYTHING else f"type {pause.target}"
            output.remark(f"another pause of {what} lasts until {pause.until or '`spool resume`'}: {pause.told}")


def _doubt(spool: SpoolClient, kind: str | None) -> None:
    """Say that nothing here is of the type: a pause may come before its tasks, or the name is a slip."""
    from spoold.client.read.selecting import list_types
    from spoold.protocol.errors import nearest
    from spoold.protocol.request import kind_target

    if kind is None:
        return
    with spool.reaching():
        known = list_types(spool.store)
    if kind_target(kind) not in known:
        close = nearest(kind_target(kind), known)
        hint = f"; did you mean {close}? `spool resume {kind_target(kind)}` takes this back" if close else ""
        output.remark(f"nothing here is of type {kind_target(kind)} yet{hint}")


def _tasks(kind: str | None) -> str:
    """Return the words for the tasks of a type."""
    from spoold.protocol.request import kind_target

    return "all tasks" if kind is None else f"tasks of type {kind_target(kind)}"


# `spool limits`: the limits with their figures; close one, or open it again.


ACTIONS = ("open", "close")

LIMITS_EPILOG = """Example: spool limits

Example: spool limits close anthropic --for 2h --reason 'the account is blocked'

Example: spool limits open anthropic"""


def _actions(incomplete: str) -> list[str]:
    return [action for action in ACTIONS if action.startswith(incomplete)]


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
    the moment of --for or --until. A limit that an attempt found used up is opened in the same way.

    The list ends with the types that have a `max_concurrent`; with --json it has the limits alone."""
    from spoold.faces.cli.terminal import values
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
    from spoold.client.spool.limits_and_budgets import list_limits, list_type_limits

    with session(ctx).spool() as spool, spool.reaching():
        found = list_limits(spool.store)
        types = {} if as_json else list_type_limits(spool.store)
    if as_json:
        print_json([asdict(limit) for limit in found])
        return
    if found:
        print_table(("LIMIT", "PER", "USED", "MAX", "RATE", "CLOSED"), [_row(limit) for limit in found])
    elif not types:
        print_line("no limits: spool.toml names none ([limits.NAME], or max_concurrent in [types.NAME])")
    if found and types:
        print_line("")
    if types:
        rows = [(kind, "-" if used is None else used, most) for kind, (used, most) in types.items()]
        print_table(("TYPE", "READY OR RUNNING", "MAX_CONCURRENT"), rows)


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


# `spool halt`: the emergency stop.


HALT_EPILOG = """Example: spool halt --reason 'wrong credentials'

Example: spool resume"""


def halt(
    ctx: typer.Context,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the journal.")] = "",
) -> None:
    """Stop everything now.

    Running tasks are killed and handed back, and nothing starts until `spool resume`. No task is lost or charged for
    it; killed tasks start again after the resume.
    """
    with session(ctx).spool() as spool:
        spool.halt(reason=reason)
    output.remark("everything is being stopped; `spool resume` lets it go on")


# `spool budget`: what budgets have spent, reserved and left; `spool budget raise` adds to one.


BUDGET_EPILOG = """Example: spool budget

Example: spool budget nightly --json

Example: spool budget raise nightly --cost-usd 5 --reason 'two more repositories'"""

RAISE, RAISES = "raise", "spool budget raise NAME --cost-usd 5"
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[raise] [NAME]", help="A budget; without it, all. With `raise` before it, add to it."),
]
CostUsd = Annotated[float | None, typer.Option("--cost-usd", metavar="USD", help="raise: by so many USD.")]
Tokens = Annotated[float | None, typer.Option("--tokens", metavar="NUMBER", help="raise: by so many tokens.")]
TaskS = Annotated[float | None, typer.Option("--task-s", metavar="SECONDS", help="raise: by so many seconds.")]
BudgetReason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="raise: why; the change of settings says it.")
]
_UNITS = {"cost_usd": "USD", "tokens": "tokens", "task_s": "s"}


def budget(
    ctx: typer.Context,
    words: Words = None,
    cost_usd: CostUsd = None,
    tokens: Tokens = None,
    task_s: TaskS = None,
    reason: BudgetReason = "",
    as_json: JsonOption = False,
) -> None:
    """Show what budgets have spent, reserved and left, or add to one.

    `spool budget raise NAME` adds to its limits while the spool runs; of several raises each counts."""
    from spoold.protocol.errors import BadFile

    said = list(words or ())
    raising, names = said[:1] == [RAISE], said[1:] if said[:1] == [RAISE] else said
    given = {"cost_usd": cost_usd, "tokens": tokens, "task_s": task_s}
    add = {name: value for name, value in given.items() if value is not None}
    if len(names) > 1 or (raising and not names):
        raise BadFile(
            "the command line", "", "names no single budget.", "write `spool budget raise NAME --cost-usd 5`."
        )
    if not raising and (add or reason):
        raise BadFile("the command line", "", "adds to nothing.", "write `spool budget raise NAME --cost-usd 5`.")
    with session(ctx).spool() as spool:
        if raising:
            _raise(spool, names[0], add, reason, as_json=as_json)
        else:
            _show(spool, names[0] if names else None, as_json=as_json)


def _raise(spool: SpoolClient, name: str, add: Mapping[str, float], reason: str, *, as_json: bool) -> None:
    from spoold.client.spool.limits_and_budgets import raise_budget

    limits = raise_budget(spool, name, add, reason)
    if as_json:
        print_json(limits)
    else:
        now = ", ".join(f"{_figure(limits[one], one)} {_UNITS[one]}" for one in add)
        remark(f"budget {name}: the limit is {now} from the next heartbeat of the leader on")


def _show(spool: SpoolClient, name: str | None, *, as_json: bool) -> None:
    from spoold.client.spool.limits_and_budgets import list_budgets

    with spool.reaching():
        found = list_budgets(spool.store, name)
    if as_json:
        print_json(found)
        return
    if not found:
        print_prose("no budgets; [budgets.NAME] in spool.toml makes one")
        return
    columns = ("BUDGET", "PERIOD", "OF", "LIMIT", "SPENT", "RESERVED", "LEFT", "ATTEMPTS", "WAITS")
    print_table(columns, [row for name, one in found.items() for row in _rows(name, one)])
    for name, one in found.items():
        if one["closed"]:
            print_prose(f"{name}: nothing draws on it just now: {one['closed']}")
        for period in one["periods"]:
            unknown = {of: count for of, count in period["unknown"].items() if of in one["limits"]}
            for of, count in unknown.items():
                print_prose(f"{name}, {period['period']}: {amount(count, 'attempt')} without {of}")
        if one["more"]:
            print_prose(f"{name}: {amount(one['more'], 'more period')} not shown")


def _rows(name: str, one: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each limit of each period; a budget of which no leader said anything has no figures."""
    for period in one["periods"]:
        for of in one["limits"] or ("cost_usd",):
            limit, left = one["limits"].get(of), period["left"].get(of)
            yield (
                name,
                period["period"].replace(":", " ", 1),
                _UNITS[of],
                "-" if limit is None else _figure(limit, of),
                _figure(period["spent"][of], of),
                _figure(period["reserved"][of], of),
                "-" if left is None else _figure(left, of),
                str(period["attempts"]),
                period["waits"] or "",
            )
    if not one["periods"]:
        for of, limit in one["limits"].items() or (("cost_usd", 0),):
            yield (name, one["per"], _UNITS[of], _figure(limit, of), "-", "-", "-", "-", "")


def _figure(amount: float, of: str) -> str:
    """Return an amount for people: USD with two decimals or more, others as they are."""
    text = f"{amount:.6f}".rstrip("0").rstrip(".")
    if of != "cost_usd":
        return text
    whole, _, part = text.partition(".")
    return f"{whole}.{part.ljust(2, '0')}"
