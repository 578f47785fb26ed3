"""People whose programs write slowly into the drop box, and never rename: in pieces, with pauses, one open file.

A program goes on in the file that it has open, wherever that is moved; of a file that was removed nobody hears again.
On NFS nothing shows before the file is closed, or some of it does early. A program whose file was lost with power, or
that finds the server full, has failed, and is started again. One that has ended well is not, unless the power took
what nobody had made durable before all of it was admitted.
"""

from __future__ import annotations

import json
from typing import Any

from spoold.protocol.names import key
from tests.sim.laws import Asked, Laws
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather

# How many of them there are in a seed, at most, which worlds.py sets; each begins within so long (s).
SCRIBES, BEGIN_S = 0, 12.0
LINES, PIECES = 4, 5
PAUSE_S, LOOK_S = 7.0, 1.0


class Scribe:
    """One program: what it writes, and how."""

    def __init__(self, scheduler: Scheduler, server: Server, weather: Weather, laws: Laws, number: int) -> None:
        self.name = f"scribe{number}"
        self._scheduler = scheduler
        self._server = server
        self._weather = weather
        self._starts = 0
        self._lines = LINES if self._draw("lines") < 0.7 else 1
        tasks: list[dict[str, Any]] = [
            {"id": f"{self.name}-{line}", "type": "wide", "command": ["work"], "max_retries": 2}
            for line in range(self._lines)
        ]
        self._text = "\n".join(map(json.dumps, tasks)).encode() + (b"\n" if self._draw("ended") < 0.7 else b"")
        self._laws = laws
        self._keys = [key(task["id"]) for task in tasks]
        laws.asked |= {key(task["id"]): Asked(task["id"], "wide") for task in tasks}

    def live(self) -> None:
        """Write; and again, if that failed or the power took it."""
        while not self._write() or self._forgotten():
            self._scheduler.sleep(LOOK_S)

    def _draw(self, *what: object) -> float:
        return self._weather.draw(self.name, *what)

    def _write(self) -> bool:
        """Whether the program ended without an error."""
        self._starts += 1
        self._cuts = self._server.cuts
        extension = "jsonl" if self._lines > 1 or self._draw("batch") < 0.3 else "json"
        if extension == "jsonl" and self._draw("promised") < 0.3:
            extension = "whole.jsonl"  # as `mv` from another file system writes it
        late = self._weather.flavour == "nfs"
        try:
            file = self._server.open(f"pending/{self.name}-{self._starts}.{extension}", late)
            for piece in self._pieces():
                file.write(piece)
                if self._draw("sent early", self._starts) < 0.3:
                    file.send()
                self._scheduler.sleep(PAUSE_S * self._draw("pause", self._starts, len(piece)) ** 2)
            file.close()
        except OSError:
            return False
        return True

    def _pieces(self) -> list[bytes]:
        """Cut anywhere, or at the ends of lines."""
        if self._draw("cut at lines", self._starts) < 0.5:
            return self._text.splitlines(keepends=True)
        count = 1 + int(PIECES * self._draw("pieces", self._starts))
        cuts = sorted(int(len(self._text) * self._draw("cut", self._starts, n)) for n in range(count - 1))
        return [self._text[a:b] for a, b in zip([0, *cuts], [*cuts, len(self._text)], strict=True)]

    def _forgotten(self) -> bool:
        """Wait until everything is a task; whether the power was lost before that, where it takes what was copied."""
        while not all(task in self._laws.tokens for task in self._keys):
            if self._server.forgets and self._server.cuts != self._cuts:
                return True
            self._scheduler.sleep(LOOK_S)
        return False
