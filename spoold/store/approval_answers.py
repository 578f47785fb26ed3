"""The answers to the questions of a task, as the worker that runs it finds them; and who may give one.

Law: an answer is a file that stands in control/ when the task begins; without one nothing begins. So a task starts
only after its approval was published, whatever two leaders do at once. An answer is refused only for an owner that
was seen: the user as whom tasks run, where users can be told apart. Where one user owns the spool, the tasks and the
workers, no file says whether a person or a task wrote it, and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from spoold.protocol import layout
from spoold.protocol.approval import Approval
from spoold.protocol.names import TaskName, is_node, key
from spoold.protocol.request import Request, Verb
from spoold.rules.gates import standing_requests
from spoold.rules.gates.standing_requests import Requested, decision, record, reply
from spoold.store import control
from spoold.system.filesystem import FileSystem


def decided(fs: FileSystem, name: TaskName, approval: Approval, token: str) -> Requested | None:
    """The answer to the question about a task's approval, None where none stands. token: a path. Errors: OSError."""
    return decision(_from_people(fs, control.about_task(fs, name.id), token), approval, name.order)


def replies(fs: FileSystem, name: TaskName, token: str) -> list[dict[str, Any]]:
    """Each question that this attempt asked, and its answer: for its result. Errors: OSError."""
    requests = _from_people(fs, control.about_task(fs, name.id), token)
    asked = [one for one in requests if one.request.verb is Verb.ASK and one.attempt == name.attempt]
    found = []
    for one in sorted(asked, key=lambda one: one.unique):
        given = reply(requests, one.unique)
        unanswered = {"ask": one.ask, "answer": None, "by": "", "at": "", "reason": "", "rejected": False}
        found.append(unanswered if given is None else record(given, one.ask, one.choices))
    return found


def rounds(fs: FileSystem, name: TaskName, token: str) -> list[dict[str, Any]]:
    """The rounds in which people sent work back before this task began: for its result. Errors: OSError."""
    requests = _from_people(fs, control.about_task(fs, name.id), token)
    return standing_requests.records(one for one in standing_requests.rounds(requests) if one.order != name.order)


def feedback(fs: FileSystem, name: TaskName, token: str) -> dict[str, Any] | None:
    """Why this task runs again, in the words of those who sent it back; None where nobody has. Errors: OSError."""
    rejects = [one for one in control.list_requests(fs) if one.verb is Verb.REJECT]
    about = [one for task in {key(one.target) for one in rejects} for one in control.about_task(fs, task, rejects)]
    return standing_requests.feedback(_from_people(fs, tuple(about), token), key(name.id), name.attempt)


def redos(fs: FileSystem, requests: Iterable[Request]) -> tuple[Requested, ...]:
    """Those that send work back. requests: as already listed. Errors: OSError."""
    rejects = [one for one in requests if one.verb is Verb.REJECT]
    about = [one for task in {key(one.target) for one in rejects} for one in control.about_task(fs, task, rejects)]
    return tuple(filter(standing_requests.is_redo, about))


def sent_back(fs: FileSystem, name: TaskName, token: str, asked: Sequence[Requested]) -> str:
    """Who sent this task back last, in which round and why; '' for nobody. asked: as `redos` finds them.

    Errors: OSError.
    """
    mine = key(name.id)
    targets = {key(one.request.target) for one in asked if mine in (key(one.request.target), key(one.redo[0][0]))}
    about = tuple(one for one in asked if key(one.request.target) in targets)
    return (
        standing_requests.sent_back(_from_people(fs, about, token), mine, name.order, name.attempt) if about else ""
    )


def replied(fs: FileSystem, task_id: str, about: str, token: str | None) -> Requested | None:
    """The answer to one question of a running task, None while none stands. Errors: OSError."""
    return reply(_from_people(fs, control.about_task(fs, task_id), token), about)


def _from_people(fs: FileSystem, requests: tuple[Requested, ...], token: str | None) -> list[Requested]:
    """The requests without the answers that a task gave itself."""
    return [one for one in requests if one.request.verb is Verb.ASK or _is_from_a_person(fs, one, token)]


def _is_from_a_person(fs: FileSystem, one: Requested, token: str | None) -> bool:
    try:
        return may_answer(fs, control.path(one.request), token)
    except FileNotFoundError:
        return False  # it was removed since it was read


# Who may answer a question about a task: not the user as whom tasks run, where users can be told apart.


def may_answer(fs: FileSystem, request: str, token: str | None) -> bool:
    """Whether the owner of a request may answer for a task. request, token: paths; token: None if it is not known.

    The workers' users own the directories in claimed/. If such a user has also made the spool and submitted the task,
    users cannot be told apart. Errors: OSError of the request itself.
    """
    owner = fs.stat(request).owner
    if owner is None or owner not in _users_of_workers(fs):
        return True
    others = [_owner_of(fs, path) for path in (layout.MARKER, token) if path is not None]
    return all(other in (owner, None) for other in others)


def _users_of_workers(fs: FileSystem) -> set[int]:
    found = (_owner_of(fs, layout.join(layout.CLAIMED, node)) for node in filter(is_node, fs.list(layout.CLAIMED)))
    return {owner for owner in found if owner is not None}


def _owner_of(fs: FileSystem, path: str) -> int | None:
    """The owner of what may be gone by now."""
    with suppress(OSError):
        return fs.stat(path).owner
    return None
