"""People whose programs write one drop after the other under one name, from an NFS client that remembers its file.

A client keeps the file of a name that it looked up for up to a minute. Within it, a program that opens the name
again empties and writes that very file, wherever it was moved meanwhile. Once the file is gone, or later, the name is
looked up, and the file is a new one unless the last still stands there.

What a program closed without an error is run once, or stands in rejected/ beside a reason about it: unless it was
overwritten before it was a task, by the program itself; or written after the leader had looked at the file for the
last time and before it removed it, which nobody can prevent, and which is counted.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from hashlib import blake2b

from spoold.protocol.names import key
from tests.sim.conduct import Broken
from tests.sim.laws import Asked, Laws
from tests.sim.openfile import OpenFile
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather

# How many of them there are in a seed, at most, which worlds.py sets; each begins within so long (s).
REUSERS, BEGIN_S = 0, 10.0
DROPS, LINES, PIECES = 6, 3, 3
REST_S, PAUSE_S, LOOK_S, POLL_S = 20.0, 1.5, 1.0, 0.02
# For how long (s) a client remembers the file of a name.
REMEMBERS_S = 60.0
NO_TASKS = (b'{"type": "wide", "command": ["work"', b'{"type": "wide", "command": 7}', b"[]")


@dataclass(slots=True)
class Dropped:
    """What was closed without an error. words: one for each of its tasks, in no other; none where it is no task."""

    data: bytes
    words: tuple[str, ...]
    file: OpenFile


class Reuser:
    """One program: what it drops, and when. done: all of it is where it belongs."""

    def __init__(self, scheduler: Scheduler, server: Server, weather: Weather, laws: Laws, number: int) -> None:
        self.name = f"reuser{number}"
        self.done = False
        self._scheduler = scheduler
        self._server = server
        self._weather = weather
        self._laws = laws
        self._batch = self._draw("batch") < 0.25
        self._path = f"pending/{self.name}.{'jsonl' if self._batch else 'json'}"
        self._known: tuple[OpenFile, float] | None = None
        self._open: list[Dropped] = []
        self._words: list[str] = []

    def live(self) -> None:
        """Drop what is to be dropped, then wait until all of it is where it belongs."""
        for number in range(2 + int((DROPS - 1) * self._draw("drops"))):
            if number:
                self._rest(number)
            self._drop(number)
        while self._unsettled():
            self._scheduler.sleep(LOOK_S)
        self.done = True

    def check(self) -> None:
        """What must hold in the end. Errors: Broken."""
        lost = self._unsettled()
        if lost:
            raise Broken(f"no drop is lost: {lost[0].data!r} of {self.name} is nowhere, or unsettled")
        for word in self._words:
            if len(at := self._tasks(word)) > 1:
                raise Broken(f"one drop, one task: {word} is {sorted(at)}")

    def _draw(self, *what: object) -> float:
        return self._weather.draw(self.name, *what)

    def _rest(self, number: int) -> None:
        """For a while; or, as many scripts do, until the last drop was taken."""
        rest_s = REST_S * self._draw("rest", number) ** 3
        if self._draw("waits", number) < 0.5:
            self._scheduler.sleep(rest_s)
            return
        until = self._scheduler.now + REST_S
        while self._server.exists(self._path) and self._scheduler.now < until:
            self._scheduler.sleep(POLL_S * (0.05 + self._draw("poll", number)))

    def _drop(self, number: int) -> None:
        data, words = self._content(number)
        self._words += words
        with contextlib.suppress(OSError):
            file = self._opened(number)
            for piece in self._pieces(number, data):
                file.write(piece)
                if self._draw("sent early", number, len(piece)) < 0.3:
                    file.send()
                self._scheduler.sleep(PAUSE_S * self._draw("pause", number, len(piece)) ** 3)
            file.close()
            self._open.append(Dropped(data, words, file))
            if not self._batch and words and self._draw("named", number) < 0.7:
                self._laws.asked[key(words[0])] = Asked(words[0], "wide")

    def _content(self, number: int) -> tuple[bytes, tuple[str, ...]]:
        if self._draw("no task", number) < 0.2:
            data = NO_TASKS[int(len(NO_TASKS) * self._draw("which", number))]
            return data + b" " * (number + 1) + b"\n", ()
        count = 1 + int(LINES * self._draw("lines", number)) if self._batch else 1
        words = tuple(f"{self.name}-{number}-{line}" for line in range(count))
        named = self._draw("named", number) < 0.7
        tasks = [
            {"type": "wide", "command": ["work"], "max_retries": 2, "meta": {"word": word}}
            | ({"id": word} if named else {})
            for word in words
        ]
        return "".join(f"{json.dumps(task)}\n" for task in tasks).encode(), words

    def _pieces(self, number: int, data: bytes) -> list[bytes]:
        count = 1 + int(PIECES * self._draw("pieces", number))
        cuts = sorted(int(len(data) * self._draw("cut", number, n)) for n in range(count - 1))
        return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def _opened(self, number: int) -> OpenFile:
        """The file of the name, as the client has it: emptied, or new. Errors: OSError."""
        at, since = self._path, self._scheduler.now
        if self._known is not None and since - self._known[1] < REMEMBERS_S:
            moved = self._known[0].path
            if moved == at:
                since = self._known[1]
            elif moved is not None and self._weather.admit(f"handle {self.name} {number}"):
                at, since = moved, self._known[1]
                self._weather.tell(f"{self.name} opens {at} by its handle")
        self._overwrite(at)
        file = self._server.open(at, late=True)
        self._known = (file, since)
        return file

    def _overwrite(self, path: str) -> None:
        """Of what it said so far nothing is promised any more that is no task yet."""
        for drop in [drop for drop in self._open if drop.file.path == path]:
            drop.words = tuple(word for word in drop.words if self._tasks(word))
            if not drop.words:
                self._forget(drop)

    def _forget(self, drop: Dropped) -> None:
        self._open.remove(drop)
        for word in json_words(drop.data):
            if not self._tasks(word):
                self._laws.asked.pop(key(word), None)

    def _settle(self, drop: Dropped) -> bool:
        """Whether it is where it belongs."""
        if drop.words:
            ended = ("completed/", "failed/")
            return all(any(path.startswith(ended) for path in self._tasks(word)) for word in drop.words)
        return self._rejected(drop.data)

    def _unsettled(self) -> list[Dropped]:
        unsettled = [drop for drop in self._open if not self._settle(drop)]
        for drop in [drop for drop in unsettled if drop.file.unread_end]:
            if any(self._tasks(word) for word in drop.words):
                continue
            self._weather.struck.append(f"unread {self.name}")
            self._weather.tell(f"{self.name} wrote {drop.data!r} after the last look at its file")
            self._forget(drop)
            unsettled.remove(drop)
        return unsettled

    def _tasks(self, word: str) -> list[str]:
        """Where the tasks are that say this word."""
        said = f'"word": "{word}"'.encode()
        return [path for path in self._laws.tokens.values() if said in _plain(self._server.fs.read(path))]

    def _rejected(self, data: bytes) -> bool:
        fs = self._server.fs
        names = set(fs.list("rejected"))
        digest = blake2b(data, digest_size=16).digest()[:8].hex()
        for name in names:
            if f"{name}.reason.json" in names and fs.read(f"rejected/{name}") == data:
                reason = json.loads(fs.read(f"rejected/{name}.reason.json"))
                if reason["size"] == len(data) and reason.get("digest", digest) == digest:
                    return True
        return False


def json_words(data: bytes) -> list[str]:
    """The words in a drop of ours."""
    words = []
    for line in data.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            words.append(json.loads(line)["meta"]["word"])
    return words


def _plain(data: bytes) -> bytes:
    return data.replace(b'":"', b'": "')
