"""Whether something can be done with a task: cancelled, retried, told to its agent, sent back; or a worker drained.

Law: looks and never touches. These checks only save a person a wait, since an impossible request is refused at once:
the node that carries a request out judges it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from spoold.client.read.task_info import kind_of, read_content, running_of
from spoold.client.spool.capabilities import list_served
from spoold.client.spool.waiting import read_result
from spoold.protocol import codec
from spoold.protocol.agent_messages import STANDING_MAX, fault_in
from spoold.protocol.amount import some
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.fields import Priority, Strict
from spoold.protocol.lifecycle import ENDED, State
from spoold.protocol.names import is_id, key, rank_of
from spoold.protocol.request import Verb
from spoold.rules.answers import task_history
from spoold.rules.answers.why_failed import still_failed, unretried
from spoold.rules.gates.facts import parent_in
from spoold.rules.gates.standing_requests import way
from spoold.rules.workers.readiness import is_meant
from spoold.store import control, heartbeats
from spoold.store.store import Store
from spoold.store.task_location import Located, locate, locate_many
from spoold.system.filesystem import FileSystem
from spoold.system.host import Host

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


def refuses_priority(located: Located) -> SpoolError | None:
    """Return why this task cannot have another priority; None where it can."""
    if located.state is State.PENDING and located.id == located.drop:
        return NotFound(f"pending/{located.drop} has no id yet; write `priority` into the file, or wait for its id.")
    if located.state in ENDED:
        return SpoolError(f"task {located.id} is {located.state}; only one that has not ended has a priority.")
    return None


def rank_in_words(priority: int | str) -> int:
    """Return the rank of a priority: an integer, or a word, as in a task. Errors: BadFile."""
    text = f"{priority}".strip()
    value = int(text) if re.fullmatch(r"[+-]?\d{1,9}", text) else text
    return rank_of(codec.check(_Asked, {"priority": value}, "the request").priority)


class _Asked(Strict):
    """What is asked for."""

    priority: Priority


def warnings_of_retry(store: Store, tasks: Sequence[Located]) -> list[str]:
    """Return a warning for each task with a failed dependency of which no retry was asked: it only fails again.

    tasks: all of which a retry was just asked. At most LOOKED_INTO of them are read; one that cannot be read, or has
    moved, has no warning. Errors: OSError from listing.
    """
    needs: dict[str, tuple[str, ...]] = {}
    for located in tasks[:LOOKED_INTO]:
        with suppress(OSError, BadFile):
            needs[located.id] = tuple(codec.load_task(store.fs.read(located.path), located.path).dependencies)
    wanted = {need for each in needs.values() for need in each}
    if not wanted:
        return []
    parents = {need: parent_in(where.state) for need, where in locate_many(store, wanted).items()}
    asked = {key(one.target) for one in control.list_requests(store.fs) if one.verb is Verb.RETRY}
    asked |= {key(located.id) for located in tasks}  # the leader may have carried out some of these already
    held = {task: unretried(each, parents, asked) for task, each in needs.items()}
    began = {located.id: _origin(store, located) for located in tasks[:LOOKED_INTO] if held.get(located.id)}
    return [still_failed(task, some, began[task]) for task, some in held.items() if some]


def _origin(store: Store, located: Located) -> str | None:
    """Return the task with which the failure of this one began, as its record says; None where that says nothing."""
    with suppress(OSError, SpoolError):
        error = read_result(store, located).error
        return error.origin if error is not None else None
    return None


def workers_meant(fs: FileSystem, worker: str) -> list[str]:
    """Return the workers with this id, or started with this name. Errors: OSError; NotFound; SpoolError for a
    master.
    """
    roles = dict.fromkeys(heartbeats.list_beats(fs), "worker")  # also one with an unreadable beat
    roles |= {node: beat.role for node, beat in heartbeats.read_all(fs).items()}
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


# Whether the agent of a task can be told something.


_ENDS = {State.COMPLETED: "completed", State.FAILED: "failed", State.SKIPPED: "been skipped"}


def insist_on_text(text: str) -> None:
    """Refuse a text that cannot be told. Errors: BadFile."""
    fault = fault_in(text)
    if fault is not None:
        raise BadFile("the message", "", *fault)


def refuses_message(store: Store, host: Host, located: Located) -> SpoolError | None:
    """Return why the agent of this task cannot be told anything; None where it can, or where that is not known.

    Errors: OSError.
    """
    if located.state is State.REJECTED:
        return SpoolError(
            f"rejected/{located.drop} was rejected: nothing of it runs, so nobody can be told anything."
        )
    content = read_content(store, located)
    why = _no_agent(store, host, content)
    if not why and located.state in _ENDS:
        return _ended(located, kind_of(content))
    if why:
        return SpoolError(f"task {located.id} {why}, so nobody reads a message. `spool agents` lists the agents.")
    asked = [one for one in control.list_requests(store.fs) if one.verb is Verb.TELL]
    if sum(key(one.target) == key(located.id) for one in asked) >= STANDING_MAX:
        return SpoolError(
            f"task {located.id} has {STANDING_MAX} messages, and no more are kept; they stand until it has ended. "
            "Put what is to be said into a file that its agent reads, or submit a task that comes after it."
        )
    return None


def when(store: Store, task_id: str) -> str:
    """Return when the agent of a task is given a message that was told now. Errors: OSError."""
    try:
        located = locate(store, task_id)
    except NotFound:  # it moves just now
        return task_history.when(None, runs=True)
    running = running_of(store, located)
    return task_history.when(running.progress if running else None, runs=located.state is State.CLAIMED)


def _ended(located: Located, kind: str) -> SpoolError:
    if located.state is State.COMPLETED:
        follow = f"`spool agent {kind or 'AGENT'} 'PROMPT' --after {located.id}`"
        then = f"Submit what is left as a task of its own: {follow}."
    else:
        then = f"`spool retry {located.id}` runs it again, and then it can be told."
    return SpoolError(f"task {located.id} has {_ENDS[located.state]}, and its agent is gone. {then}")


def _no_agent(store: Store, host: Host, content: dict[str, Any]) -> str:
    """Return why no agent runs a task; '' where one does, or nobody knows."""
    kind = kind_of(content)
    if content.get("command") is not None or content.get("python") is not None:
        return "runs no agent, but a command" if content.get("command") is not None else "runs no agent, but Python"
    served = list_served(store, host, store.clock)
    if kind.lower() in {one.lower() for one in served.types} - {one.lower() for one in served.agents}:
        return f"is of the type {kind}, whose handler is no agent"
    return ""


# Which tasks run again when a person sends a task back to one that it comes after.


# A task may move between the look for it and its reading, each time it is looked for.
TRIES = 5
_ENDED = (State.COMPLETED, State.FAILED, State.SKIPPED)


def redo_of(store: Store, located: Located, upstream: str) -> tuple[tuple[str, int], ...]:
    """Return the tasks from `upstream` to this one, which is left out, each with the attempt that has ended.

    Errors: SpoolError where one of them cannot run again, or none leads there; OSError.
    """
    found, needs = _above(store, located)
    tasks = way(key(upstream), key(located.id), needs)
    if not tasks:
        raise _no_way(located.id, upstream, [one.id for one in found.values()])
    for one in tasks:
        if (error := _refuses(found.get(one), one)) is not None:
            raise error
    return tuple((found[one].id, found[one].attempt) for one in tasks)


def _above(store: Store, located: Located) -> tuple[dict[str, Located], dict[str, tuple[str, ...]]]:
    """Return the tasks before this one that are there, and what each comes after, all by key. Errors: OSError."""
    found: dict[str, Located] = {}
    needs = {key(located.id): _needs_of(store, located)}
    while wanted := {parent for parents in needs.values() for parent in parents} - needs.keys():
        there = {key(where.id): where for where in locate_many(store, wanted).values()}
        found |= there
        needs |= {one: _needs_of(store, there[one]) if one in there else () for one in wanted}
    return found, needs


def _needs_of(store: Store, located: Located) -> tuple[str, ...]:
    """Return the keys of the tasks that a task comes after. Errors: SpoolError where it cannot be read; OSError."""
    for _ in range(TRIES):
        if content := read_content(store, located):
            return _needs(content)
        located = locate_many(store, [located.id]).get(located.id, located)
    raise SpoolError(
        f"task {located.id} keeps moving or cannot be read, so what it comes after is unknown; try again."
    )


def _needs(content: dict[str, Any]) -> tuple[str, ...]:
    """Return the keys of the tasks that a task comes after."""
    named = (content.get(field) for field in ("dependencies", "after", "after_any", "after_failed"))
    return tuple(dict.fromkeys(key(one) for names in named for one in _words(names)))


def _words(names: Any) -> Iterable[str]:
    return (one for one in names if isinstance(one, str) and is_id(one)) if isinstance(names, list) else ()


def _refuses(located: Located | None, task: str) -> SpoolError | None:
    if located is None:
        return SpoolError(f"there is no task {task} any more, so it cannot run again.")
    if located.archived:
        return SpoolError(f"task {located.id} is archived, so it cannot run again; submit its work as a new task.")
    if located.state not in _ENDED:
        return SpoolError(f"task {located.id} is {located.state} and has not ended; wait for its end, then reject.")
    return None


def _no_way(task: str, upstream: str, above: list[str]) -> SpoolError:
    if not above:
        return SpoolError(f"{upstream} is not upstream of {task}, which comes after no task.")
    return SpoolError(f"{upstream} is not upstream of {task}. Upstream of it: {some(sorted(above))}.")
