"""The options that make up a task, shared by the verbs that submit.

Law: a field whose option is not given is not in the task, so that the value in a file, or the default, holds. An
error in a field that an option has set names this option.

Touches: the terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import completion, output

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

TYPE = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="The type of the task: workers have handlers by type.",
        autocompletion=completion.types,
    ),
]
INPUT = Annotated[
    str | None, typer.Option("--input", metavar="JSON", help="The task's input as JSON, or @FILE that holds it.")
]
NAME = Annotated[str | None, typer.Option("--name", metavar="NAME", help="A name for people.")]
PRIORITY = Annotated[
    str | None,
    typer.Option("--priority", metavar="N", help="An integer, more is sooner; or critical, high, normal, low."),
]
AFTER = Annotated[
    list[str] | None,
    typer.Option(
        "--after", metavar="ID", help="Start only when ID has completed. Repeatable.", autocompletion=completion.ids
    ),
]
AFTER_FAILED = Annotated[
    list[str] | None,
    typer.Option(
        "--after-failed",
        metavar="ID",
        help="Start only when ID, or another so named, has failed; skipped if none does. Repeatable.",
        autocompletion=completion.ids,
    ),
]
AFTER_BATCH = Annotated[
    str | None,
    typer.Option(
        "--after-batch",
        metavar="B",
        help="Start only when all tasks of this batch have ended.",
        autocompletion=completion.batches,
    ),
]
TIMEOUT = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        metavar="TIME",
        help="For one attempt: seconds, or 90s, 5m, 2h; or auto, by how long such tasks took.",
    ),
]
RETRIES = Annotated[
    int | None,
    typer.Option(
        "--retries",
        min=0,
        metavar="N",
        help="How often to try again when it fails: 3 times, unless the spool says otherwise.",
    ),
]
REQUIRES = Annotated[
    list[str] | None,
    typer.Option("--requires", metavar="WHAT", help="Demands on the worker: cpu=2,mem=4G,gpu=1,label=docker."),
]
USES = Annotated[
    list[str] | None,
    typer.Option("--uses", metavar="LIMIT", help="A limit that it uses; LIMIT=2 for two units. Repeatable."),
]
CLASS = Annotated[
    str | None, typer.Option("--class", metavar="C", help="Its class, which may have slots of its own.")
]
BUDGETS = Annotated[
    list[str] | None, typer.Option("--budget", metavar="B", help="A budget that it draws on. Repeatable.")
]
LOCKS = Annotated[
    list[str] | None,
    typer.Option(
        "--lock",
        metavar="PATTERN",
        help="Files or names that it changes: nothing else that locks them runs meanwhile. Repeatable.",
    ),
]
READS = Annotated[
    list[str] | None,
    typer.Option("--lock-read", metavar="PATTERN", help="The same for what it only reads. Repeatable."),
]
HOLD = Annotated[
    str | None, typer.Option("--hold", metavar="WHY", help="Keep it from starting until `spool release ID`.")
]
APPROVAL = Annotated[
    str | None,
    typer.Option(
        "--approval",
        metavar="QUESTION",
        help="Ask people this, and start it only after `spool approve ID`; or the whole `approval` as JSON.",
    ),
]
BATCH = Annotated[
    str | None,
    typer.Option("--batch", metavar="B", help="The batch of the task.", autocompletion=completion.batches),
]
ENV = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="K=V", help="A variable for the command; a handler takes those that it allows. Repeatable."
    ),
]
CWD = Annotated[
    str | None,
    typer.Option(
        "--cwd",
        metavar="DIR",
        help="Where the command starts, on the worker's machine; else in its own scratch directory. "
        "A handler starts there only if it allows that. "
        "'--cwd .' sends the caller's directory, which is not sent otherwise: other machines may not have it.",
    ),
]
ID = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="Its id; the same id and content again is a no-op. Case does not count. The leader judges whether "
        "another task has the id: --wait waits for that, and explain and status show it.",
    ),
]


# The field of a task → the option that sets it.
_OPTIONS = {
    "id": "--id",
    "type": "--type",
    "name": "--name",
    "priority": "--priority",
    "max_retries": "--retries",
    "batch": "--batch",
    "cwd": "--cwd",
    "dependencies": "--after",
    "after_failed": "--after-failed",
    "after_batch": "--after-batch",
    "timeout": "--timeout",
    "requires": "--requires",
    "uses": "--uses",
    "class": "--class",
    "budgets": "--budget",
    "locks": "--lock",
    "hold": "--hold",
    "approval": "--approval",
    "env": "--env",
    "input": "--input",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one command line; None where one is not given."""

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
    after_failed: Sequence[str] | None = None
    after_batch: str | None = None
    uses: Sequence[str] | None = None
    bulkhead: str | None = None
    budgets: Sequence[str] | None = None
    locks: Sequence[str] | None = None
    reads: Sequence[str] | None = None
    hold: str | None = None
    approval: str | None = None

    def fields(self) -> dict[str, Any]:
        """Return the given fields of the task. Errors: BadFile that names the option."""
        from spoold.faces.cli.terminal import values

        fields: dict[str, Any] = {
            "id": self.id,
            "type": self.kind,
            "name": self.name,
            "priority": None if self.priority is None else values.integer(self.priority, "--priority"),
            "max_retries": self.retries,
            "batch": self.batch,
            "cwd": _directory(self.cwd),
            "dependencies": list(self.after) if self.after else None,
            "after_failed": list(self.after_failed) if self.after_failed else None,
            "after_batch": self.after_batch,
            "timeout": values.timeout(self.timeout) if self.timeout is not None else None,
            "requires": values.requirements(self.requires) if self.requires else None,
            "uses": values.units(self.uses, "--uses") if self.uses else None,
            "class": self.bulkhead,
            "budgets": list(self.budgets) if self.budgets else None,
            "locks": {how: list(some) for how, some in (("write", self.locks), ("read", self.reads)) if some} or None,
            "hold": self.hold,
            "approval": _approval(self.approval),
            "env": values.pairs(self.env, "--env") if self.env else None,
        }
        said = {name: value for name, value in fields.items() if value is not None}
        if self.input is not None:
            said["input"] = values.json_value(self.input, "--input")
        return said


