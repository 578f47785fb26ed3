"""`spool init`: make a spool, if the mount is safe for one.

Law: no spool is made on a mount that the doctor finds unsafe, unless --force is given. A group gets the directory
before the tree is made in it, so that the whole tree belongs to the group.

Touches: the terminal, the environment.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import output

if TYPE_CHECKING:
    from spoold.protocol.doctor_report import Report, Strategy

EPILOG = """Example: spool init /mnt/share/spool"""


ALLOWING = (
    "--allow-command lets a worker run any command that the pool's members submit. Without it a worker runs only the "
    "handlers that its own configuration names."
)


class Claim(StrEnum):
    """The claim strategies."""

    RENAME = "rename"
    LOCK = "lock"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("init", epilog=EPILOG)(init)


def init(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A new or empty directory, on the share.")],
    claim: Annotated[
        Claim | None,
        typer.Option(
            "--claim",
            metavar="HOW",
            help="Insist on a claim strategy: rename or lock.",
            show_default="the safe one",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="GROUP", help="Share it with this group.", show_default="one user"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Make it even where the doctor finds it unsafe.")] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Make a spool in a directory.

    It makes the tree, spool.toml to edit, and the marker spool.json. Before that it tests the mount, as
    `spool doctor --quick` does in 1 or 2 seconds, and chooses the safe claim strategy.
    """
    import os
    import shlex
    import uuid

    from spoold.daemon.node_ids import node_id
    from spoold.doctor.examine import examine
    from spoold.doctor.report_files import keep_first
    from spoold.doctor.trial_process import Order
    from spoold.protocol import layout
    from spoold.protocol.errors import BadFile, Unavailable
    from spoold.rules.share.permissions import init_remark
    from spoold.store.initialise import initialise
    from spoold.system.clock import SystemClock
    from spoold.system.permissions import umask, user_name
    from spoold.system.posix import PosixFileSystem

    if not directory:
        raise BadFile("DIR", "", "is empty.", "name the directory; a variable in it may not be set.")
    path = os.path.abspath(os.path.expanduser(directory))
    gid = _gid(group) if group is not None else None
    report = examine(Order(path, node_id(None, "doctor"), quick=True, make=True))
    chosen = strategy(report, claim.value if claim else None, force=force)
    if gid is not None:
        _share(path, gid, group or "")
    fs = PosixFileSystem(path, layout.PRIVATE)
    marker = initialise(fs, SystemClock(), uuid.uuid4().hex[:12], path, chosen)
    try:
        keep_first(fs, report, marker.spool_id)
    except OSError as error:
        raise Unavailable(f"{path} is a spool now, but the doctor's report cannot be kept: {error}") from error
    if as_json:
        output.print_json({"directory": path, "spool_id": marker.spool_id, "claim": chosen})
        return
    output.print_line(f"made a spool in {path}")
    for remark in report.remarks:
        if remark.grade == "warning" or chosen in remark.against:
            output.remark(f"{remark.grade}: {remark.problem}; {remark.mend}")
    output.remark(init_remark(user_name(), group, umask()))
    output.remark(f"tasks are claimed by {chosen}: {report.reason}")
    output.remark(f"next: spool --spool {shlex.quote(path)} up --allow-command")
    output.remark(f"or, with agents or handlers: spool --spool {shlex.quote(path)} up --config worker.toml")
    output.remark(ALLOWING)
    output.remark(f"settings: {shlex.quote(os.path.join(path, 'spool.toml'))}")


def _gid(group: str) -> int:
    """Return the number of a group. Errors: BadFile."""
    import grp

    from spoold.protocol.errors import BadFile

    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        problem, mend = f"names no group of this machine: {group!r}.", "`getent group` lists them."
        raise BadFile("--group", "", problem, mend) from None


def _share(path: str, gid: int, group: str) -> None:
    """Give the directory to the group, before anything is made in it. Errors: Unavailable."""
    from spoold.protocol.errors import Unavailable
    from spoold.system.permissions import give_to_group

    try:
        give_to_group(path, gid)
    except OSError as error:
        said = f"{path} cannot be given to group {group}: {error.strerror}."
        raise Unavailable(f"{said} Make it as root, or as a member of the group who owns the directory.") from error


def strategy(report: Report, wanted: Strategy | None, *, force: bool) -> Strategy:
    """Return the claim strategy of a new spool. Errors: Unavailable for a mount on which it is not safe."""
    import shlex

    from spoold.protocol.errors import Unavailable
    from spoold.rules.share.mount_options import chosen

    safe = chosen(report.remarks)
    against = [remark for remark in report.remarks if remark.against and (not wanted or wanted in remark.against)]
    if force or (safe and not wanted) or not against:
        return wanted or safe or "rename"
    worst = against[0]
    raise Unavailable(
        f"{report.directory} is not safe for a spool{f' with {wanted}' if wanted else ''}: {worst.problem}. "
        f"Fix: {worst.mend}. `spool doctor {shlex.quote(report.directory)}` says more; "
        f"--force makes it anyway."
    )
