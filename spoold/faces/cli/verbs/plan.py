"""`spool plan`: an agent plans, and what it answers is submitted after a person has said yes.

Law: nothing is submitted before the whole answer was judged and shown. Without a yes nothing is submitted at all.

Touches: the terminal, the environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import completion, output, task_options
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.group import TASK_FAILED
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.agents.planning import Plan
    from spoold.client.spool_client import SpoolClient
    from spoold.protocol.errors import BadFile

EPILOG = """Example: spool plan 'Users can reset their password' --agent planner --repo git@example.org:team/app.git

Example: spool plan --task users-can-reset-x7k2p --yes"""

STEM_MAX, SUFFIX = 24, 5


@dataclass
class Found:
    """What came of a plan. answer: the path of what the planner said; tasks: of the plan; ids: of what was submitted,
    empty for nothing; approval: the id of the task that asks, None for none.
    """

    task: str
    answer: str
    tasks: list[Mapping[str, Any]]
    faults: list[str]
    ids: list[str] = field(default_factory=list)
    approval: str | None = None


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("plan", epilog=EPILOG)(plan)


def plan(
    ctx: typer.Context,
    feature: Annotated[
        str | None, typer.Argument(metavar="FEATURE", help="The work to plan; - reads it from standard input.")
    ] = None,
    agent: Annotated[
        str,
        typer.Option("--agent", metavar="NAME", help="The profile that plans.", autocompletion=completion.types),
    ] = "planner",
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="REPO", help="The repository of the work, where the profiles allow it."),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", metavar="BRANCH", help="The branch that the work begins with.")
    ] = None,
    task_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The id of the planner's task; ids of the plan begin with it."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="ID",
            help="Plan nothing anew: follow this task of a planner.",
            autocompletion=completion.ids,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Submit the plan without asking.")] = False,
    approve: Annotated[
        bool, typer.Option("--approve", help="Submit it so that nothing starts before `spool approve`.")
    ] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Have an agent plan some work, and submit the tasks of its plan.

    Waits for the planner. Its answer has to be tasks, one a line, as in a .jsonl file. The plan is checked as a whole
    and shown. It is submitted as one batch after --yes, or a y at the terminal. With --approve it is submitted, and
    waits for `spool approve`. In all other cases nothing is submitted, the answer is kept in a file, and the exit
    code is 1 (also if the planner failed, or its plan has a fault)."""
    if (feature is None) == (task is None):
        raise _usage("needs either FEATURE or --task.", "say what to plan, or name the task of a planner.")
    if yes and approve:
        raise _usage("has --yes and --approve.", "keep one of them.")
    place = {
        name: value for name, value in (("repo", task_options.repository(repo)), ("base", base)) if value is not None
    }
    if "base" in place and "repo" not in place:
        raise _usage("has --base without --repo.", "name the repository, too.")
    with session(ctx).spool() as spool:
        planner, words = _answer(spool, task or _asked(spool, feature or "", agent, task_id, place))
        found = _decided(spool, planner, words, yes=yes, approve=approve, as_json=as_json)
    if as_json:
        output.print_json(asdict(found))
    if not found.ids:
        raise typer.Exit(TASK_FAILED)


def _usage(problem: str, mend: str) -> BadFile:
    from spoold.protocol.errors import BadFile

    return BadFile("the command line", "", problem, mend)


def _asked(spool: SpoolClient, feature: str, agent: str, task_id: str | None, place: dict[str, str]) -> str:
    """Submit the task of the planner; returns its id."""
    from spoold.agents.planning import planner_task
    from spoold.client.spool.submission import suffix
    from spoold.faces.cli.terminal.values import standard_input
    from spoold.protocol.names import slug

    text = standard_input(spool.store.settings.drop.max_bytes) if feature == "-" else feature
    if not text.strip():
        raise _usage("FEATURE is empty.", "say what to plan.")
    made = task_id or f"{slug(' '.join(text.split()), STEM_MAX).lower()}-{suffix()[:SUFFIX]}"
    with task_options.naming_options({"id": made} if task_id else {}):
        submitted = spool.submit_from("the plan", planner_task(text, made, agent, place, spool.served()))
    task_options.warn_of_room(spool)
    output.remark(f"{submitted}: {output.within(agent)} plans; `spool plan --task {submitted}` follows it")
    return submitted


def _answer(spool: SpoolClient, task_id: str) -> tuple[str, str]:
    """Wait for the planner; returns the id of its task, and its words. Errors: typer.Exit where it failed, or a
    part of them is lost.
    """
    from spoold.faces.cli.terminal.wait_progress import wait_with_bar
    from spoold.faces.cli.verbs.wait import report_failures

    whole = spool.locate(task_id).id
    results = wait_with_bar(spool, [whole], None)
    if report_failures(spool, results):
        output.remark("spool: nothing was submitted")
        raise typer.Exit(TASK_FAILED)
    said = results[whole].output
    words = said.get("text") if isinstance(said, dict) else said
    if isinstance(said, dict) and said.get("text_cut"):
        output.remark(f"spool: the answer of {whole} is so long that its beginning was not kept. Plan less.")
        output.remark("spool: nothing was submitted")
        raise typer.Exit(TASK_FAILED)
    return whole, words if isinstance(words, str) else ""


def _decided(spool: SpoolClient, planner: str, words: str, *, yes: bool, approve: bool, as_json: bool) -> Found:
    """Judge the answer, show it, and submit it if a person says so."""
    from spoold.agents import planning

    proposal = planning.propose(spool, planner, words, os.environ)
    kept = proposal.path or f"the result of {planner} (`spool result {planner}`)"
    found = Found(planner, proposal.path, list(proposal.tasks), [str(fault) for fault in proposal.faults])
    if proposal.plan is None:
        for fault in found.faults:
            output.remark(f"spool: {output.within(fault)}")
        many = amount(len(found.faults), "fault")
        output.remark(f"spool: the plan has {many}; nothing was submitted. The answer is in {kept}")
        return found
    if not as_json:
        _show(planner, proposal.plan)
    if proposal.unserved:
        output.remark(
            f"warning: no live worker takes {', '.join(map(output.within, proposal.unserved))}; that would wait"
        )
    if approve:
        found.ids, found.approval = planning.submit_asking(spool, proposal)
    elif yes or (not as_json and _says_yes(len(found.tasks))):
        found.ids = planning.submit(spool, proposal)
    else:
        output.remark(
            f"spool: nothing was submitted. The plan is in {kept}; "
            f"`spool plan --task {planner} --yes` submits it, with --approve after an approval"
        )
        return found
    task_options.warn_of_room(spool)
    if not as_json:
        _tell(found)
    return found


def _show(planner: str, plan: Plan) -> None:
    output.print_prose(f"{planner}: {plan.summary()}")
    for line in plan.lines(output.width()):
        output.print_line(line)


def _says_yes(count: int) -> bool:
    """Ask the person at the terminal; a plan that nobody was shown there is not agreed to."""
    return sys.stdout.isatty() and output.may_ask() and output.confirmed(f"Submit {amount(count, 'task')}?")


def _tell(found: Found) -> None:
    waits = f"; nothing starts before `spool approve {found.approval}`" if found.approval else ""
    output.remark(f"{amount(len(found.ids), 'task')} submitted as the batch {found.task}{waits}")
