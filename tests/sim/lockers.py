"""Tasks that lock something, and a crowd: readers without end, and one writer among them that must come to its turn.

The world `locks` has them; in every other world nothing here is drawn. The law: no two tasks that conflict are
claimed at once, whatever happens to leaders, workers and the share; but for a task that came into ready/ behind the
leader's back.
"""

from __future__ import annotations

import re

from spoold.protocol.names import key
from tests.sim.conduct import Broken
from tests.sim.laws import Asked, Laws
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather
from tests.sim.workload import Client

# The share of tasks that lock something, and how many crowds there are; worlds.py sets both.
LOCKED, CROWDS = 0.0, 0
PATTERNS = ("src/**", "src/api/**", "src/*/x", "repo:main", "docs/**", "docs/[ab]")
# The same as regular expressions, and paths of which each pair of them that overlaps has one in common.
_AS_TEXT = {
    "src/**": re.compile("src(/.*)?"),
    "src/api/**": re.compile("src/api(/.*)?"),
    "src/*/x": re.compile("src/[^/]*/x"),
    "repo:main": re.compile("repo:main"),
    "docs/**": re.compile("docs(/.*)?"),
    "docs/[ab]": re.compile("docs/[ab]"),
    "busy/x": re.compile("busy/x"),
    "busy/**": re.compile("busy(/.*)?"),
}
PATHS = ("src/api/x", "src/lib/x", "repo:main", "docs/a", "busy/x")
WRITER, EVERY_S = "the-writer", 0.4
# So many readers at most have not ended, which is more than all slots.
OPEN = 8


def locks_of(weather: Weather, name: str) -> dict[str, list[str]] | None:
    """What a task of this name locks; None for nothing."""
    if not LOCKED or weather.draw("locked", name) >= LOCKED:
        return None
    drawn = [int(weather.draw("pattern", name, n) * len(PATTERNS)) for n in range(3)]
    write, read = PATTERNS[drawn[0]], PATTERNS[drawn[1]]
    kind = weather.draw("lock kind", name)
    return {"write": [write] if kind < 0.6 else [], "read": [read, PATTERNS[drawn[2]]] if kind > 0.3 else []}


class Crowd:
    """A machine from which readers are submitted, one after the other, until the writer among them has ended."""

    def __init__(self, scheduler: Scheduler, server: Server, weather: Weather, laws: Laws) -> None:
        self.done = False
        self._laws = laws
        self._scheduler = scheduler
        self._client = Client(scheduler, server, weather, laws, "crowd")

    def live(self) -> None:
        """Submit readers, the writer after the third, and more readers."""
        number = 0
        while not self._ended(WRITER):
            if sum(not self._ended(f"reader{n}") for n in range(number)) < OPEN:
                self._submit(f"reader{number}", {"read": ["busy/x"]})
                number += 1
                if number == 3:
                    self._submit(WRITER, {"write": ["busy/**"]})
            self._scheduler.sleep(EVERY_S)
        self.done = True

    def _submit(self, name: str, locks: dict[str, list[str]]) -> None:
        self._client.submit({"id": name, "type": "crowd", "command": ["work"], "dependencies": [], "locks": locks})

    def _ended(self, name: str) -> bool:
        return self._laws.tokens.get(key(name), "").startswith(("completed/", "failed/"))


def check(laws: Laws, claimed: Asked) -> None:
    """After a claim: nothing that conflicts with it is claimed. Errors: Broken."""
    strangers = laws.conduct.strangers
    if not claimed.locks or key(claimed.id) in strangers or laws.conduct.amazed:
        return
    for task_key, path in laws.tokens.items():
        other = laws.asked.get(task_key)
        if other is None or not other.locks or task_key == key(claimed.id) or not path.startswith("claimed/"):
            continue
        if task_key not in strangers and (both := _conflict(claimed.locks, other.locks)):
            raise Broken(f"locks: {claimed.id} is claimed while {path} is, and both lock {both}")


def _conflict(one: dict[str, list[str]], other: dict[str, list[str]]) -> str | None:
    """A path that both lock, and one of them to write; found by trying, and not by the rule."""
    for path in PATHS:
        mine, theirs = ({kind for kind in locks if _covers(locks[kind], path)} for locks in (one, other))
        if mine and theirs and "write" in mine | theirs:
            return path
    return None


def _covers(patterns: list[str], path: str) -> bool:
    return any(_AS_TEXT[pattern].fullmatch(path) for pattern in patterns)
