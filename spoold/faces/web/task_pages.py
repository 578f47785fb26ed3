"""The pages of tasks: the list with facets, search and order; one task; the log of a task.

A log is of one attempt. Positions are bytes; a part begins and ends at a line, unless a line is longer than a part.

Law: what a list shows is in its URL. Counts are exact, of all pages: `N of M`. What files tell is read through the
view, once for all who look. A part that cannot be read says so in its place, and the rest is shown. A log is found by
task and attempt, never by a path. How much is read for one answer is bounded. A log that cannot be read is a fault of
this log alone, and not of the spool.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from spoold.client.view import Card, LogPart, Query, View
from spoold.faces.web import page_address
from spoold.faces.web.page_address import Address
from spoold.faces.web.page_cache import Answer
from spoold.faces.web.security import BARE_POLICY
from spoold.faces.web.site import FILES_S, Shown, Site
from spoold.pictures import log_colours, task_description
from spoold.pictures.log_colours import Span
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, NotFound, SpoolError, Unavailable
from spoold.protocol.names import is_id, key
from spoold.protocol.result import why_ended
from spoold.protocol.task import Task as Written

PAGE = 100
# So many values of a facet are shown at first.
VALUES = 8
COLUMNS = (
    ("id", "Task"),
    ("state", "State"),
    ("type", "Type"),
    ("batch", "Batch"),
    ("attempt", "Attempt"),
    ("worker", "Worker"),
    ("code", "Code"),
    ("admitted", "Admitted"),
    ("since", "In this state for"),
)
_NAMES = {"state": "State", "type": "Type", "batch": "Batch", "worker": "Worker", "code": "Code"}


def show_list(site: Site, asked: Address) -> Shown:
    """Return the page."""
    query, cursor = page_address.query_of(asked), asked.one("cursor")
    found = site.view.find(query, cursor=cursor, limit=PAGE)
    values: dict[str, Any] = {
        "query": query,
        "found": found,
        "facets": [
            _facet(query, name, found.facets.get(name, {}), asked.one("more")) for name in page_address.FACETS
        ],
        "columns": [_column(query, name, title) for name, title in COLUMNS],
        "chosen": _chosen(query),
        "hidden": [(name, value) for name, value in page_address.pairs_of(query) if name != "q"],
        "next": page_address.tasks(query, cursor=found.cursor) if found.cursor else "",
        "first": page_address.tasks(query) if cursor else "",
        "recent": page_address.tasks(replace(query, archived=not query.archived)),
        "bulk": [*page_address.pairs_of(query), *([] if page_address.selects(query) else [("all", "1")])],
        # A drop that is not admitted yet may be no id; only one that was rejected has a page all the same.
        "nameless": {card.id for card in found.cards if card.state != "rejected" and not is_id(card.id)},
        "done": asked.one("done"),
    }
    return Shown("tasks", "Tasks", values, nav="/tasks")


def _facet(query: Query, name: str, counts: dict[str, int], more: str) -> dict[str, Any]:
    chosen = getattr(query, page_address.FACETS[name])
    ordered = sorted(counts.items(), key=lambda one: (one[0] not in chosen, -one[1], one[0]))
    most = len(ordered) if more == name else max(VALUES, len(chosen))
    return {
        "name": name,
        "title": _NAMES[name],
        "values": [
            (value, count, value in chosen, page_address.tasks(page_address.toggled(query, name, value)))
            for value, count in ordered[:most]
        ],
        "more": page_address.tasks(query, more=name) if len(ordered) > most else "",
        "left": len(ordered) - most,
    }


def _column(query: Query, name: str, title: str) -> dict[str, str]:
    """A heading that orders by its column: first downwards for moments, upwards for words, then the other way."""
    down = f"-{name}"
    if query.sort in (name, down):
        sort, order = (name if query.sort == down else down), "descending" if query.sort == down else "ascending"
    else:
        sort, order = (down if name in ("admitted", "since", "attempt") else name), ""
    return {"title": title, "name": name, "order": order, "link": page_address.tasks(replace(query, sort=sort))}


def _chosen(query: Query) -> list[tuple[str, str, str]]:
    """What narrows the list, each with the address of the list without it."""
    found = [
        (_NAMES[name], value, page_address.tasks(page_address.toggled(query, name, value)))
        for name, field in page_address.FACETS.items()
        for value in getattr(query, field)
    ]
    if query.admitted is not None:
        begin, end = query.admitted
        bounds = (("after", begin), ("up to", end))
        said = " ".join(f"{word} {_moment(at)}" for word, at in bounds if not math.isinf(at))
        found.append(("Admitted", said, page_address.tasks(replace(query, admitted=None))))
    if query.text:
        found.append(("Search", query.text, page_address.tasks(replace(query, text=""))))
    return found


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


# One task: its attempts, why it is where it is, its log, its input and output, and what it needs.


T = TypeVar("T")
# Reading what a large batch needs takes long; its own page does it when it is asked.
SCENE_MOST = 400
_NEEDS = ("dependencies", "after_any", "after_failed")
RELATIVES = 60


def show_task(site: Site, asked: Address, task: str) -> Shown:
    """Return the page. Errors: NotFound."""
    view = site.view
    if not is_id(task) and not _is_rejected(site, task):
        raise NotFound("There is no such task: this is no id.")
    card = view.card(task)
    info = view.info(task)
    if key(info.id) != key(task):
        raise NotFound(f"There is no task {task}. A task is named by its whole id here.")
    ended = info.state in ("completed", "skipped", "rejected")
    explained: Answer[Any] = Answer()
    if not ended:
        explained = _later(site, "explain", task, lambda: view.explain(task))
    dependants = _dependants(site, info.id, info.batch or "")
    attempts, _ = _try(lambda: view.logs(task))
    attempt = asked.number("attempt") or (attempts[-1] if attempts else 0)
    part, no_log = (None, "")
    if attempts:
        part, no_log = _try(lambda: piece(view, task, attempt, -END_BYTES, END_BYTES))
    values: dict[str, Any] = {
        "task": info.id,
        "info": info,
        "work": view.work(info),
        "card": card,
        "run": next((run for run in view.running() if key(run.id) == key(task)), None),
        "explained": explained.value,
        "unexplained": explained.error or ("It is being worked out." if explained.pending else ""),
        "tries": [(result, why_ended(result)) for result in reversed(info.attempts)],
        "log_attempts": attempts or [],
        "log_attempt": attempt,
        "part": part,
        "no_log": no_log,
        "given": task_description.parts_of(info.task),
        "result": info.attempts[-1] if info.attempts else None,
        "needs": _needs(site, info.task),
        "dependants": dependants.value,
        "dependants_later": dependants.pending,
        "questions": [one for one in _try(view.questions)[0] or () if key(one.task) == key(task)],
        "can": _can(info.state, info.task, card),
        "done": asked.one("done"),
    }
    again = explained.pending or dependants.pending
    return Shown("task", info.id, values, nav="/tasks", again=again)


def _is_rejected(site: Site, name: str) -> bool:
    """Whether a drop of this name was rejected: it may be no id."""
    found = site.view.find(Query(states=("rejected",), text=name), limit=RELATIVES).cards
    return any(card.id == name for card in found)


def history(site: Site, _: Address, task: str) -> Shown:
    """Return everything that happened to a task, in its order. Errors: NotFound."""
    insist(task)
    told = _later(site, "history", task, lambda: site.view.history(task))
    if told.error:
        raise NotFound(told.error)
    values = {"task": task, "told_all": told.value or [], "pending": told.pending}
    return Shown("history", f"History of {task}", values, nav="/tasks", again=told.pending)


def _try(read: Callable[[], T]) -> tuple[T | None, str]:
    """What was read, or why it was not."""
    try:
        return read(), ""
    except SpoolError as error:
        return None, str(error)


def _needs(site: Site, content: dict[str, Any]) -> list[tuple[str, str, Card | None]]:
    """What it waits for: the field, the id, and what is known of that task."""
    try:
        written = codec.check(Written, content, "the task")
    except BadFile:
        return []
    named = ((name, one) for name in _NEEDS for one in getattr(written, name))
    found: list[tuple[str, str, Card | None]] = [(name, one, site.view.card(one)) for name, one in named]
    return [*found, *([("after_batch", written.after_batch, None)] if written.after_batch else [])]


def _dependants(site: Site, task: str, batch: str) -> Answer[list[Any]]:
    """The tasks of its batch, or without one of the spool, that come after it, ended or not; no value where these are
    many, and were not read."""
    row = next((row for row in site.view.batches() if row.batch == batch), None) if batch else None
    many = sum(site.view.counts().values()) if not batch else 0 if row is None else row.total
    if many > SCENE_MOST:
        return Answer()
    scene = _later(site, "scene", batch, lambda: site.view.scene(batch or None))
    found = scene.value.inside if scene.value is not None else ()
    wait = [one for one in found if any(need.key == key(task) for need in one.needs)]
    return Answer(wait[:RELATIVES], scene.error, scene.pending)


def _later(site: Site, what: str, of: str, read: Callable[[], T]) -> Answer[T]:
    return site.later.get((what, of), read, fresh_s=FILES_S)


def _can(state: str, content: dict[str, Any], card: Card | None) -> list[str]:
    """What can be done with it now."""
    found = []
    if state in ("pending", "waiting", "ready", "claimed"):
        found.append("cancel")
    if state in ("failed", "skipped"):
        found.append("retry")
    if state in ("waiting", "ready", "claimed"):
        found += ["hold", "release"]
    return found


# The log of a task: its end, a search, what is new, all of it as a file.


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
    lines = log_colours.lines(data)
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


def show_log(site: Site, asked: Address, task: str) -> Shown:
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
    part, base, here = piece(view, task, attempt, at), {"attempt": attempt}, page_address.task(task, "log")
    values: dict[str, Any] = {"part": part}
    if part.begin > 0:
        values["older"] = page_address.link(here, {**base, "at": max(0, part.begin - PART_BYTES)})
        values["first"] = page_address.link(here, {**base, "at": "0"})
    if part.end < part.size:
        values["newer"] = page_address.link(here, {**base, "at": part.end})
        values["last"] = page_address.link(here, base)
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
                found += [(begin, spans) for spans in log_colours.lines(line[:2000])[:1]]
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
        attempt = page_address.read(request.url.query).number("attempt") or None
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
