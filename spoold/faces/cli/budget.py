"""`spool budget`: what budgets have spent, reserved and left; `spool budget raise` adds to one.

Law: shows what the leader last said, and changes nothing but for a raise.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.output import JsonOption, print_json, print_prose, print_table, remark
from spoold.faces.cli.session import session
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

EPILOG = """Example: spool budget

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
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="raise: why; the change of settings says it.")]
_UNITS = {"cost_usd": "USD", "tokens": "tokens", "task_s": "s"}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("budget", epilog=EPILOG)(budget)


def budget(
    ctx: typer.Context,
    words: Words = None,
    cost_usd: CostUsd = None,
    tokens: Tokens = None,
    task_s: TaskS = None,
    reason: Reason = "",
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
