"""The `spool` command run inside the test, on a spool in a real directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from spoold.faces.cli.app import build
from spoold.master.master import Master
from spoold.store.initialise import initialise
from spoold.store.store import Store, open_store
from spoold.system.clock import SystemClock
from spoold.system.host import SystemHost
from spoold.system.posix import PosixFileSystem


def spool(directory: Path, *words: str) -> Result:
    """Run one verb; stdout, stderr and exit code are in the result."""
    return CliRunner().invoke(build(words), ["--spool", str(directory), *words])


def told(directory: Path, *words: str) -> Any:
    """What a verb prints with --json, when it goes well."""
    result = spool(directory, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def make(directory: Path) -> Path:
    """A new spool."""
    directory.mkdir()
    initialise(PosixFileSystem(str(directory)), SystemClock(), "s1", str(directory))
    return directory


def opened(directory: Path, writer: str) -> Store:
    """The spool as a writer sees it."""
    store = open_store(PosixFileSystem(str(directory)), SystemClock(), writer, str(directory))
    store.open_tmp()
    return store


def leader(directory: Path, name: str = "m-0001") -> Master:
    """A master of this process that leads and has reported."""
    master = Master(opened(directory, name), SystemHost())
    master.step()
    return master
