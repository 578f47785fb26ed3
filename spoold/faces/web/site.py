"""The routes, and what all pages know.

Law: a page is a function of the site, its address and the path: it reads no header and no cookie, so one copy serves
all. What is shown of an error is the sentence of the error, escaped. The routes of actions are not there unless
actions are allowed.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from spoold.client.spool_client import SpoolClient
from spoold.client.view import View
from spoold.faces.web import address
from spoold.faces.web.copies import Copies, Copy, copy_of
from spoold.faces.web.headers import BARE_POLICY
from spoold.faces.web.later import Later
from spoold.faces.web.markup import environment
from spoold.protocol.errors import BadFile, NotFound, SpoolError, Unavailable

# A page that asks with this header gets what changes on a page, and not what is around it.
PART = "x-spool-part"
# How long (s) a copy is good for: what the view tells alone, and what files of the share tell.
FRESH_S, FILES_S = 30.0, 2.0
# The same for an error, and for a page of which a part comes later.
SOON_S = 0.5
NAV = (
    ("/", "Overview", "o"),
    ("/tasks", "Tasks", "t"),
    ("/batches", "Batches", "b"),
    ("/nodes", "Nodes", "n"),
    ("/gates", "Limits", "l"),
    ("/asks", "Questions", "q"),
    ("/alerts", "Alerts", "a"),
    ("/events", "Events", "e"),
)


@dataclass
class Site:
    """One spool, as a server shows it. name: of the spool; actions: whether they are allowed.

    edition: of the files that pages load; told: turns what a redirect says was done into a sentence.
    """

    client: SpoolClient
    view: View
    name: str
    actions: bool = False
    edition: str = ""
    told: Callable[[str], str] = str
    later: Later = field(default_factory=Later)
    copies: Copies = field(default_factory=lambda: Copies(time.monotonic))
    wall: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Shown:
    """A page that is to be made. template: in templates/, without its ending; again: a part of it comes later."""

    template: str
    title: str
    values: dict[str, Any]
    nav: str = ""
    status: int = 200
    again: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """A file that is to be sent as it is: a picture, a log. policy: its own, '' for that of a bare file."""

    body: bytes
    kind: str
    policy: str = ""
    name: str = ""


Page = Callable[..., Shown]


def routes_of(site: Site, pages: Sequence[tuple[str, Page]], *, reads: bool = False) -> list[BaseRoute]:
    """Return the routes of pages: each is asked with the site, the address and the parts of the path. reads: whether
    they read files of the share.
    """
    return [Route(path, _endpoint(site, page, reads=reads), methods=["GET"]) for path, page in pages]


def _endpoint(site: Site, page: Page, *, reads: bool) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        part = request.headers.get(PART) == "1"
        version = site.view.version

        def make(now: float) -> Copy:
            return _made(site, page, request, part=part, version=version, now=now, fresh_s=fresh_s)

        of = (request.url.path, request.url.query, part)
        fresh_s = FILES_S if reads else FRESH_S
        return respond(request, site.copies.get(of, version, fresh_s, make))

    return answer


def _made(site: Site, page: Page, request: Request, *, part: bool, version: int, now: float, fresh_s: float) -> Copy:
    try:
        shown = page(site, address.read(request.url.query), **request.path_params)
    except SpoolError as error:
        shown = failed(error)
    if shown.again or shown.status != 200:
        now -= fresh_s - SOON_S
    return copy_of(render(site, shown, part=part, version=version, here=request.url.path), version, now, shown.status)


def failed(error: SpoolError) -> Shown:
    """Return the page of an error."""
    status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, BadFile) else 409
    status = 503 if isinstance(error, Unavailable) else status
    titles = {404: "Not found", 400: "Bad request", 503: "The spool cannot be reached", 409: "Refused"}
    return Shown("error", titles[status], {"text": str(error)}, status=status)


def render(site: Site, shown: Shown, *, part: bool, version: int, here: str) -> str:
    """Return a page, or the part of it that changes."""
    view = site.view
    picture = view.picture
    common = {
        "title": shown.title,
        "site": site,
        "picture": picture,
        "problem": view.problem,
        "complete": view.complete,
        "as_of": view.as_of,
        "alerts_open": len(picture.alerts) if picture is not None else 0,
        "actions": site.actions,
        "version": version,
        "nav": NAV,
        "here": shown.nav or here,
        "template": f"{shown.template}.html",
        "static": f"/static/{site.edition}",
        "told": site.told,
        "again": shown.again,
    }
    return environment().get_template("part.html" if part else "page.html").render({**common, **shown.values})


def respond(request: Request, copy: Copy) -> Response:
    """Send a copy, compressed where the browser can; 304 where it has it already."""
    headers = {"ETag": copy.tag, "Vary": f"Accept-Encoding, {PART}", "X-Spool-Version": str(copy.version)}
    if copy.status == 200 and request.headers.get("if-none-match") == copy.tag:
        return Response(status_code=304, headers=headers)
    body = copy.body
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"], body = "gzip", copy.packed
    return Response(body, copy.status, {**headers, "Content-Type": copy.kind})


def raw(raw_file: Raw) -> Response:
    """Send a file as it is: it can run nothing and load nothing."""
    headers = {"Content-Type": raw_file.kind, "Content-Security-Policy": raw_file.policy or BARE_POLICY}
    if raw_file.name:
        headers["Content-Disposition"] = f'attachment; filename="{raw_file.name}"'
    return Response(raw_file.body, 200, headers)


def application(routes: Sequence[BaseRoute], site: Site, lives: Callable[[], Any] | None = None) -> Starlette:
    """Return the application. lives: a context that is open while it serves."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if lives is None:
            yield
            return
        async with lives():
            yield

    def unknown(request: Request, _: Exception) -> Response:
        shown = Shown("error", "Not found", {"text": "There is no such page."}, status=404)
        text = render(site, shown, part=False, version=site.view.version, here="")
        return respond(request, copy_of(text, site.view.version, 0.0, 404))

    def broken(_: Request, __: Exception) -> Response:
        return Response("an error of ours: the terminal of `spool web` says more.\n", 500, media_type="text/plain")

    def refused(request: Request, error: Exception) -> Response:
        shown = failed(error if isinstance(error, SpoolError) else SpoolError("refused."))
        text = render(site, shown, part=False, version=site.view.version, here="")
        return respond(request, copy_of(text, site.view.version, 0.0, shown.status))

    handlers: dict[Any, Any] = {404: unknown, SpoolError: refused, 500: broken}
    return Starlette(routes=list(routes), lifespan=lifespan, exception_handlers=handlers)
