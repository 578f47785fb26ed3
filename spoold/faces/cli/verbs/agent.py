"""`spool agent`: a task for an agent, from a prompt on the command line.

Law: it makes the same task as a file with `agent` and `prompt` does. stdout has the id, or with --wait the agent's
words, and nothing else; what they came to, in files and references, is a remark.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import completion, output, task_options
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.group import TASK_FAILED
from spoold.faces.cli.terminal.task_options import Options

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

EPILOG = """Example: spool agent coder 'Fix the typo in README.md' --accept 'make test'

Example: spool agent coder - --after plan --batch nightly < prompt.md

Example: spool agent reviewer 'Review this plan: {deps.plan.output}' --after plan --wait"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("agent", epilog=EPILOG)(agent)


def agent(
    ctx: typer.Context,
    profile: Annotated[
        str,
        typer.Argument(
            metavar="AGENT", help="A profile; `spool agents` lists them.", autocompletion=completion.types
        ),
    ],
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="What it is to do; - reads it from standard input.")
    ],
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="REPO", help="The repository that it works on, where the profile allows it."),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", metavar="BRANCH", help="The branch that its work begins with.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", metavar="CMD", help="A command that must succeed after it. Repeatable."),
    ] = None,
    must_change: Annotated[
        bool, typer.Option("--must-change", help="It must change a file, else it has failed.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Its model, where the profile allows it.")
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option("--max-turns", min=1, metavar="N", help="How many turns it may take.")
    ] = None,
    task_id: task_options.ID = None,
    name: task_options.NAME = None,
    priority: task_options.PRIORITY = None,
    after: task_options.AFTER = None,
    timeout: task_options.TIMEOUT = None,
    retries: task_options.RETRIES = None,
    locks: task_options.LOCKS = None,
    batch: task_options.BATCH = None,
    cwd: task_options.CWD = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for it and its merge, and print its words; exit 1 if one failed.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Submit it, though nothing here knows an agent of that name.")
    ] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Submit a task for an agent.

    If no live worker has the agent, the task waits, and a warning says so; a name that nothing knows is refused. In
    the prompt, {deps.ID.output} becomes the output of a task that it comes after. What the agent reports is not
    believed: the commands of --accept run afterwards. If one fails, it is tried again, and gets the reasons."""
    options = Options(None, None, task_id, name, priority, after, timeout, retries, None, batch, None, cwd)
    fields = replace(options, locks=locks).fields()
    place = _given(repo=task_options.repository(repo), base=base) or None
    said = _given(
        accept=list(accept or ()) or None,
        must_change=must_change or None,
        model=model,
        max_turns=max_turns,
        workspace=place,
    )
    with session(ctx).spool() as spool:
        submitted = _submitted(spool, {"agent": profile, "prompt": prompt, **said}, fields, anyway=anyway)
        if not wait:
            output.print_json({"id": submitted}) if as_json else output.print_line(submitted)
            return
        _wait(spool, submitted, as_json=as_json)


def _submitted(spool: SpoolClient, said: Mapping[str, Any], fields: Mapping[str, Any], *, anyway: bool) -> str:
    """Submit the task, with the warnings that are due; returns its id. fields: those that options set.

    Errors: BadFile.
    """
    missing = _missing(spool, said["agent"], anyway=anyway)
    text = _prompt(spool) if said["prompt"] == "-" else said["prompt"]
    with task_options.naming_options(fields):
        submitted = spool.submit_from("the task", {**said, "prompt": text, **fields})
    task_options.warn_of_room(spool)
    if missing:
        output.remark(missing)
    return submitted


def _missing(spool: SpoolClient, profile: str, *, anyway: bool) -> str:
    """Return the warning that no live worker has the agent, '' where one has. Errors: BadFile for an unknown name."""
    from spoold.protocol.errors import BadFile

    missing = spool.missing_agent(profile)
    if missing is None:
        return ""
    if missing.unknown and not anyway:
        fix = f"{missing.fix} --anyway submits it, and it waits for a worker that has it."
        raise BadFile("the command line", "AGENT", missing.problem, fix)
    return f"warning: {output.within(missing.problem)} The task waits for one: {missing.fix}"


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _prompt(spool: SpoolClient) -> str:
    from spoold.faces.cli.terminal.values import standard_input

    return standard_input(spool.store.settings.drop.max_bytes)


def _wait(spool: SpoolClient, task_id: str, *, as_json: bool) -> None:
    from spoold.faces.cli.terminal.wait_progress import saying_attempts, wait_with_bar
    from spoold.faces.cli.verbs.wait import report_failures
    from spoold.protocol.result import merged_by, work_of

    output.remark(task_id)
    with saying_attempts(spool, task_id):
        results = wait_with_bar(spool, [task_id], None)
    said = results[task_id].output
    words = said.get("text") if isinstance(said, dict) else said
    if words and not as_json:
        output.print_line(str(words))
    if (work := work_of(said)) and not as_json:
        output.remark(f"{task_id}: {output.sentence(work)}")
    if results[task_id].status == "success" and (merge := merged_by(said)):
        results |= wait_with_bar(spool, [merge], None)
        if (work := work_of(results[merge].output)) and not as_json:
            output.remark(f"{merge}: {output.sentence(work)}")
    if as_json:
        output.print_json(results)
    if report_failures(spool, results):
        raise typer.Exit(TASK_FAILED)
