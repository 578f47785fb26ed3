"""What only a file tells: one task, why it waits, its log, the scene of its batch.

Law: however many ask, a file is read once for all who ask within its time. What the view knows of the place of a task
saves a search through all directories; a task that has moved on is searched for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from spoold.client import inquiry, scenes, story
from spoold.client.info import TaskInfo, describe, described
from spoold.client.logs import list_logs
from spoold.client.questions import Question, list_questions
from spoold.client.view.answers import Answers
from spoold.client.view.card import ENDED, Card
from spoold.client.view.metered import ANSWERS_BURST, ANSWERS_PER_S, Allowance, through
from spoold.client.view.reasons import Asked, asked_now
from spoold.pictures.scene import Scene
from spoold.protocol import layout
from spoold.protocol.errors import NotFound
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key
from spoold.rules.answers.task_facts import Explanation
from spoold.rules.answers.task_history import Chapter
from spoold.store.locate import Located, locate, locate_many
from spoold.store.store import Store
from spoold.system.host import Host

# How long (s) an answer is good for.
FRESH_S, LOG_S, SCENE_S, EXPLAINED_S, ASKED_S = 2.0, 1.0, 5.0, 3.0, 5.0


@dataclass(frozen=True, slots=True)
class LogPart:
    """Some bytes of the log of one attempt: from `begin` to `end`, of `size`. ended: no more will come.

    worker: who ran it.
    """

    attempt: int
    worker: str
    begin: int
    end: int
    size: int
    data: bytes
    ended: bool


class Details:
    """Reads for a view. find: its card of a task; returned: who decided which earlier attempt."""

    def __init__(
        self,
        store: Store,
        host: Host,
        find: Callable[[str], Card | None],
        returned: Callable[[str], dict[int, str]],
    ) -> None:
        self._host, self._find, self._returned = host, find, returned
        self._store, self._mount = through(store)
        allowance = Allowance(self._mount, store.clock, ANSWERS_PER_S, ANSWERS_BURST)
        self._answers = Answers(store.clock.monotonic, allowance)

    @property
    def round_trips(self) -> int:
        """How many round trips all answers have cost so far."""
        return self._mount.spent

    def asked(self) -> Asked:
        """Return the requests that stand, for who counts reasons. Errors: OSError."""
        return self._answers.get(("asked",), ASKED_S, self._asked)

    def _asked(self) -> Asked:
        self._store.revisions.look()
        return asked_now(self._store)

    @property
    def store(self) -> Store:
        """The spool, with the settings that held when `asked` was answered last."""
        return self._store

    def questions(self) -> tuple[Question, ...]:
        """Return the questions that stand. Errors: OSError."""
        return self._answers.get(("questions",), ASKED_S, lambda: list_questions(self._store))

    def info(self, task_id: str) -> TaskInfo:
        """As `spool show`. Errors: NotFound, OSError."""
        return self._answers.get(("info", key(task_id)), FRESH_S, lambda: self._info(task_id))

    def _info(self, task_id: str) -> TaskInfo:
        card = self._find(task_id)
        located = card.located() if card is not None else None
        if located is None:
            return describe(self._store, task_id)
        found = described(self._store, located, self._records(located))
        if found.task or located.state is State.REJECTED:
            return found
        # A file that cannot be read has most likely moved on since it was listed.
        try:
            return describe(self._store, task_id)
        except NotFound:
            return found

    def _records(self, located: Located) -> list[tuple[EndedName, str]]:
        """The names of its records, as far as they are known; results/ may hold a million."""
        deciders = {n: by for n, by in self._returned(located.id).items() if n < located.attempt}
        if located.result is not None:
            deciders[located.attempt] = located.node
        names = [EndedName(located.id, attempt, by) for attempt, by in sorted(deciders.items())]
        if located.archived:
            return [(name, layout.join(layout.bucket(located.id), name.archived("result"))) for name in names]
        return [(name, layout.join(layout.RESULTS, name.encode())) for name in names]

    def explain(self, task_id: str) -> Explanation:
        """As `spool explain`. Errors: NotFound, OSError."""
        return self._answers.get(
            ("explain", key(task_id)),
            EXPLAINED_S,
            lambda: inquiry.explain(self._store, self._host, self._store.clock, task_id),
        )

    def history(self, task_id: str) -> list[Chapter]:
        """As `spool history`. Errors: NotFound, OSError."""
        found = self._answers.get(("history", key(task_id)), SCENE_S, lambda: story.history(self._store, task_id))
        return found.chapters

    def scene(self, batch: str | None, cards: Callable[[], list[Card]] | None) -> Scene:
        """As for `spool graph`. cards: gives those of the batch; None: all are read. Errors: NotFound, OSError."""

        def draw() -> Scene:
            among = None if cards is None else self._located(cards())
            return scenes.scene_of(self._store, batch, among=among)

        return self._answers.get(("scene", batch), SCENE_S, draw)

    def _located(self, cards: list[Card]) -> list[Located]:
        """Where the tasks of these cards are; those of which the view does not know it are searched for."""
        found = {card.id: card.located() for card in cards}
        lost = [task for task, located in found.items() if located is None]
        there = [located for located in found.values() if located is not None]
        return [*there, *(locate_many(self._store, lost).values() if lost else ())]

    def attempts(self, task_id: str) -> list[int]:
        """Return the attempts that have a log. Errors: OSError."""
        return self._answers.get(("logs", key(task_id)), FRESH_S, lambda: self._attempts(task_id))

    def _attempts(self, task_id: str) -> list[int]:
        return sorted({name.attempt for name, _ in list_logs(self._store, [task_id])})

    def log(self, task_id: str, attempt: int | None, offset: int, most: int) -> LogPart:
        """Return at most so many bytes of the log of an attempt, by default the last. offset: below 0 it counts from
        the end. Errors: NotFound, OSError.
        """
        asked = ("log", key(task_id), attempt, offset, most)
        return self._answers.get(asked, LOG_S, lambda: self._log(task_id, attempt, offset, most))

    def _log(self, task_id: str, attempt: int | None, offset: int, most: int) -> LogPart:
        card = self._find(task_id)
        for name, path in self._places(card, task_id, attempt):
            begin, data = self._read(path, offset, most)
            if data is None:
                continue
            ended = card is not None and (card.state != State.CLAIMED or name.attempt < card.attempt)
            end = begin + len(data)
            more = self._size(path) if len(data) == most else 0
            return LogPart(name.attempt, name.decider, begin, end, max(end, more), data, ended)
        ended = card is not None and card.state in ENDED
        return LogPart(attempt or 0, "", 0, 0, 0, b"", ended)

    def _places(self, card: Card | None, task_id: str, attempt: int | None) -> list[tuple[EndedName, str]]:
        """Where the log may be, the best first: where the view knows who ran which attempt, nothing is searched."""
        if card is None:
            locate(self._store, task_id)
        ran = {} if card is None else self._returned(card.id) | ({card.attempt: card.worker} if card.worker else {})
        known = card is not None and all(number in ran for number in range(1, card.attempt))
        if card is None or not (known or attempt in ran):
            logs = list_logs(self._store, [task_id])
            if attempt is not None and attempt not in {name.attempt for name, _ in logs}:
                raise NotFound(f"task {task_id} has no log of attempt {attempt}.")
            return [log for log in reversed(logs) if attempt in (None, log[0].attempt)]
        names = [EndedName(card.id, number, ran[number]) for number in sorted(ran, reverse=True)]
        directory = layout.bucket(card.id) if card.archived else layout.LOGS
        return [(name, layout.join(directory, name.log())) for name in names if attempt in (None, name.attempt)]

    def _read(self, path: str, offset: int, most: int) -> tuple[int, bytes | None]:
        """Read so many bytes; None where there is no such file. A client of NFS may hold an old size for a minute,
        and sees the new one when it opens the file: so only the way back from the end asks for it.
        """
        try:
            begin = max(0, self._store.fs.stat(path).size + offset) if offset < 0 else offset
            return begin, self._store.fs.read(path, most, offset=begin)
        except FileNotFoundError:
            return 0, None

    def _size(self, path: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._store.fs.stat(path).size
        return 0
