"""What the page of an action shows of tasks, and a digest of it: only what was shown is done.

A name says little: a task may have been replaced by another of the same id, or may have started meanwhile. So a form
carries a digest of what its page showed, and all of it is read anew before anything is requested.

Law: looks and never touches. Of a question, the files are read each time, and never a copy in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spoold.client.read import questions, selecting
from spoold.client.spool_client import SpoolClient
from spoold.client.view import Card
from spoold.pictures import task_description
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key, parse_task

# A task that moves on while it is read is looked for so often.
TRIES = 3
_ENDED = (State.COMPLETED.value, State.FAILED.value, State.SKIPPED.value)


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells a task, as it is now, from others of its id. order: of its token, '' where its name is not known;
    decider: who ended it, '' while it lives and where only the view was asked, which may know who reported the end.
    """

    state: str
    attempt: int
    order: str = ""
    decider: str = ""

    def fits(self, other: Mark) -> bool:
        """Whether both are of the same task in the same state; what one of them does not know fits any."""
        alike = all(
            mine == its or "" in (mine, its)
            for mine, its in ((self.order, other.order), (self.decider, other.decider))
        )
        return (self.state, self.attempt) == (other.state, other.attempt) and alike


def mark_of(located: selecting.Located) -> Mark:
    """Return the mark of a task that was looked for just now."""
    order = "" if located.name is None else located.name.order
    state = located.state.value
    return Mark(state, located.attempt, order, located.node if state in _ENDED else "")


def mark_of_card(card: Card) -> Mark:
    """Return the mark of a task, as the view knows it."""
    name = parse_task(card.file)
    return Mark(card.state, card.attempt, name.order if name is not None else "")


def find_one(client: SpoolClient, task: str) -> selecting.Located:
    """Return where a task is now, by its whole id. Errors: NotFound, Unavailable."""
    with client.reaching():
        found, wrong = selecting.find(client.store, [task])
    for error in wrong.values():
        raise error
    return found[0]


def digest(verb: str, marks: Mapping[str, Mark]) -> str:
    """Return what tells this action on these tasks, as they are, from any other."""
    return _digest([verb, *([task, *_fields(mark)] for task, mark in sorted(marks.items()))])


def _fields(mark: Mark) -> list[Any]:
    return [mark.state, mark.attempt, mark.order, mark.decider]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Asking:
    """A question that stands, and the task that asks it. name: of the question of a task that runs, else ''.

    order: of the token that waits for an approval, else ''; does: all that the task says, whole;
    file: the SHA-256 of its file; digest: of the action and all of this.
    """

    task: str
    mark: Mark
    ask: str
    choices: tuple[str, ...]
    name: str
    order: str
    by: str
    at: str
    does: tuple[task_description.Part, ...]
    file: str
    digest: str


def read_question(client: SpoolClient, verb: str, task: str, wanted: str) -> Asking:
    """Return the question of a task as it stands now. wanted: its name, '' where the task asks one.

    Errors: NotFound; SpoolError where nothing is asked; Unavailable.
    """
    for _ in range(TRIES):
        located = find_one(client, task)
        if located.state is State.PENDING:
            raise NotFound(f"Task {task} is not admitted yet. Wait a moment, and try again.")
        with client.reaching():
            asked = questions.question_of(client.store, located, wanted)
            open_ones = questions.list_questions(client.store)
            try:
                data = client.store.fs.read(located.path)
            except FileNotFoundError:
                continue  # it has just moved on
        standing = [one for one in open_ones if key(one.task) == key(located.id) and _is_of(one, asked.about)]
        if not standing:
            raise NotFound(f"Task {task} asks nothing now.")
        mark, file = mark_of(located), hashlib.sha256(data).hexdigest()
        said = [[one.ask, one.choices, one.at, one.until, one.attempt, one.question, one.by] for one in standing]
        whole = [verb, located.id, *_fields(mark), asked.ask, asked.choices, asked.about, asked.order, said, file]
        return Asking(
            task=located.id,
            mark=mark,
            ask=asked.ask,
            choices=asked.choices,
            name=asked.about,
            order=asked.order,
            by=standing[0].by,
            at=standing[0].at,
            does=_does(data, located.path),
            file=file,
            digest=_digest(whole),
        )
    raise SpoolError(f"task {task} moves on all the time. Wait a moment, and try again.")


def _is_of(one: questions.Question, about: str) -> bool:
    return one.question == about if about else one.attempt is None


def _does(data: bytes, path: str) -> tuple[task_description.Part, ...]:
    try:
        return task_description.parts_of(codec.load_object(data, path), path)
    except BadFile:
        return ()
