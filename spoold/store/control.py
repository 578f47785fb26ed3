"""Requests: files in control/.

Law: a request is valid by its name, whatever it contains. A pause whose content cannot be read stands until a
resume, and a closed limit until it is opened. An answer whose content cannot be read is none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.protocol.request import ENDING, MANY, OF_ONE_TASK, Request, Verb, parse_request
from spoold.protocol.request_body import RequestBody
from spoold.rules.gates.standing_requests import Requested
from spoold.store.existence import names_unless_blocked, reading
from spoold.store.store import Store
from spoold.system.filesystem import FileSystem


def post(
    store: Store,
    verb: Verb,
    target: str,
    unique: str,
    *,
    by: str = "",
    reason: str = "",
    until: datetime | None = None,
    durable: bool = False,
    **more: Any,
) -> Request:
    """Put a request where the leader and the workers see it. Errors: OSError, BadName for an impossible target.

    more: the other fields of its content. Most requests need not be durable: the user sees whether it was done, and
    repeats it after a power cut.
    """
    request = Request(verb, target, unique)
    said = {"by": by or store.writer, "at": store.stamp(), "reason": reason}
    body = RequestBody.model_validate({**said, "until": until, **more})
    # A field that says nothing is left out: releases that do not know it read what they have always read.
    content = body.model_dump(mode="json", exclude_defaults=True)
    store.publish(path(request), codec.dump(said | content), durable=durable)
    return request


def list_requests(fs: FileSystem) -> list[Request]:
    """All requests that stand, in a settled order. Errors: OSError."""
    return list_control(fs)[0]


def list_control(fs: FileSystem) -> tuple[list[Request], list[str]]:
    """All requests that stand, in a settled order, and the names there that are none. Errors: OSError."""
    parsed = {name: parse_request(name) for name in sorted(names_unless_blocked(fs, layout.CONTROL))}
    requests = [request for request in parsed.values() if request is not None]
    return requests, [name for name, request in parsed.items() if request is None]


def path(request: Request) -> str:
    """The path of the request until it is done."""
    return layout.join(layout.CONTROL, request.encode())


def read(fs: FileSystem, request: Request) -> RequestBody:
    """Who asked, and why; an empty body if it cannot be read, since the request is valid all the same."""
    try:
        return read_body(fs, request)
    except (OSError, BadFile):
        return RequestBody()


def read_body(fs: FileSystem, request: Request) -> RequestBody:
    """As `read`, of a request whose content decides. Errors: OSError, BadFile."""
    with reading("request", path(request)):
        return _body(fs.read(path(request)), path(request))


def _body(data: bytes, file: str) -> RequestBody:
    """The content of a request. Errors: BadFile."""
    return codec.load_sent_model(RequestBody, data, file)


def load(fs: FileSystem, request: Request) -> Requested:
    """A request about a task, with its content. Errors: OSError, BadFile."""
    with reading("request", path(request), request.target):
        data = fs.read(path(request))
        body = _body(data, path(request)) if data.strip() else RequestBody()
    return Requested(
        request,
        by=body.by,
        at=body.at,
        reason=body.reason,
        ask=body.ask,
        choices=body.choices,
        attempt=body.attempt,
        order=body.order,
        about=body.about,
        answer=body.answer,
        seen=body.seen,
        redo=body.redo,
        tell=body.tell,
        until=body.until.timestamp() if body.until else None,
    )


def unread(request: Request) -> Requested | None:
    """What counts of a request whose content cannot be read: a hold, since its name says all that is needed, and a
    task that has started cannot be held any more; else None.
    """
    return Requested(request) if request.verb is Verb.HOLD else None


def about_task(fs: FileSystem, task_id: str, requests: Iterable[Request] | None = None) -> tuple[Requested, ...]:
    """The requests about one task that stand, and can be read or count unread. requests: as already listed.

    Errors: OSError.
    """
    found = []
    for request in list_requests(fs) if requests is None else requests:
        if request.verb in OF_ONE_TASK and key(request.target) == key(task_id):
            try:
                found.append(load(fs, request))
            except (OSError, BadFile) as error:
                held = None if isinstance(error, FileNotFoundError) else unread(request)
                found += [] if held is None else [held]
    return tuple(found)


def asks(fs: FileSystem, requests: Iterable[Request], verb: Verb, task_id: str) -> bool:
    """Whether one of these requests asks this of a task, alone or among many. One that cannot be read asks nothing.
    Errors: none.
    """
    task_key = key(task_id)
    for request in requests:
        if request.verb is verb and request.target != MANY and key(request.target) == task_key:
            return True
        if request.verb is verb and request.target == MANY and task_key in map(key, read(fs, request).tasks):
            return True
    return False


def end_of(fs: FileSystem, request: Request) -> float | None:
    """When a request ends by itself (s since 1970); None if its content names no moment.

    Errors: OSError, BadFile.
    """
    with reading("request", path(request)):
        data = fs.read(path(request))
        until = _body(data, path(request)).until if data.strip() else None
        return until.timestamp() if until else None


def quota_end(store: Store, request: Request, end: float | None) -> float | None:
    """Until when (s since 1970) a quota closes its limit: no longer than it may, from when it was written, by the
    file server's clock. For so long if its content cannot be read (end is None): nobody repeats a report that a power
    cut has torn. None: for ever; there is no such limit any more. Errors: OSError.
    """
    limit = store.settings.limits.get(request.target)
    if limit is None:
        return end
    written, server = store.fs.stat(path(request)).mtime_ns / 1e9, store.common.server()
    age_s = 0.0 if server is None else max(0.0, server - written)
    longest = store.common.wall() + limit.quota_max_s - age_s
    return longest if end is None else min(end, longest)


def ends_of(fs: FileSystem, requests: Iterable[Request]) -> dict[Request, float]:
    """The ends of those requests that end by themselves. An unreadable one stands. Errors: none."""
    found = {}
    for request in requests:
        if request.verb in ENDING:
            with contextlib.suppress(OSError, BadFile):
                end = end_of(fs, request)
                if end is not None:
                    found[request] = end
    return found
