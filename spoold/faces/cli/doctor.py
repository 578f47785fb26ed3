"""`spool doctor`: checks whether a mount is safe for a spool, and which claim strategy fits it.

Law: if there is a report, its verdict alone decides the exit code: 1 for "not safe", 0 for any other.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.output import JsonOption, print_json, print_line, print_prose, remark, sentence, within
from spoold.faces.cli.session import session

if TYPE_CHECKING:
    from spoold.protocol.report import Remark, Report

NOT_SAFE = 1

EPILOG = """Example: spool doctor /mnt/spool

Example: spool doctor /mnt/spool --with 2     (on two machines, within a minute)"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("doctor", epilog=EPILOG)(doctor)


def doctor(
    ctx: typer.Context,
    directory: Annotated[
        str | None,
        typer.Argument(metavar="[DIR]", help="A directory on the share; else the spool.", show_default=False),
    ] = None,
    machines: Annotated[
        int, typer.Option("--with", metavar="N", min=1, max=16, help="How many machines take part, this one too.")
    ] = 1,
    wait: Annotated[str, typer.Option("--wait", metavar="TIME", help="How long to wait for the others.")] = "60s",
    files: Annotated[
        int, typer.Option("--files", metavar="N", min=1, max=100_000, help="How many files to race for.")
    ] = 500,
    quick: Annotated[bool, typer.Option("--quick", help="Only the trials of `spool init`; 1 or 2 seconds.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Test whether a mount is safe for a spool, and say how to fix it if it is not.

    Needs no spool, and disturbs none: no task is touched, no file is left. One machine can judge options, names,
    directories and speed. Only two machines can test whether both could claim one task: run it on both, --with 2.
    Exit code 0 when it is safe, 1 when it is not, 124 when the other machines did not come.
    """
    import os

    from spoold.daemon.naming import node_id
    from spoold.doctor.child import Order
    from spoold.doctor.examine import examine
    from spoold.faces.cli.values import duration

    path = os.path.abspath(os.path.expanduser(directory)) if directory else session(ctx).directory()
    order = Order(path, node_id(None, "doctor"), machines, duration(wait, "--wait"), files, quick=quick)
    report = examine(order, remark)
    if as_json:
        print_json(report)
    else:
        show(report)
    if report.verdict == "not safe":
        raise typer.Exit(NOT_SAFE)


def _weight(found: Remark) -> str:
    """Return the strategies that a remark rules out, in a word or two; else its grade."""
    if not found.against:
        return found.grade
    return "not safe" if len(found.against) > 1 else f"no {found.against[0]}"


def show(report: Report) -> None:
    """Print the report for people: the worst first, then the verdict, and last a line to copy into a bug report."""
    from spoold.rules.share.mount_options import describe

    print_line(f"{report.directory}: {describe(report.mount) if report.mount else 'mounted in an unknown way'}")
    for found in report.remarks:
        where = f"{found.host}: " if found.host else ""
        print_prose(f"{_weight(found)}: {where}{sentence(found.problem)}", "    ")
        if found.mend:
            print_prose(f"    fix: {within(found.mend)}", "    ")
    print_prose(f"{report.verdict}: {report.reason}", "    ")
    print_line(f"for bug reports: {report.line}")
