"""`spool tree`: a task and all that it submitted, with what each waits for.

Law: no reason is made here; each is that of `spool ls --long`. A sum is of attempts that ended, as far as they tell.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli import choosing, output
from spoold.faces.cli.session import session

if TYPE_CHECKING:
    from spoold.client.read.task_groups import Branch

EPILOG = """Example: spool tree plan-7

Example: spool tree plan-7 --json"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("tree", epilog=EPILOG)(tree)


def tree(
    ctx: typer.Context,
    task: choosing.REF,
    archived: Annotated[bool, typer.Option("--all", help="Also the tasks in the archive.")] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Show a task and its children, and theirs.

    A child is a task that a running task submitted. With --json also what is next: `next_actionable`.
    """
    from spoold.client.read.task_groups import actionable

    with session(ctx).spool() as spool:
        root = choosing.read_one(spool, task, lambda whole: spool.tree(whole, archived=archived))
    if as_json:
        output.print_json({**_as_json(root), "next_actionable": actionable(root)})
        return
    _print(root, "")


def _as_json(one: Branch) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "type": one.type,
        "attempt": one.attempt,
        "worker": one.worker,
        "reason": one.reason,
        "sent_back": one.sent_back,
        "blocked_on": list(one.blocked_on),
        "est_completion": one.est_completion,
        "tokens_used": one.tokens_used,
        "cost_usd": one.cost_usd,
        "tree": one.tree._asdict(),
        "children": [_as_json(child) for child in one.children],
    }


def _print(one: Branch, indent: str) -> None:
    why = f"waits for {', '.join(one.blocked_on)}" if one.blocked_on else one.reason
    why = "; ".join(part for part in (why, one.sent_back) if part)
    said = f"{one.state}{f' on {one.worker}' if one.worker else ''}{f': {why}' if why else ''}"
    spent = _spent(one)
    output.print_line(f"{indent}{output.one_line(f'{one.id} ({said})', 400)}{f': {spent}' if spent else ''}")
    for child in one.children:
        _print(child, f"{indent}  ")


def _spent(one: Branch) -> str:
    """What its own attempts came to, and all below it together with it."""
    own, whole = output.spent(one.tokens_used, one.cost_usd), one.tree
    below = output.spent(whole.tokens_used, whole.cost_usd) if one.children else []
    with_all = f"with {whole.tasks - 1} below it: {', '.join(below)}" if below else ""
    return "; ".join(filter(None, (", ".join(own), with_all)))
