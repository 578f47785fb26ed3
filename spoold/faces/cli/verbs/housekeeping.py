"""`spool fsck`: checks every law of the spool on its files, and repairs them if asked. `spool gc`: retention, now.

Law: nothing is repaired without --repair. After a repair the spool is checked again, and the exit code is that of the
last check. `gc` only posts a request, and does not wait until the leader has carried it out.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import output
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import JsonOption, print_json, print_prose, remark, sentence, within

if TYPE_CHECKING:
    from spoold.client.spool.fsck_and_repair import FsckReport
    from spoold.store.tree_repair import Mended


ERRORS_FOUND = 1

FSCK_EPILOG = """Example: spool fsck

Example: spool fsck --repair"""


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("gc", epilog=GC_EPILOG)(gc)
    app.command("fsck", epilog=FSCK_EPILOG)(fsck)


def fsck(
    ctx: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair where no guess is needed; stop all nodes first.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Repair although a node seems alive.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Audit every file of the spool: one task file per id, results, lanes, names, leadership.

    Needs no master, and works on a spool in use. Exit code 0 when no law is broken (warnings are allowed), 1 when one
    is.
    """
    from spoold.client.spool.fsck_and_repair import check, mend
    from spoold.system.clock import SystemClock
    from spoold.system.host import SystemHost

    mended: list[Mended] = []
    with session(ctx).spool() as spool, spool.reaching():
        report = check(spool.store)
        if repair:
            mended = mend(spool.store, SystemHost(), SystemClock(), report, force=force)
            report = check(spool.store) if mended else report
    if as_json:
        print_json(_plain(report, mended))
    else:
        _print(report, mended, repaired=repair)
    if report.broken:
        raise typer.Exit(ERRORS_FOUND)


def _plain(report: FsckReport, mended: list[Mended]) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "counts": report.counts,
        "findings": [
            {
                "severity": finding.severity.value,
                "law": finding.law,
                "paths": finding.paths,
                "problem": finding.problem,
                "mend": finding.mend,
                "repairable": finding.fix is not None,
            }
            for finding in report.findings
        ],
        "repaired": [{"done": step.done, "what": step.what} for step in mended],
    }


def _print(report: FsckReport, mended: list[Mended], *, repaired: bool) -> None:
    for step in mended:
        print_prose(f"{'repaired' if step.done else 'not repaired'}: {within(step.what)}")
    for finding in report.findings:
        print_prose(f"{finding.severity.value}: {', '.join(map(within, finding.paths))}: {sentence(finding.problem)}")
        print_prose(f"    fix: {within(finding.mend)}")
    tasks = ", ".join(f"{number} {state}" for state, number in report.counts.items() if number)
    print_prose(f"{report.verdict}: {tasks or 'no tasks'}")
    if not repaired and any(finding.fix is not None for finding in report.findings):
        remark("`spool fsck --repair` repairs all that needs no guess, once masters and workers are stopped.")


# `spool gc`: retention, now.


GC_EPILOG = """Example: spool gc"""


def gc(ctx: typer.Context) -> None:
    """Archive every ended task now.

    And delete old archived tasks."""
    with session(ctx).spool() as spool:
        spool.gc()
    output.remark("the leader will archive ended tasks; `spool ls --all` shows the archive")
