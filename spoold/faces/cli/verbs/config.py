"""`spool config`: the settings that hold, with where each comes from; change them while nodes run; check them.

Law: what a node would refuse is refused here, before anything is published. Exit code 124 where --wait ends before
all nodes go by the change, which stays.

Touches: the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import JsonOption, one_line, print_json, print_line, print_table, remark, within

if TYPE_CHECKING:
    from spoold.client.spool.configuration import Checked, Holder, Setting

FAULTS_FOUND, LATE = 1, 124
ACTIONS = ("show", "set", "unset", "check")

EPILOG = """Example: spool config set limits.anthropic.max 8 --reason 'the API allows more' --wait

Example: spool config set retry.max=1 types.review.priority=high

Example: spool config unset types.review

Example: spool config show limits --json

Example: spool config check new.toml"""


def offer(incomplete: str) -> list[str]:
    """Return the actions that begin so, for a shell that completes a word."""
    return [action for action in ACTIONS if action.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    # Else the parser takes a negative number for an option.
    app.command("config", epilog=EPILOG, context_settings={"ignore_unknown_options": True})(config)


def config(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help="One of show, set, unset, check.", autocompletion=offer)
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD", help="KEY VALUE … or KEY=VALUE … to set; KEY … to unset; KEY; FILE.", show_default=False
        ),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; `spool config show` says it.")] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until all nodes that live go by the change; exit code 124 if not.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show, change and check the settings of the spool.

    `show` lists the settings that hold, where each comes from, and the revision that each node goes by. `set` changes
    settings while nodes run, and `unset` makes them again what spool.toml says. A value is written as in TOML; any
    other word is text. `check` reads spool.toml, or another file in its place, and all changes."""
    from spoold.protocol.errors import BadFile

    given = words or []
    for word in given:
        if word.startswith("--"):
            raise BadFile(word, "", "is no option of this verb.", "see its --help; write KEY=VALUE for text.")
    if action in ("show", "check"):
        if len(given) > 1 or reason or wait:
            problem = f"takes no more than {'KEY' if action == 'show' else 'FILE'} and --json."
            raise BadFile(f"spool config {action}", "", problem, "leave out the rest.")
        (_show if action == "show" else _check)(ctx, given[0] if given else None, as_json)
    elif action in ("set", "unset"):
        if not given:
            example = f"spool config {action} retry.max" + (" 1" if action == "set" else "")
            raise BadFile(f"spool config {action}", "", "has no key.", f"write it as in `{example}`.")
        _change(ctx, action, given, reason, wait, as_json)
    else:
        from spoold.protocol.errors import nearest

        close = nearest(action, ACTIONS)
        mend = f"did you mean {close!r}?" if close else f"use one of {', '.join(ACTIONS)}."
        raise BadFile(f"spool config {action}", "", "is no such action.", mend)


def _show(ctx: typer.Context, key: str | None, as_json: bool) -> None:
    with session(ctx).spool() as spool:
        settings, holders = spool.settings(key), spool.holders()
        revision, warnings = spool.store.revisions.revision, spool.store.revisions.warnings
    if as_json:
        rows = [asdict(setting) for setting in settings]
        nodes = [asdict(holder) for holder in holders]
        print_json({"revision": revision, "settings": rows, "nodes": nodes, "warnings": warnings})
        return
    print_table(("KEY", "VALUE", "FROM"), [(each.key, _toml(each.value), _origin(each)) for each in settings])
    print_line("")
    if holders:
        print_table(("NODE", "ROLE", "GOES BY"), [(one.node, one.role, _held(one, revision)) for one in holders])
    else:
        print_line("no node runs")
    for warning in warnings:
        remark(f"warning: {within(warning)}")


def _origin(setting: Setting) -> str:
    from spoold.client.spool.configuration import DEFAULT
    from spoold.protocol.layout import SETTINGS

    if setting.source in (DEFAULT, SETTINGS):
        return setting.source
    reason = f": {setting.reason}" if setting.reason else ""
    return f"{setting.source}, by {setting.by} at {setting.at}{reason}"


def _held(holder: Holder, revision: str) -> str:
    from spoold.protocol.layout import SETTINGS

    held = holder.revision or SETTINGS
    behind = "" if holder.state or holder.holds(revision) else f"not yet {revision}"
    more = holder.state or behind
    return f"{held} ({more})" if more else held


