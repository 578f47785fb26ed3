"""The routes, and what all pages know.

Law: a page is a function of the site, its address and the path: it reads no header and no cookie, so one copy serves
all. What is shown of an error is the sentence of the error, escaped. The routes of actions are not there unless
actions are allowed.

Touches: the clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from spoold.client.spool_client import SpoolClient
from spoold.client.view import View
from spoold.faces.web import page_address
from spoold.faces.web.page_cache import Copies, Copy, Later, copy_of
from spoold.faces.web.security import BARE_POLICY
from spoold.pictures.log_colours import Span
from spoold.pictures.palette import GLYPHS
from spoold.pictures.wording import clip, visible
from spoold.protocol.amount import amount, figure, length, precise
from spoold.protocol.errors import BadFile, NotFound, SpoolError, Unavailable
from spoold.protocol.result import remark_of

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
        shown = page(site, page_address.read(request.url.query), **request.path_params)
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


# Jinja, and how figures, moments and states are written in a page.


_UNKNOWN = "?"
TEXT_MOST = 20_000


@cache
def environment() -> Environment:
    """Return Jinja with the templates of this package."""
    made = Environment(
        loader=PackageLoader("spoold.faces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_finalized,
    )
    made.filters |= {
        "ago": ago,
        "amount": amount,
        "bytes": size,
        "clip": clip,
        "figure": figure,
        "length": length,
        "length_of": len,
        "lines": lines,
        "log": log_lines,
        "moment": moment,
        "number": number,
        "precise": precise,
        "pretty": pretty,
        "remark": remark_of,
        "state": state,
        "usd": usd,
    }
    made.globals |= {"link": page_address.link, "task_link": page_address.task, "tasks_link": page_address.tasks}
    made.globals |= {"batch_link": page_address.batch, "share_of": share_of}
    return made


def _finalized(value: Any) -> Any:
    """What an expression prints: text on one line, with what is hidden in it as escapes; nothing for None."""
    if value is None:
        return ""
    return visible(value) if type(value) is str else value


def state(name: str) -> Markup:
    """Return a state as its glyph on its colour, and its word."""
    known = name if name in GLYPHS else "unknown"
    glyph = GLYPHS.get(known, _UNKNOWN)
    word = escape(visible(name))
    return Markup(f'<span class="state s-{known}"><i aria-hidden="true">{glyph}</i>{word}</span>')


def moment(value: float | str | None) -> Markup:
    """Return a moment in UTC; `-` for none. value: seconds since 1970, or RFC 3339."""
    return _time(value, "at")


def ago(value: float | str | None) -> Markup:
    """Return how long ago a moment was, which the page counts on; `-` for none."""
    return _time(value, "ago")


def _time(value: float | str | None, how: str) -> Markup:
    at = _moment(value)
    if at is None:
        return Markup('<span class="none">-</span>') if value in (None, "") else escape(visible(str(value)[:60]))
    exact = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shown = f"{at:%Y-%m-%d %H:%M:%S}"
    if how == "ago":
        shown = length(max(0.0, (datetime.now(UTC) - at).total_seconds()))
    return Markup(f'<time datetime="{exact}" title="{exact}" data-{how}>{shown}</time>')


def _moment(value: float | str | None) -> datetime | None:
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.astimezone(UTC) if found.tzinfo is not None else None
        return None if value is None else datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def share_of(progress: Any) -> int | None:
    """Return how many hundredths are done, where a report of progress says it; else None."""
    said = progress.get("percent", progress.get("progress")) if isinstance(progress, dict) else progress
    if isinstance(progress, dict) and said is None and isinstance(progress.get("done"), int | float):
        total = progress.get("total")
        said = 100 * progress["done"] / total if isinstance(total, int | float) and total > 0 else None
    if not isinstance(said, int | float) or isinstance(said, bool):
        return None
    return round(min(100.0, max(0.0, 100 * said if isinstance(said, float) and said <= 1 else said)))


def number(value: float | None) -> str:
    """Return a count; `-` where it is not known."""
    return "-" if value is None else figure(value)


def usd(value: float | None) -> str:
    """Return an amount of USD, with as many decimals as it needs to be seen; `-` where it is not known."""
    if value is None:
        return "-"
    return figure(value, 2 if value >= 1 or value == 0 else 4)


def size(value: float) -> str:
    """Return a number of bytes in its largest unit."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 100 else f"{value:.1f} {units[0]}"


def pretty(value: Any) -> str:
    """Return a JSON value in lines."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except RecursionError:
        return "This value is nested too deeply to be shown."


def lines(text: str) -> Markup:
    """Return a text of several lines as the content of a `pre`, cut where it is very long."""
    more = len(text) - TEXT_MOST
    shown = str(text) if more <= 0 else f"{text[:TEXT_MOST]}\n… and {amount(more, 'character')} more"
    return Markup("\n").join(escape(visible(line.replace("\t", "    "))) for line in shown.split("\n"))


def log_lines(found: list[list[Span]]) -> Markup:
    """Return lines of a log with their colours, as the content of a `pre`."""
    return Markup("").join(Markup('<span class="line">{}</span>\n').format(_line(spans)) for spans in found)


def _line(spans: list[Span]) -> Markup:
    parts = []
    for span in spans:
        words = " ".join(f"a-{word}" for word in span.style.words)
        parts.append(Markup('<span class="{}">{}</span>').format(words, span.text) if words else escape(span.text))
    return Markup("").join(parts)
