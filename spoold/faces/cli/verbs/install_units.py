"""`spool install-units`: writes systemd units for a spool.

Law: it starts nothing, and with --print or --guide it also writes nothing.

Touches: files, the terminal, the environment.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import output
from spoold.faces.cli.terminal.global_options import session

if TYPE_CHECKING:
    from spoold.daemon.systemd_units import Scope

EPILOG = """Example: sudo spool --spool /mnt/spool install-units --name lab

Example: spool install-units --user --print"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("install-units", epilog=EPILOG)(install_units)


def install_units(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", help="The worker's instance: spool-worker@NAME, /etc/spoold/NAME.toml."
        ),
    ] = "default",
    user: Annotated[bool, typer.Option("--user", help="For this user only, without root.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the files instead of writing them.")] = False,
    guide: Annotated[bool, typer.Option("--guide", help="Print the guide to the units, and write nothing.")] = False,
    root: Annotated[str, typer.Option("--root", metavar="DIR", hidden=True)] = "/",
) -> None:
    """Write systemd units for this spool.

    For a master and a worker. Starts nothing. --guide explains shares, accounts, laptops and the units' settings."""
    from spoold.daemon import systemd_units
    from spoold.protocol.errors import BadFile

    if guide:
        output.print_line(systemd_units.shipped("README.md").rstrip())
        return
    scope: Scope = "user" if user else "system"
    directory = session(ctx).directory()
    executable = _executable(systemd_units.EXECUTABLE[scope])
    try:
        files = systemd_units.render(scope, directory, name, executable)
    except ValueError as error:
        raise BadFile("install-units", "", f"{error}.", "give another name or directory.") from error
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") if user else Path(root)
    mend = "Check who owns that folder." if user else "Run it as root, or with --user."
    for path, text in files.items():
        if show:
            output.print_line(f"# {base / path}\n{text}")
        else:
            _write(base / path, text, mend)
            output.print_line(str(base / path))
    if not show:
        scoped = " --user" if user else ""
        configuration = base / f"spoold/{name}.toml" if user else base / f"etc/spoold/{name}.toml"
        account = "" if user else "  systemd-sysusers && systemd-tmpfiles --create      # the account `spool`\n"
        output.remark(
            f"next: write {configuration}, then\n{account}  systemctl{scoped} daemon-reload\n"
            f"  systemctl{scoped} enable --now spool-worker@{name}      # and spool-master, on one or two machines"
        )


def _executable(usual: str) -> str | None:
    """Return the path of `spool` on this machine; None where it is the path in the shipped units."""
    found = shutil.which("spool") or (sys.argv[0] if sys.argv[0].startswith("/") else None)
    if found is None or os.path.abspath(found) == usual.replace("%h", str(Path.home())):
        return None
    return os.path.abspath(found)


def _write(path: Path, text: str, mend: str) -> None:
    from spoold.protocol.errors import Unavailable

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)  # NetworkManager skips scripts that are not executable
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}. {mend}") from error
