"""`spool agents`: the profiles of all live workers.

Law: every profile that a heartbeat names is shown, also one that takes no task now, with the reason.

Touches: the terminal.
"""

from __future__ import annotations

from dataclasses import asdict

import typer

from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import JsonOption, one_line, print_json, print_prose, print_table, sentence
from spoold.protocol.heartbeat import UNCHECKED

EPILOG = """Example: spool agents

Example: spool doctor --agents --config worker.toml     (on the worker's machine: what is wrong, and its fix)"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("agents", epilog=EPILOG)(agents)


def agents(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """List the agents that live workers offer.

    A worker offers those for which its configuration has a profile, [agents.NAME]. A reason is given for one that
    takes no task now, such as a program that does not start or a quota that is used up."""
    with session(ctx).spool() as spool:
        found = spool.agents()
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        print_prose("no live worker has a profile; [agents.NAME] in a worker's configuration makes one")
    else:
        rows = [
            (
                one.agent,
                one_line(one.cli, 40),
                one_line(one.version, 20) or "-",
                one_line(one.model, 40) or "-",
                one.worker,
                "ok" if one.ok else "not yet" if one.trouble == UNCHECKED else "not ok",
                str(one.running),
            )
            for one in found
        ]
        print_table(("AGENT", "CLI", "VERSION", "MODEL", "WORKER", "CHECK", "RUNNING"), rows)
        for one in found:
            if one.instead:
                others = ", ".join(one_line(kind, 48) for kind in one.instead)
                print_prose(f"{one.agent} on {one.worker}: while its limit is closed, tasks go to {others}", "  ")
            if one.trouble:
                print_prose(f"{one.agent} on {one.worker}: {sentence(one.trouble)}", "  ")
            for said in filter(None, (one.gap, one.untested, one.warning)):
                print_prose(f"{one.agent} on {one.worker}: {sentence(said)}", "  ")
            if one.drops:
                names = ", ".join(one.drops)
                print_prose(
                    f"{one.agent} on {one.worker}: {one.cli} cannot be given {names}: it does not count", "  "
                )
