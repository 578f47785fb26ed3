"""report_progress: what the caller's own task has done so far.

Law: a report never takes an earlier figure back that it does not name: what was spent stays counted. The file is on
this machine, and is replaced as a whole, so that its worker never reads half of one.

Touches: files, processes.
"""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

from pydantic import Field

from spoold.faces.mcp.arguments import NUMBER, Arguments, Fraction
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import Answer, Tool
from spoold.protocol.errors import SpoolError

AMOUNT_MOST = 10**12


class ReportProgress(Arguments):
    """The arguments of report_progress."""

    message: str = Field(default="", max_length=2000, description="What you do now, in a sentence.")
    progress: Fraction | None = Field(default=None, description="How much is done, from 0 to 1.")
    tokensUsed: (
        Annotated[int, Field(ge=0, le=AMOUNT_MOST, description="Tokens used so far, in all."), NUMBER] | None
    ) = None
    costUsd: Annotated[float, Field(ge=0, le=AMOUNT_MOST, description="USD spent so far, in all."), NUMBER] | None = (
        None
    )


class Reported(Answer):
    """What stands in the report now."""

    taskId: str
    report: dict[str, Any]


def report(session: Session, arguments: ReportProgress) -> Reported:
    """Write the progress of the caller's own task. Errors: SpoolError outside of a task."""
    path, own = session.progress_file, session.own
    if own is None or not path:
        raise SpoolError(
            "this server does not run within a task, so there is no task whose progress this would be. "
            "Fix: leave it out; report_progress is for an agent that a worker of the pool started."
        )
    said = {
        "message": arguments.message or None,
        "progress": arguments.progress,
        "tokens_used": arguments.tokensUsed,
        "cost_usd": arguments.costUsd,
    }
    session.reported.update({name: value for name, value in said.items() if value is not None})
    draft = f"{path}.mcp-{os.getpid()}"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(session.reported, file, ensure_ascii=False)
    os.replace(draft, path)
    return Reported(taskId=own, report=dict(session.reported))


REPORT_PROGRESS = Tool(
    "report_progress",
    "Report your progress",
    "Say how far your own task is. People see it in the status; with a stall timeout, silence ends a task; tokens "
    "and cost are held against its budget.",
    ReportProgress,
    Reported,
    report,
    repeats=True,
)
