"""The work of the demonstration: a source tree becomes a DAG of tasks, as plain dictionaries.

    measure-NNN-FILE  (one for each file)  ┐
    twins             (slow)               ├→ report
    cautions          (fails at first)     ┘

Law: only this file knows what a task looks like. Touches: the source tree, reading.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TASKS = Path(__file__).parent / "tasks"
TWINS, CAUTIONS, REPORT = "twins", "cautions", "report"
BATCH = "demo"
FILE_BYTES_MAX = 1 << 20
# Other people's code, and what tools leave behind.
NOT_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages"})


class NoSources(Exception):
    """There is nothing to work on; says what to give instead."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Python files below a root, by their relative paths; there may be more than were taken."""

    root: Path
    files: tuple[str, ...]
    found: int

    def __str__(self) -> str:
        taken = len(self.files)
        which = "all" if taken == self.found else f"evenly chosen from {self.found:,}; --files takes more"
        return f"{taken:,} Python file{'s' if taken != 1 else ''} of {self.root} ({which})"


def find_sources(root: Path, limit: int) -> Sources:
    """The Python files of a tree; if there are more than limit, as many, evenly spread. Errors: NoSources."""
    if not root.is_dir():
        why = "is not a folder" if root.exists() else "does not exist"
        raise NoSources(f"{root} {why}; give the folder of a Python project: tools/demo PATH")
    found = sorted(_walk(root))
    if not found:
        raise NoSources(
            f"{root} has no Python files (*.py; hidden folders, virtual environments and files over "
            f"{FILE_BYTES_MAX >> 20} MiB are passed over); give the folder of a Python project: tools/demo PATH"
        )
    taken = min(limit, len(found))
    return Sources(root, tuple(found[index * len(found) // taken] for index in range(taken)), len(found))


def _walk(root: Path) -> Iterator[str]:
    for folder, below, names in os.walk(root):
        if "pyvenv.cfg" in names and Path(folder) != root:
            below.clear()
            continue
        below[:] = [name for name in below if not name.startswith(".") and name not in NOT_SOURCE]
        for path in (Path(folder, name) for name in names if name.endswith(".py")):
            # A name that is no text cannot stand in JSON; a link may lead anywhere.
            plain = str(path).isprintable() and not path.is_symlink() and path.is_file()
            if plain and path.stat().st_size <= FILE_BYTES_MAX:
                yield str(path.relative_to(root))


def build(sources: Sources, report: Path, slow_s: float) -> list[dict[str, Any]]:
    """The tasks: a measure for each file, twins and cautions over all of them, and the report that waits for all.

    report is the file to write; slow_s is how long `twins` takes at least, in seconds.
    """
    whole = {"root": str(sources.root), "files": sources.files}
    wide = [
        # The slow one first: what takes longest had better start soonest.
        _task(TWINS, TWINS, {**whole, "seconds": slow_s}, priority="high"),
        _task(CAUTIONS, CAUTIONS, {**whole, "failures": 1}, priority="high"),
    ]
    wide += [
        _task(f"measure-{number:03d}-{_slug(file)}", "measure", {"root": str(sources.root), "file": file})
        for number, file in enumerate(sources.files, 1)
    ]
    join = {"root": str(sources.root), "report": str(report)}
    return [*wide, _task(REPORT, REPORT, join, dependencies=[task["id"] for task in wide])]


def _task(task_id: str, program: str, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A task that runs one of our programs; -I keeps the tree that is looked at out of the import path."""
    command = [sys.executable, "-I", "-B", str(TASKS / f"{program}.py")]
    return {"id": task_id, "type": program, "batch": BATCH, "command": command, "input": given, **more}


def _slug(file: str) -> str:
    """What an id may hold of a path: its end, which says more than its beginning."""
    return re.sub(r"[^A-Za-z0-9]+", "-", file.removesuffix(".py")).strip("-")[-40:].strip("-") or "file"
