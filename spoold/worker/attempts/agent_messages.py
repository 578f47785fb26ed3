"""What people tell the agent of a running task: brought into the folder of its attempt, and noted once it is given.

Law: the requests stand until the task has ended, and each attempt gets all of them: what an attempt that died was
given is given again to the next one. The file only grows, line by line, so a program that reads it while it is
written finds whole messages. What cannot be read or written now is tried again, and holds nothing up.

May touch: requests in control/, and the folder of an attempt.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.protocol import agent_messages, codec
from spoold.protocol.agent_messages import Message
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.protocol.request import Request, Verb
from spoold.store import control
from spoold.store.journal import Journal
from spoold.store.store import Store
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt

FILE = "told.jsonl"
# What could not be read or written is tried again after so long (s).
AGAIN_S = 5.0


class Telling:
    """Brings the messages of one worker's attempts."""

    def __init__(self, store: Store, scratch: Scratch, journal: Journal) -> None:
        self._store, self._scratch, self._journal = store, scratch, journal
        self._standing: dict[str, list[Request]] = {}
        self._again: dict[Request, float] = {}

    def hear(self, requests: Iterable[Request]) -> None:
        """Take in the requests that stand now."""
        self._standing = {}
        for request in requests:
            if request.verb is Verb.TELL:
                self._standing.setdefault(key(request.target), []).append(request)
        listed = {request for each in self._standing.values() for request in each}
        self._again = {request: moment for request, moment in self._again.items() if request in listed}

    def look(self, attempt: Attempt) -> None:
        """Bring an attempt what is new, and note what its agent was given since."""
        self.bring(attempt)
        self.note(attempt)

    def bring(self, attempt: Attempt) -> None:
        """Bring an attempt that has its folder what it does not have yet. Never raises OSError."""
        standing = self._standing.get(key(attempt.name.id))
        if not standing or attempt.over or attempt.task.run != "handler":
            return
        new: dict[str, Message] = {}
        for request in sorted(standing, key=lambda one: one.unique):
            if request.unique not in attempt.words and self._due(request):
                self._read(request, new)
        words = dict(list({**attempt.words, **new}.items())[: agent_messages.STANDING_MAX])
        if len(words) == len(attempt.words):
            return
        try:
            self._scratch.write(
                attempt.key, FILE, b"".join(codec.dump(one.plain()) + b"\n" for one in words.values())
            )
        except OSError:
            self._rest(standing)
        else:
            attempt.words = words

    def note(self, attempt: Attempt) -> None:
        """Note in the journal what its report of progress says that its agent has been given."""
        for name in agent_messages.names_in(attempt.reported):
            message = attempt.words.get(name)
            if message is not None and name not in attempt.given:
                attempt.given.add(name)
                said = {
                    "by": message.by,
                    "at": message.at,
                    "tell": message.text[: agent_messages.EXCERPT_MAX],
                    "name": name,
                }
                self._journal.note("TOLD", attempt.name.id, attempt.name.attempt, **said)

    def _read(self, request: Request, new: dict[str, Message]) -> None:
        try:
            found = control.load(self._store.fs, request)
        except (OSError, BadFile):
            self._rest([request])
            return
        if agent_messages.fault_in(found.tell) is None:  # else the leader removes it
            new[request.unique] = Message(request.unique, found.by[: agent_messages.BY_MAX], found.at, found.tell)
        else:
            self._rest([request])

    def _due(self, request: Request) -> bool:
        return self._store.clock.monotonic() >= self._again.get(request, 0.0)

    def _rest(self, requests: Iterable[Request]) -> None:
        until = self._store.clock.monotonic() + AGAIN_S
        self._again.update(dict.fromkeys(requests, until))
