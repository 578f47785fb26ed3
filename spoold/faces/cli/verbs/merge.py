"""`spool merge`: submits the task that takes the work of other tasks into a branch.

Law: what is merged is decided by the task's own attempt; this only says which tasks, and where to.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import completion, output
from spoold.faces.cli.terminal.global_options import session

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

EPILOG = """Example: spool merge edit-1 edit-2 --into main

Example: spool merge edit-1 --repo /srv/git/app.git --agent coder"""

Ids = Annotated[
    list[str],
    typer.Argument(metavar="ID", help="Tasks whose work is to land, in this order.", autocompletion=completion.ids),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("merge", epilog=EPILOG)(merge)


def merge(
    ctx: typer.Context,
    ids: Ids,
    into: Annotated[str, typer.Option("--into", metavar="BRANCH", help="The branch.")] = "main",
    repo: Annotated[
        str | None, typer.Option("--repo", metavar="REPO", help="The repository; else as the results say.")
    ] = None,
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The profile whose tasks resolve conflicts.")
    ] = "",
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=0, max=20, help="Tries per conflict, before people are asked.")
    ] = 2,
    task_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="The id of the merge.")] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Merge the work of tasks into a branch, after they have completed.

    Submits a task of type merge and prints its id. It completes only when everything has landed, so what comes
    after it (`--after`) begins with the work in the branch."""
    from pydantic import ValidationError

    from spoold.agents.merge.merge_request import merge_task
    from spoold.protocol.errors import BadFile

    with session(ctx).spool() as spool:
        try:
            task = merge_task(
                ids, repo or repository_of(spool, ids), into, agent=agent, rounds=rounds, task_id=task_id or None
            )
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise BadFile("the command line", field, f"{first['msg']}.", "correct it.") from None
        submitted = spool.submit(task)
    output.print_json({"id": submitted}) if as_json else output.print_line(submitted)


def repository_of(spool: SpoolClient, ids: list[str]) -> str:
    """Return the one repository in which the tasks worked. Errors: SpoolError."""
    from spoold.agents.merge.candidates import workspace_of
    from spoold.agents.workspace.repository_config import same
    from spoold.client.spool.waiting import NotFinished
    from spoold.protocol.errors import SpoolError, WrongValue

    found: dict[str, str] = {}
    for task_id in ids:
        try:
            said = workspace_of({"output": spool.result(task_id).output}).get("repo")
        except NotFinished:
            raise SpoolError(
                f"task {task_id} has no result yet, which would name its repository. Add --repo."
            ) from None
        if not said:
            raise SpoolError(f"no repository is in the result of {task_id}. Add --repo.")
        try:
            known = next((one for one in found if same(one, str(said))), str(said))
        except WrongValue as wrong:
            raise SpoolError(f"the repository in the result of {task_id} is wrong: {wrong}. Add --repo.") from None
        found[known] = task_id
    if len(found) > 1:
        told = ", ".join(f"{task_id} in {repo}" for repo, task_id in found.items())
        raise SpoolError(f"these tasks worked in several repositories: {told}. Merge those of one at a time.")
    return next(iter(found))