def _toml(value: Any) -> str:
    """Return a value as people write it in TOML; a whole number without its fraction."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_toml(inner)}' for name, inner in value.items())}}}"
    whole = isinstance(value, float) and value.is_integer()
    return "-" if value is None else json.dumps(int(value) if whole else value, ensure_ascii=False)


def _change(ctx: typer.Context, action: str, words: list[str], reason: str, wait: bool, as_json: bool) -> None:
    from spoold.client.spool.configuration import as_table, parse_pairs, take_up_s
    from spoold.protocol.errors import BadFile

    pairs = parse_pairs(words) if action == "set" else {}
    unset = words if action == "unset" else []
    with session(ctx).spool() as spool:
        before = spool.settings()
        try:
            revision = spool.change_settings(as_table(pairs), unset=unset, reason=reason)
        except BadFile as error:
            raise _named(error, pairs) from error
        rows = _differences(before, spool.settings())
        holders, late = spool.wait_for_holders(revision) if wait and revision else ([], [])
        within_s = take_up_s(spool.store)
    if as_json:
        found = {"revision": revision, "number": int(revision.partition(".")[0]) if revision else None}
        nodes = {"nodes": [asdict(one) for one in holders], "late": [asdict(one) for one in late]} if wait else {}
        print_json({**found, "changed": [{"key": key, "was": was, "is": now} for key, was, now in rows], **nodes})
    elif revision:
        print_line(f"change {revision}")
        for key, was, now in rows:
            holds = f"{key} is not set" if now is None else f"{key} = {_toml(now)}"
            print_line(f"{holds} (was {'not set' if was is None else _toml(was)})")
    else:
        print_line(f"nothing to change: {_unset(unset, before)}")
    if revision and not wait:
        remark(f"nodes go by it within {within_s:g} s; `spool config show` says which do")
    if wait and revision:
        _tell(holders, late, within_s)


def _unset(unset: list[str], before: Iterable[Setting]) -> str:
    """Say why there is nothing to change. unset: the keys that were to be unset; none when some were to be set."""
    known = {each.key for each in before}
    strange = [key for key in unset if not any(f"{one}.".startswith(f"{key}.") for one in known)]
    return f"{strange[0]} is not set" if strange and len(unset) == 1 else "the settings are so already"


def _tell(holders: list[Holder], late: list[Holder], within_s: float) -> None:
    """Say who goes by the change. Errors: typer.Exit where a node does not."""
    from spoold.protocol.amount import amount
    from spoold.protocol.layout import SETTINGS

    for one in late:
        remark(f"warning: after {within_s:g} s {one.role} {one.node} still goes by {one.revision or SETTINGS}")
    remark(f"{amount(len(holders), 'node')} {'goes' if len(holders) == 1 else 'go'} by the change")
    if late:
        raise typer.Exit(LATE)


def _differences(before: Iterable[Setting], after: Iterable[Setting]) -> list[tuple[str, Any, Any]]:
    """Return each setting that has another value, with the value before and after, None for none."""
    was, now = ({each.key: each.value for each in some} for some in (before, after))
    return [(key, was.get(key), now.get(key)) for key in {**was, **now} if was.get(key) != now.get(key)]


def _named(error: Exception, pairs: Mapping[str, Any]) -> Exception:
    """Return the error of a change, with the words that were typed in the place of the file."""
    from spoold.protocol.errors import BadFile
    from spoold.protocol.settings_change import THE_CHANGE

    if not isinstance(error, BadFile) or error.file != THE_CHANGE:
        return error
    problem = error.problem.partition(" Given: ")[0]
    for key, value in pairs.items():
        mine, theirs = f"{key.lower()}.", f"{error.field}."
        if mine.startswith(theirs) or theirs.startswith(mine):
            field = "" if mine == theirs else error.field
            return BadFile(f"{key} = {_toml(value)}", field, problem, error.mend)
    return error


def _check(ctx: typer.Context, file: str | None, as_json: bool) -> None:
    from spoold.client.spool.configuration import check_settings
    from spoold.client.spool.location import NoSpoolNamed
    from spoold.faces.cli.terminal import values

    data = None if file is None else values.read_file(file)
    directory: str | None
    try:
        directory = session(ctx).directory()
    except NoSpoolNamed:
        if data is None:
            raise
        directory = None
    checked = check_settings(directory, data, file or "")
    if as_json:
        print_json(_plain(checked))
    else:
        _report(checked)
    if checked.wrong:
        raise typer.Exit(FAULTS_FOUND)


def _plain(checked: Checked) -> dict[str, Any]:
    faults = [
        {"file": fault.file, "field": fault.field, "problem": fault.problem, "fix": fault.mend}
        for fault in checked.faults
    ]
    more = {"faults": faults, "warnings": checked.warnings}
    return {"valid": not checked.wrong, "file": checked.file, "changes": checked.changes, **more}


def _report(checked: Checked) -> None:
    from spoold.protocol.amount import amount

    for fault in checked.faults:
        print_line(one_line(fault.told(), 6000))
        print_line(f"    fix: {one_line(fault.mend, 6000)}")
    for warning in checked.warnings:
        print_line(one_line(warning, 6000))
    wrong = len(checked.faults) + len(checked.warnings)
    changes = "" if checked.changes is None else f" and {amount(checked.changes, 'change')} of the spool"
    print_line(f"{amount(wrong, 'fault') if wrong else 'valid'}: {checked.file}{changes}")
