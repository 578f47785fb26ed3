"""Who may speak to the server: login by a token that works once, cookies, the guard, and the headers of each answer.

Method, path, host, origin and cookie are judged before anything else reads a request. A cookie does not know the port
of its server: every server of the same host name gets it, too, and may set it. So the server has a host name that
nobody else knows; where an address was given, only the cookie's name tells servers apart. Its value means something
to this process alone.

Law: what is not allowed is refused; there is no list of what is forbidden. A refusal is plain text and repeats
nothing that the request said. Without a cookie of this server nothing is answered but a refusal, or the exchange of
a token. A token lets in once. Secrets are compared in constant time, and live only in the memory of this process. No
answer is without the headers, also an error and a file: nothing runs in a page but our own files, and no other site
can frame it, read it or learn its address.

Touches: threads.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")
METHODS = ("GET", "HEAD", "POST")
# Where a token is exchanged for a cookie.
ENTER = "/enter"
BODY_MOST = 64 << 10
URL_MOST = 8 << 10
_ONCE = (b"host", b"origin", b"sec-fetch-site", b"content-length", b"content-type")
# What could mean another path to another reader: dots, empty parts, encoded or turned slashes, what is no text.
_TRICKY = re.compile(
    rb"//|\\|%2f|%5c|%00|%0[0-9a-f]|%1[0-9a-f]|%7f|[\x00-\x20\x7f-\xff#]|(?:/|^)(?:\.|%2e)+(?:/|$)", re.I
)
_TOKEN = re.compile(rb"token=([A-Za-z0-9_-]{20,100})")
_LENGTH = re.compile(rb"[0-9]{1,9}")
_FORM = b"application/x-www-form-urlencoded"

Refusal = tuple[int, str]
Headers = Mapping[bytes, bytes]


def anchored(hosts: Iterable[str]) -> Callable[[bytes], bool]:
    """Return whether a Host is exactly one of these."""
    exact = frozenset(host.lower().encode() for host in hosts)
    return lambda host: host.lower() in exact


def any_port(hosts: Iterable[str] = HOSTS) -> Callable[[bytes], bool]:
    """Return whether a Host is exactly one of these, with any port: a forwarded socket may get any."""
    pattern = re.compile("|".join(rf"{re.escape(host)}(:[0-9]{{1,5}})?" for host in hosts).encode())
    return lambda host: pattern.fullmatch(host.lower()) is not None


class Guard:
    """Lets through only what a page of this server may ask."""

    def __init__(self, app: ASGIApp, entrance: Entrance, is_host: Callable[[bytes], bool]) -> None:
        self._app, self._entrance, self._is_host = app, entrance, is_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it. Every answer gets the headers that all have."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # no page of ours opens one
            return

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = with_always(list(message.get("headers", [])))
            await send(message)

        given = dict(scope["headers"])
        refused = self._refuses(scope, given)
        if refused is None and scope["path"] == ENTER:
            await self._enter(scope, given, careful)
        elif refused is None and not self._entrance.knows(_all(scope, b"cookie")):
            await refuse(careful, 401, _NO_COOKIE)
        elif refused is None:
            await self._app(scope, receive, careful)
        else:
            await refuse(careful, *refused)

    def _refuses(self, scope: Scope, given: Headers) -> Refusal | None:
        """Return status and words for a request that is refused from anybody; None where it is let through."""
        if scope["method"] not in METHODS:
            return 405, "this server answers GET, HEAD and POST."
        if any(len(_all(scope, name)) > 1 for name in _ONCE):
            return 400, "a header is there twice."
        if not self._is_host(given.get(b"host", b"")):
            return 421, "the Host is not this server. Fix: use the URL that `spool web` printed."
        path = scope.get("raw_path") or scope["path"].encode()
        if len(path) + len(scope["query_string"]) > URL_MOST:
            return 414, "the URL is too long."
        if not path.startswith(b"/") or _TRICKY.search(path):
            return 400, "the path is none of this server."
        if scope["method"] == "POST":
            return _refuses_origin(given) or _refuses_body(given)
        if given.get(b"sec-fetch-site", b"none") in (b"none", b"same-origin"):
            return None
        # A person may follow a link to here: nothing but a page comes of that, which the other site cannot read.
        follows = given.get(b"sec-fetch-mode") == b"navigate" and given.get(b"sec-fetch-dest") == b"document"
        return None if follows else (403, "another site asks. Fix: open the URL that `spool web` printed.")

    async def _enter(self, scope: Scope, given: Headers, send: Send) -> None:
        """Exchange a token for a cookie. A browser that only prepares to open the page does not use the token up."""
        if scope["method"] != "GET" or given.get(b"sec-purpose") or given.get(b"purpose"):
            await refuse(send, 405, "only a GET uses a token.", allow=("GET",))
            return
        token = _TOKEN.fullmatch(scope["query_string"])
        value = self._entrance.exchange(token[1].decode()) if token is not None else None
        if value is None and not self._entrance.knows(_all(scope, b"cookie")):
            await refuse(send, 401, _USED)
            return
        headers = [(b"location", b"/"), (b"content-length", b"0")]
        if value is not None:
            headers.append((b"set-cookie", self._entrance.header(value).encode()))
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


_NO_COOKIE = (
    "this browser has not been let in. Fix: open the URL that `spool web` printed; Enter in its terminal prints a "
    "new one. If you have just opened it from a link, reload this page."
)
_USED = "this token was used already, or is none. Fix: press Enter in the terminal of `spool web` for a new URL."


def _all(scope: Scope, name: bytes) -> list[bytes]:
    return [value for one, value in scope["headers"] if one == name]


def _refuses_origin(given: Headers) -> Refusal | None:
    """Refuse what a page of another site sends: a browser says where a request comes from."""
    site, origin = given.get(b"sec-fetch-site"), given.get(b"origin")
    # Behind `ssh -L` the scheme is http all the same: this server has no other.
    same = origin is not None and origin.lower() == b"http://" + given[b"host"].lower()
    if site is not None:
        allowed = site == b"same-origin" and (origin is None or same)
    else:
        allowed = same
    return None if allowed else (403, "this request does not come from a page of this server.")


def _refuses_body(given: Headers) -> Refusal | None:
    length = given.get(b"content-length")
    if length is None or b"transfer-encoding" in given or not _LENGTH.fullmatch(length):
        return 411, "the length of the form must be said."
    if int(length) > BODY_MOST:
        return 413, "the form is too large."
    if given.get(b"content-type", b"").partition(b";")[0].strip().lower() != _FORM:
        return 415, "only a form can be sent here."
    return None


async def refuse(send: Send, status: int, words: str, allow: Iterable[str] = METHODS) -> None:
    """Answer with a refusal. allow: the methods that a 405 names."""
    body = f"{words}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"content-security-policy", BARE_POLICY.encode()),
        (b"connection", b"close"),
    ]
    if status == 405:
        headers.append((b"allow", ", ".join(allow).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# The token that works once, and the cookies that it was exchanged for.


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


# What every answer says to a browser.


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
# Of an answer that is no page: a picture, a log, a refusal.
BARE_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"

ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def with_always(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with those that every answer has; its own go before them."""
    there = {name.lower() for name, _ in headers}
    more = ((name.lower().encode(), value.encode()) for name, value in ALWAYS.items())
    return [*headers, *(pair for pair in more if pair[0] not in there)]
