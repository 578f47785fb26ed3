"""What names alone say of a spool, for callers that have no time to open a file: a shell that completes a word.

Law: looks and never touches, and imports no model of a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from spoold.client.spool.location import spool_directory
from spoold.protocol.lifecycle import SHOWN, State
from spoold.protocol.names import own_name
from spoold.store.store import Store, open_store
from spoold.store.task_location import Located, iter_archive, iter_tasks
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem

__all__ = ["Store", "list_workers", "look_in", "select_by_name"]


def look_in(directory: str | None) -> Store:
    """Open the named spool, or the configured one, only to look at it. Errors: Unavailable, NoSpoolNamed, BadFile."""
    path = spool_directory(directory)
    return open_store(PosixFileSystem(path), SystemClock(), "cli-looks-0", path)


def select_by_name(store: Store, states: Collection[State] = (), *, archived: bool = False) -> Iterator[Located]:
    """Every task in these states, or in any; a drop with many lines is one file. Errors: OSError."""
    return iter_tasks(store, tuple(states) or SHOWN, archived=archived)


def archived_in(store: Store, states: Collection[State] = ()) -> int:
    """How many archived tasks ended in these states, or in any. Errors: OSError."""
    if states and not {State.COMPLETED, State.FAILED, State.SKIPPED}.intersection(states):
        return 0
    return sum(not states or one.state in states for one in iter_archive(store))


def list_workers(store: Store) -> set[str]:
    """Workers, by their ids and by the names that they were started with. Errors: OSError."""
    from spoold.store import heartbeats

    nodes = [node for node, beat in heartbeats.read_all(store.fs).items() if beat.role == "worker"]
    return {*nodes, *map(own_name, nodes)} - {""}
