"""`spool ask`: a running task asks people. `spool asks`, `approve` and `reject`: the open questions, and the answers.

Law: a task is named by its whole id, since the beginning of an id may fit another task. Within a task these verbs
answer nothing: the client refuses. Of `ask`, stdout has the answer and nothing else; the question stands until the
attempt is over.

Touches: the terminal.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import completion, output
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.group import TASK_FAILED
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient


# From so many questions on others may wait to be asked.
MANY = 256
ASKS_EPILOG = """Example: spool asks --json"""
APPROVE_EPILOG = """Example: spool approve deploy-7

Example: spool approve deploy-7 --answer no --reason 'staging only'"""
REJECT_EPILOG = """Example: spool reject deploy-7 --reason 'the tests are red'

Example: spool reject deploy-7 --reason 'the tests are missing' --redo write-7"""

Task = Annotated[str, typer.Argument(metavar="ID", help="A task, by its whole id.", autocompletion=completion.living)]
Which = Annotated[
    str,
    typer.Option(
        "--question", metavar="NAME", help="Which question, if a running task asks several; see `spool asks`."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("asks", epilog=ASKS_EPILOG)(asks)
    app.command("approve", epilog=APPROVE_EPILOG)(approve)
    app.command("reject", epilog=REJECT_EPILOG)(reject)
    app.command("ask", epilog=ASK_EPILOG)(ask)


def asks(ctx: typer.Context, as_json: output.JsonOption = False) -> None:
    """List the questions that nobody has answered: of tasks that wait for an approval, and of tasks that run."""
    with session(ctx).spool() as spool:
        found = spool.asks()
        gate = spool.status().gates.get("approval", {}) if len(found) >= MANY else {}
    if as_json:
        output.print_json(found)
    elif not found:
        output.print_prose("nobody is asked anything")
    else:
        rows = [
            (one.task, ", ".join(one.choices) or "-", one.at, one.until or "-", one.question, one.ask)
            for one in found
        ]
        output.print_table(("TASK", "CHOICES", "ASKED", "EXPIRES", "NAME", "QUESTION"), rows)
        if any(one.attempt is None for one in found):
            output.remark("`spool show ID` draws what a task would run after its approval")
    if not as_json and (more := gate.get("unasked", 0)):
        output.remark(f"{amount(more, 'more question')} will be asked as these are answered, the most urgent first")


def approve(
    ctx: typer.Context,
    task: Task,
    answer: Annotated[
        str | None,
        typer.Option("--answer", metavar="JSON", help="The answer: one of the choices, or any JSON value."),
    ] = None,
    question: Which = "",
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the task.")] = "",
    seen: Annotated[
        str,
        typer.Option("--seen", metavar="SHA256", help="Approve only the task that `spool show` drew with this."),
    ] = "",
) -> None:
    """Answer the question of a task, which then starts, or goes on.

    At a terminal, without --seen, it first draws all that the task says, and asks. The approval is of the task's
    file as it is then: a worker that finds another content in it starts nothing.
    What the task reads elsewhere when it runs is drawn as no part of the approval.

    Without --answer it is the first of the choices, or true. The task reads it in the file SPOOL_ANSWER_FILE; its
    result says who answered, when and what. An answer may come before the question is asked. A task cannot answer."""
    with session(ctx).spool() as spool:
        value = None if answer is None else value_of(answer)
        if not seen and not question and output.may_ask():
            seen = _shown(spool, task)
        spool.approve(task, value, said=answer, reason=reason, question=question, seen=seen)
    output.remark(f"{output.within(task)} has its answer")


def _shown(spool: SpoolClient, task: str) -> str:
    """Draw what a task that waits for its approval says, and ask; returns its digest, '' for one that runs.

    Errors: typer.Exit after a no.
    """
    from spoold.faces.cli.verbs.task_details import print_parts

    shown = spool.shown(task)
    if not shown.asks:
        return ""
    print_parts(shown)
    if not output.confirmed(f"approve {output.within(task)}?"):
        output.remark("nothing was answered")
        raise typer.Exit(TASK_FAILED)
    return shown.seen


def reject(
    ctx: typer.Context,
    task: Task,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the task.")],
    question: Which = "",
    redo: Annotated[
        str,
        typer.Option(
            "--redo", metavar="UPSTREAM", help="Run this earlier task again, with the reason; then ask anew."
        ),
    ] = "",
) -> None:
    """Answer the question of a task with no.

    A task that waits for its approval fails as REJECTED; `spool retry` asks anew. A task that runs is told so.

    With --redo the task does not fail. UPSTREAM, which the task comes after, runs again, and so do all tasks between
    them. UPSTREAM reads the reason in the file SPOOL_FEEDBACK_FILE. Then the task asks anew. A task cannot answer."""
    with session(ctx).spool() as spool:
        spool.reject(task, reason=reason, question=question, redo=redo)
    output.remark(f"{output.within(task)} was rejected" + (f", and {output.within(redo)} runs again" if redo else ""))


def value_of(text: str) -> Any:
    """Return the JSON value of a word on the command line; a word that is no JSON is a text."""
    from spoold.protocol.codec import value_of as read

    return read(text)


# `spool ask`: a running task asks people something.


ASK_EPILOG = """Example: spool ask 'Which branch?' --choices main,next --wait --timeout 2h"""


def ask(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="QUESTION", help="What people are asked.")],
    choices: Annotated[str, typer.Option("--choices", metavar="A,B", help="The answers that may be given.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the answer, and print it.")] = False,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Wait no longer than: seconds, or 90s, 5m, 2h.")
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Ask people something, from within a running task.

    `spool asks` lists the question, and `spool approve` answers it. The command prints the question's name at once.
    Told to wait, it prints the answer in place of that: a text as it is, any other value as JSON. It exits with 1 if
    the question was rejected, and with 124 if the time was over first."""
    from spoold.faces.cli.terminal.values import duration

    timeout_s = None if timeout is None else duration(timeout, "--timeout")
    words = tuple(word.strip() for word in choices.split(",") if word.strip())
    with session(ctx).spool() as spool:
        question = spool.ask(text, words, expires_s=timeout_s)
        if not wait:
            output.print_json({"question": question}) if as_json else output.print_line(question)
            return
        found = spool.answer_to(question, timeout_s)
    if as_json:
        output.print_json(found)
    elif not found.rejected:
        said = found.answer if isinstance(found.answer, str) else json.dumps(found.answer, ensure_ascii=False)
        output.print_data(said)
    if found.rejected:
        output.remark(f"rejected by {output.within(found.by or 'an unknown user')}: {output.within(found.reason)}")
        raise typer.Exit(TASK_FAILED)
