"""The `spool` command run in this process, or as a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from spoold.faces.cli.app import build


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def spool(*words: str, stdin: bytes = b"", root: Path | None = None, columns: int | None = None) -> Done:
    """Run the command in this process; root is what SPOOL_DIR says, columns how wide its terminal is."""
    env = {"SPOOL_DIR": str(root) if root else None, "HOME": "/nonexistent", "XDG_CONFIG_HOME": None}
    env |= {"COLUMNS": str(columns)} if columns is not None else {}
    done = CliRunner().invoke(build(words), list(words), input=stdin, env=env, prog_name="spool")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def environment(root: Path) -> dict[str, str]:
    return {**os.environ, "SPOOL_DIR": str(root), "PYTHONUNBUFFERED": "1"}


def start(*words: str, root: Path, **more: object) -> subprocess.Popen[bytes]:
    """Start the command as a process."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    command = [sys.executable, "-m", "spoold", *words]
    return subprocess.Popen(command, env=environment(root), **pipes)  # type: ignore[call-overload, no-any-return]
