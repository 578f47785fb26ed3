"""The log of a task: its end, a search, what is new, all of it as a file.

A log is of one attempt. Positions are bytes; a part begins and ends at a line, unless a line is longer than a part.

Law: a log is found by task and attempt, never by a path. How much is read for one answer is bounded. A log that
cannot be read is a fault of this log alone, and not of the spool.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from spoold.client.view import LogPart, View
from spoold.faces.web import address
from spoold.faces.web.address import Address
from spoold.faces.web.headers import BARE_POLICY
from spoold.faces.web.site import Shown, Site
from spoold.pictures import ansi
from spoold.pictures.ansi import Span
from spoold.protocol.errors import NotFound, SpoolError, Unavailable
from spoold.protocol.names import is_id

# Of one answer; the end on the page of a task is shorter.
PART_BYTES, END_BYTES = 64 << 10, 16 << 10
LINES_MOST, SPANS_MOST = 400, 1200
# How far a search reads, and how many lines it shows.
SEARCHED_BYTES, HITS_MOST = 16 << 20, 200
_READ = 1 << 20
# What the system says of one file: it is a link, a FIFO or a directory, or it is not ours to read.
_OF_THE_FILE = frozenset((errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.EACCES, errno.EPERM))


class Unreadable(SpoolError):
    """There is something in place of this log that cannot be read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some lines of a log, from one byte to another."""

    attempt: int
    begin: int
    end: int
    size: int
    ended: bool
    lines: list[list[Span]]


def _bytes(view: View, task: str, attempt: int | None, offset: int, most: int) -> LogPart:
    """Some bytes of a log, as `View.log`. Errors: NotFound, Unreadable, Unavailable."""
    try:
        return view.log(task, attempt=attempt, offset=offset, most=most)
    except Unavailable as error:
        cause = error.__cause__
        if not isinstance(cause, OSError) or cause.errno not in _OF_THE_FILE:
            raise
        of = f" of attempt {attempt}" if attempt else ""
        raise Unreadable(f"The log{of} cannot be read: {cause.strerror}.") from error


def piece(view: View, task: str, attempt: int | None, offset: int, most: int = PART_BYTES) -> Piece:
    """Return lines from a position on; below 0 it counts from the end. Errors: NotFound, Unreadable, Unavailable."""
    found = _bytes(view, task, attempt, offset, most)
    data, begin = found.data, found.begin
    if offset < 0 and begin > 0:  # the first line is most likely cut off
        cut = data.find(b"\n") + 1
        data, begin = data[cut:], begin + cut
    whole = found.ended and begin + len(data) >= found.size
    if not whole and (cut := data.rfind(b"\n") + 1):
        data = data[:cut]
    elif not whole and len(data) < most:
        data = b""  # the line goes on
    lines = ansi.lines(data)
    if offset < 0:
        kept = _fitting(lines)
        if kept < len(lines):
            dropped = data.split(b"\n")[: len(lines) - kept]
            skipped = sum(map(len, dropped)) + len(dropped)
            return Piece(found.attempt, begin + skipped, begin + len(data), found.size, found.ended, lines[-kept:])
    return Piece(found.attempt, begin, begin + len(data), found.size, found.ended, lines)


def _fitting(lines: list[list[Span]]) -> int:
    """How many of the last lines have room in a page."""
    spans = 0
    for number, line in enumerate(reversed(lines)):
        spans += len(line) + 1
        if number >= LINES_MOST or spans > SPANS_MOST:
            return max(number, 1)
    return len(lines)


def show(site: Site, asked: Address, task: str) -> Shown:
    """Return the page of a whole log, in parts, or what a search finds in it."""
    insist(task)
    attempts = site.view.logs(task)
    attempt = asked.number("attempt") or (attempts[-1] if attempts else 0)
    values: dict[str, Any] = {"task": task, "attempts": attempts, "attempt": attempt, "text": asked.one("q")}
    values |= {
        "no_log": "",
        "part": None,
        "hits": None,
        "reads_to": 0,
        "older": "",
        "newer": "",
        "last": "",
        "first": "",
    }
    try:
        if attempts and asked.one("q"):
            values["hits"], values["reads_to"], values["size"] = _search(site.view, task, attempt, asked.one("q"))
        elif attempts:
            values |= _part(site.view, task, attempt, asked.number("at", -PART_BYTES))
    except Unreadable as error:
        values["no_log"] = str(error)
    return Shown("log", f"Log of {task}", values, nav="/tasks")


def _part(view: View, task: str, attempt: int, at: int) -> dict[str, Any]:
    """What the page shows of one part, with links to the others."""
    part, base, here = piece(view, task, attempt, at), {"attempt": attempt}, address.task(task, "log")
    values: dict[str, Any] = {"part": part}
    if part.begin > 0:
        values["older"] = address.link(here, {**base, "at": max(0, part.begin - PART_BYTES)})
        values["first"] = address.link(here, {**base, "at": "0"})
    if part.end < part.size:
        values["newer"] = address.link(here, {**base, "at": part.end})
        values["last"] = address.link(here, base)
    return values


def _search(view: View, task: str, attempt: int, text: str) -> tuple[list[tuple[int, list[Span]]], int, int]:
    """The lines that have a text, with their positions; how far was read; the size of the log."""
    wanted, found = text.casefold(), list[tuple[int, list[Span]]]()
    at, size = 0, 0
    for part in _parts(view, task, attempt):
        size = part.size
        begin = part.begin
        for line in part.data.split(b"\n"):
            if wanted in line.decode(errors="replace").casefold() and len(found) < HITS_MOST:
                found += [(begin, spans) for spans in ansi.lines(line[:2000])[:1]]
            begin += len(line) + 1
        at = part.end
        if len(found) >= HITS_MOST or at >= SEARCHED_BYTES:
            break
    return found, at, size


def _parts(view: View, task: str, attempt: int | None) -> Iterator[LogPart]:
    """Yield a log in parts of many bytes, up to its present end."""
    at, size = 0, 1
    while at < size:
        part = _bytes(view, task, attempt, at, _READ)
        if not part.data:
            return
        yield part
        at, size = part.end, part.size


def new_lines(site: Site, asked: Address, task: str) -> Shown:
    """Return what a log has from a position on, for a page that follows it."""
    insist(task)
    part = piece(site.view, task, asked.number("attempt") or None, max(0, asked.number("at")))
    return Shown("log_lines", "", {"part": part, "attempts": site.view.logs(task)})


def download(site: Site) -> Any:
    """Return the endpoint that sends a whole log as it is."""

    def answer(request: Request) -> Response:
        task = str(request.path_params["task"])
        insist(task)
        attempt = address.read(request.url.query).number("attempt") or None
        first = _bytes(site.view, task, attempt, 0, 1)
        if not first.attempt:
            raise NotFound(f"No attempt of {task} has written a log.")
        headers = {
            "Content-Security-Policy": BARE_POLICY,
            "Content-Disposition": f'attachment; filename="{task}.{first.attempt}.log"',
        }
        data = (part.data for part in _parts(site.view, task, first.attempt))
        return StreamingResponse(data, headers=headers, media_type="application/octet-stream")

    return answer


def insist(task: str) -> None:
    """Errors: NotFound for what cannot be the id of a task."""
    if not is_id(task):
        raise NotFound("There is no such task: this is no id.")
