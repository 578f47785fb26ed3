"""The options that make up a task, shared by submit and run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

TYPE = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="What kind of task: workers have handlers by type.")
]
INPUT = Annotated[
    str | None, typer.Option("--input", metavar="JSON", help="The task's input as JSON, or @FILE that holds it.")
]
NAME = Annotated[str | None, typer.Option("--name", help="What people call it.")]
PRIORITY = Annotated[
    str | None,
    typer.Option("--priority", metavar="N", help="An integer, more is sooner; or critical, high, normal, low."),
]
AFTER = Annotated[
    list[str] | None, typer.Option("--after", metavar="ID", help="Start only when ID has completed. Repeatable.")
]
TIMEOUT = Annotated[
    str | None, typer.Option("--timeout", metavar="TIME", help="For one attempt: seconds, or 90s, 5m, 2h.")
]
RETRIES = Annotated[
    int | None, typer.Option("--retries", min=0, metavar="N", help="How often to try again when it fails.")
]
REQUIRES = Annotated[
    list[str] | None,
    typer.Option("--requires", metavar="WHAT", help="What a worker must have: cpu=2,mem=4G,gpu=1,label=docker."),
]
BATCH = Annotated[str | None, typer.Option("--batch", metavar="B", help="The batch that it belongs to.")]
ENV = Annotated[
    list[str] | None, typer.Option("--env", metavar="K=V", help="A variable for the command. Repeatable.")
]
CWD = Annotated[
    str | None,
    typer.Option(
        "--cwd",
        metavar="DIR",
        help="Where the command starts, on the worker's machine; else in a scratch directory of its own. "
        "The caller's directory is not sent along unless asked for, as by '--cwd .': other machines may not have it.",
    ),
]
ID = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="Its id; submitting the same id and content again is a no-op."),
]


@dataclass(frozen=True, slots=True)
class Options:
    """What the options of one command line say; None where they say nothing."""

    kind: str | None = None
    input: str | None = None
    id: str | None = None
    name: str | None = None
    priority: str | None = None
    after: Sequence[str] | None = None
    timeout: str | None = None
    retries: int | None = None
    requires: Sequence[str] | None = None
    batch: str | None = None
    env: Sequence[str] | None = None
    cwd: str | None = None

    def fields(self) -> dict[str, Any]:
        """The fields of the task that were said. Errors: BadFile that names the option."""
        from spoold.cli import values

        fields: dict[str, Any] = {
            "id": self.id,
            "type": self.kind,
            "name": self.name,
            "priority": _priority(self.priority),
            "max_retries": self.retries,
            "batch": self.batch,
            "cwd": _directory(self.cwd),
            "dependencies": list(self.after) if self.after else None,
            "timeout": values.duration(self.timeout, "--timeout") if self.timeout is not None else None,
            "requires": values.requirements(self.requires) if self.requires else None,
            "env": values.pairs(self.env, "--env") if self.env else None,
        }
        said = {name: value for name, value in fields.items() if value is not None}
        if self.input is not None:
            said["input"] = values.json_value(self.input, "--input")
        return said


def with_command(fields: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """The task that runs a command. Errors: BadFile when there is nothing after the dashes."""
    from spoold.protocol.errors import BadFile

    if not command:
        raise BadFile("the command line", "", "has nothing after '--'.", "put the command there: -- CMD ARG …")
    return {**fields, "command": list(command)}


def _directory(path: str | None) -> str | None:
    """A path that begins where the caller stands, which a worker cannot know, from the root; any other as it is."""
    return os.path.abspath(path) if path and not path.startswith("/") else path


def _priority(text: str | None) -> int | str | None:
    """A number as a number; a word is for the model to know."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return text