def _approval(said: str | None) -> Any:
    """Return the approval that a question, or an object in JSON, asks for. Errors: BadFile for a broken object."""
    from spoold.faces.cli.terminal import values

    if said is None:
        return None
    return values.json_value(said, "--approval") if said.lstrip().startswith("{") else {"ask": said}


def with_command(fields: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """Return the task that runs a command. Errors: BadFile when there is nothing after the dashes."""
    from spoold.protocol.errors import BadFile

    if not command:
        raise BadFile("the command line", "", "has nothing after '--'.", "put the command there: -- CMD ARG …")
    return {**fields, "command": list(command)}


def _directory(path: str | None) -> str | None:
    """Return a relative path as an absolute one, since a worker does not know the caller's directory."""
    return os.path.abspath(path) if path and not path.startswith("/") else path


def repository(repo: str | None) -> str | None:
    """Return a repository that is named from the caller's directory by its absolute path; any other as it is."""
    return os.path.abspath(repo) if repo and repo.startswith(".") else repo


@contextmanager
def naming_options(fields: Mapping[str, Any]) -> Iterator[None]:
    """Make errors in these fields name the option that set them. Errors: BadFile."""
    from spoold.protocol.errors import BadFile

    try:
        yield
    except BadFile as error:
        name, _, rest = error.field.partition(".")
        if name not in fields or name not in _OPTIONS:
            raise
        part = "" if rest.isdigit() else rest
        raise BadFile(_OPTIONS[name], part, error.problem, error.mend) from None


def warn_of_room(spool: SpoolClient) -> None:
    """Say on stderr that what was submitted has to wait for room on the share, if it has."""
    with spool.reaching():
        room = spool.store.room()
    if room.full:
        output.remark(f"warning: {room.value}; the leader admits what you submit once there is room: {room.mend}")
