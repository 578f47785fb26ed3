"""The token that works once, and the cookies that it was exchanged for.

A cookie does not know the port of its server: every server of the same host name gets it, too, and may set it. So the
server has a host name that nobody else knows; where an address was given, only the cookie's name tells servers apart.
Its value means something to this process alone.

Law: a token lets in once. Secrets are compared in constant time, and live only in the memory of this process.

Touches: threads.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Iterable

# So many browsers at once; one more shuts out the one that came first.
SESSIONS_MOST = 32
# Tokens that nobody has used yet: the last ones that were printed.
TOKENS_MOST = 4


class Entrance:
    """The tokens and cookies of one server. place: its port, or the path of its socket."""

    def __init__(self, place: str) -> None:
        self.cookie = f"spool_{place if place.isdecimal() else hashlib.sha256(place.encode()).hexdigest()[:12]}"
        self._lock = threading.Lock()
        self._tokens: list[str] = []
        self._sessions: list[str] = []

    def token(self) -> str:
        """Return a new token."""
        made = secrets.token_urlsafe(32)
        with self._lock:
            self._tokens = [*self._tokens[1 - TOKENS_MOST :], made]
        return made

    def exchange(self, token: str) -> str | None:
        """Return the value of a new cookie for a token that nobody has used; else None."""
        with self._lock:
            fitting = [one for one in self._tokens if _same(one, token)]
            if not fitting:
                return None
            self._tokens.remove(fitting[0])
            made = secrets.token_urlsafe(32)
            self._sessions = [*self._sessions[1 - SESSIONS_MOST :], made]
            return made

    def knows(self, cookies: Iterable[bytes]) -> bool:
        """Return whether the Cookie headers of a request have one of our cookies; never if they have two of its name,
        since then another path or another server has set one.
        """
        given = [
            value.strip()
            for header in cookies
            for name, _, value in (part.partition("=") for part in header.decode("latin-1").split(";"))
            if name.strip() == self.cookie
        ]
        with self._lock:
            return len(given) == 1 and any(_same(one, given[0]) for one in self._sessions)

    def header(self, value: str) -> str:
        """Return the Set-Cookie header for a browser that was let in. It ends with the browser's session."""
        return f"{self.cookie}={value}; HttpOnly; SameSite=Strict; Path=/"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
