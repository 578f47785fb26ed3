"""get_context and put_context: what the tasks of a batch share.

Law: an agent within a task has the context of its own batch alone; outside of one, that of batches of tasks that it
reaches. Nothing is ever overwritten, and a conflict is said.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from spoold.client.context_and_steps import Conflict, Shared, SharedContext
from spoold.client.read.task_info import read_content, text_in
from spoold.faces.mcp.arguments import NUMBER, Arguments
from spoold.faces.mcp.roles import Role
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import Answer, Tool
from spoold.protocol.context_entry import BYTES_MAX, NAME_MAX
from spoold.protocol.errors import NotFound
from spoold.protocol.names import key

Name = Annotated[str, Field(max_length=NAME_MAX, description="The name of an entry, such as decisions.md.")]
Batch = Annotated[str, Field(max_length=120, description="Which batch; within a task that of the task.")]
Version = Annotated[int, Field(ge=0, le=10**9), NUMBER]


class GetContext(Arguments):
    """The arguments of get_context."""

    entry: Name = ""
    version: Version = Field(default=0, description="An earlier version; 0 for the one that counts.")
    batch: Batch = ""


class PutContext(Arguments):
    """The arguments of put_context."""

    entry: Annotated[Name, Field(min_length=1)]
    content: str = Field(max_length=BYTES_MAX, description="The whole content of the new version.")
    ifVersion: Version | None = Field(
        default=None, description="Put only if this is the version that counts now; 0 if there is to be none yet."
    )
    batch: Batch = ""


class ContextEntry(Answer):
    """One entry. conflicts: versions that its author had not seen."""

    name: str
    version: int
    task: str
    by: str
    at: str
    conflicts: list[int]


class Found(Answer):
    """The content of one entry, or the names of all."""

    batch: str
    entries: list[ContextEntry]
    content: str


class Put(Answer):
    """What a put has made of it. conflict: why not, or what else stands; '' for none."""

    batch: str
    entry: str
    version: int = Field(description="The version that was put; 0 where nothing was.")
    conflict: str


def get(session: Session, arguments: GetContext) -> Found:
    """Return an entry, or all that count. Errors: NotFound, SpoolError."""
    shared = _context(session, arguments.batch)
    if not arguments.entry:
        return Found(batch=shared.batch, entries=[_entry(each) for each in shared.current()], content="")
    found, data = shared.get(arguments.entry, arguments.version or None)
    return Found(batch=shared.batch, entries=[_entry(found)], content=data.decode(errors="replace"))


def put(session: Session, arguments: PutContext) -> Put:
    """Add a version of an entry. Errors: NotFound, SpoolError."""
    shared = _context(session, arguments.batch)
    try:
        found = shared.put(
            arguments.entry, arguments.content.encode(errors="replace"), if_version=arguments.ifVersion
        )
    except Conflict as conflict:
        return Put(batch=shared.batch, entry=arguments.entry, version=conflict.version, conflict=str(conflict))
    others = ", ".join(map(str, found.conflicts))
    said = f"version {others} was put at the same moment: get it, merge, and put again" if others else ""
    return Put(batch=shared.batch, entry=found.name, version=found.version, conflict=said)


def _entry(found: Shared) -> ContextEntry:
    return ContextEntry(
        name=found.name,
        version=found.version,
        task=found.task,
        by=found.by,
        at=found.at,
        conflicts=list(found.conflicts),
    )


def _context(session: Session, batch: str) -> SharedContext:
    """Return the context of a batch that the caller reaches. Errors: NotFound, SpoolError."""
    if session.own is not None:
        own = SharedContext(session.spool)
        if batch and key(batch) != key(own.batch):
            raise NotFound(f"batch {batch!r} is not that of your task. Fix: leave batch out.")
        return own
    shared = SharedContext(session.spool, batch)
    if session.role is not Role.OPERATOR and not _reaches(session, key(batch)):
        raise NotFound(f"none of your tasks is of batch {batch!r}. Fix: submit_tasks with this batch first.")
    return shared


def _reaches(session: Session, batch: str) -> bool:
    store = session.spool.store
    return any(key(text_in(read_content(store, each), "batch")) == batch for each in session.reach.mine())


GET_CONTEXT = Tool(
    "get_context",
    "Get shared context",
    "What the tasks of your batch share: decisions, findings, interfaces. Without an entry it lists the entries.",
    GetContext,
    Found,
    get,
    reads=True,
)
PUT_CONTEXT = Tool(
    "put_context",
    "Put shared context",
    "Share an entry with the other tasks of your batch. It never replaces one: it adds a version, and the latest "
    "counts. With ifVersion it says so when somebody else was faster; then get it, merge, and put again.",
    PutContext,
    Put,
    put,
)
