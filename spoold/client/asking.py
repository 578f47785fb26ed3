"""Whether a task can be cancelled or retried, or a worker drained: an impossible request is refused at once.

Law: looks and never touches. These checks only save a person a wait: the node that carries a request out judges it
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice

from spoold.protocol import codec
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.request import Verb
from spoold.rules.answers.why_failed import still_failed, unretried
from spoold.rules.gates.facts import parent_in
from spoold.rules.workers.readiness import is_meant
from spoold.store import beats, control
from spoold.store.locate import Located, locate_many
from spoold.store.store import Store
from spoold.system.filesystem import FileSystem

# So many tasks of one retry are read for their dependencies.
LOOKED_INTO = 1000


def refuses_cancel(located: Located) -> SpoolError | None:
    """Return why this task cannot be cancelled; None where it can, or where it has ended already."""
    if located.state is State.REJECTED:
        return SpoolError(f"rejected/{located.drop} was rejected: there is nothing to cancel.")
    if located.state is State.PENDING and located.id == located.drop:
        return NotFound(f"pending/{located.drop} has no id yet; delete the file, or cancel it once it has one.")
    return None


def refuses_retry(located: Located) -> SpoolError | None:
    """Return why this task cannot be retried; None where it can."""
    if located.state is State.REJECTED:
        return SpoolError(f"{located.id} was rejected: fix the file and submit it again.")
    if located.state not in (State.FAILED, State.SKIPPED):
        return SpoolError(f"task {located.id} is {located.state}; only a failed task can be retried.")
    return None


def warnings_of_retry(store: Store, tasks: Iterable[Located]) -> list[str]:
    """Return a warning for each task with a failed dependency of which no retry was asked: it only fails again.

    At most LOOKED_INTO tasks are read; one that cannot be read, or has moved, has none. Errors: OSError from listing.
    """
    needs: dict[str, tuple[str, ...]] = {}
    for located in islice(tasks, LOOKED_INTO):
        with suppress(OSError, BadFile):
            needs[located.id] = tuple(codec.load_task(store.fs.read(located.path), located.path).dependencies)
    wanted = {need for each in needs.values() for need in each}
    if not wanted:
        return []
    parents = {need: parent_in(where.state) for need, where in locate_many(store, wanted).items()}
    asked = {key(one.target) for one in control.list_requests(store.fs) if one.verb is Verb.RETRY}
    held = {task: unretried(each, parents, asked | set(map(key, needs))) for task, each in needs.items()}
    return [still_failed(task, some) for task, some in held.items() if some]


def workers_meant(fs: FileSystem, worker: str) -> list[str]:
    """Return the workers with this id, or started with this name. Errors: OSError; NotFound; SpoolError for a
    master.
    """
    roles = dict.fromkeys(beats.list_beats(fs), "worker")  # also one with an unreadable beat
    roles |= {node: beat.role for node, beat in beats.read_all(fs).items()}
    meant = [node for node, role in sorted(roles.items()) if is_meant(worker, node, role)]
    masters = [node for node, role in sorted(roles.items()) if role == "master" and is_meant(worker, node)]
    if masters and not meant:
        raise SpoolError(f"{masters[0]} is a master, which runs no tasks. Stop its process, and another one leads.")
    if not meant:
        raise NotFound(f"no worker {worker!r} is alive. `spool workers` shows those there are.")
    return meant


def insist(tasks: Iterable[Located], refuses: Callable[[Located], SpoolError | None]) -> None:
    """Raise the error that `refuses` returns for the first task that it refuses."""
    for located in tasks:
        if (error := refuses(located)) is not None:
            raise error
