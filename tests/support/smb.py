"""What a Linux client of an SMB share asks the server for each call, as the laboratory sees it on the cable.

The client believes for a second (`actimeo`) what it has learnt of a name, or of all names by a listing, and before
each call asks about every directory on the way that it knows nothing as fresh of. A node that looks about once a
second has that to pay for each look: one request for the spool, one for the directory, and three for the listing.
Played over the calls of a minute of real nodes at rest, this came within 3 % of what they had sent.

Law: requests are counted here and answered elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

FRESH_S = 1.0

# Besides what is asked about names. A listing is asked for twice, the second time to hear that this was all; a rename
# asks first whether the new name is there.
_REQUESTS = {
    "list": ("open and list", "list", "close"),
    "read": ("open", "read", "close"),
    "write": ("open", "write", "close"),
    "append": ("open", "write", "close"),
    "persist": ("open", "flush", "close"),
    "rename": ("look", "rename"),
    "unlink": ("unlink",),
    "rmdir": ("rmdir",),
    "mkdir": ("look", "mkdir", "look"),
    "usage": ("usage",),
}
# What needs no answer about the last name: it is made, or the answer is that of the call itself.
_UNASKED = ("write", "append", "mkdir", "persist", "usage")
_UNSENT = ("sync", "flush", "has_writer")


class SmbClient:
    """One mount. asked: its requests, by what they are for. clock: in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.asked: Counter[str] = Counter()
        self._clock = clock
        self._known: dict[str, float] = {}
        self._listed: dict[str, float] = {}

    def hear(self, verb: str, *paths: str, done: bool) -> None:
        """A call was made on these paths. done: it raised nothing."""
        if verb in _UNSENT:
            return
        for path in paths or ("",):
            parts = path.split("/")
            for depth in range(len(parts)):
                self._look("/".join(parts[:depth]))
        if verb not in _UNASKED:
            self._look(paths[0])
        if done:
            self.asked.update(_REQUESTS.get(verb, ()))
            self._learn(verb, *paths)

    def _look(self, path: str) -> None:
        """Ask about a name, unless that was done lately."""
        now = self._clock()
        listed = self._listed.get(path.rpartition("/")[0], -FRESH_S) if path else -FRESH_S
        if now - max(self._known.get(path, -FRESH_S), listed) >= FRESH_S:
            self._known[path] = now
            self.asked["look"] += 1

    def _learn(self, verb: str, path: str = "", new: str = "") -> None:
        now = self._clock()
        if verb == "list":
            self._listed[path] = now
        elif verb in ("write", "append"):
            self._known[path] = now
        elif verb == "rename":
            self._known[new] = now
        if verb in ("rename", "unlink", "rmdir"):
            self._known.pop(path, None)
