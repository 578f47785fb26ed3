"""Requests: files in control/.

Law: a request is valid by its name, whatever it contains. A pause whose content cannot be read stands until a
resume, and a closed limit until it is opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import datetime

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.request import ENDING, Request, Verb, parse_request
from spoold.protocol.request_body import RequestBody
from spoold.store.absence import names_unless_blocked
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
) -> Request:
    """Put a request where the leader and the workers see it. Errors: OSError, BadName for an impossible target.

    The request need not be durable: the user sees whether it was done, and repeats it after a power cut.
    """
    request = Request(verb, target, unique)
    body = RequestBody(by=by or store.writer, at=store.stamp(), reason=reason, until=until)
    # Without `until` the content is what releases that do not know that field have always read.
    content = body.model_dump(mode="json", exclude_none=True)
    store.publish(path(request), codec.dump(content), durable=False)
    return request


def list_requests(fs: FileSystem) -> list[Request]:
    """All requests that stand, in a settled order. Errors: OSError."""
    parsed = (parse_request(name) for name in sorted(names_unless_blocked(fs, layout.CONTROL)))
    return [request for request in parsed if request is not None]


def path(request: Request) -> str:
    """The path of the request until it is done."""
    return layout.join(layout.CONTROL, request.encode())


def read(fs: FileSystem, request: Request) -> RequestBody:
    """Who asked, and why; an empty body if it cannot be read, since the request is valid all the same."""
    try:
        return codec.load_model(RequestBody, fs.read(path(request)), path(request))
    except (OSError, BadFile):
        return RequestBody()


def end_of(fs: FileSystem, request: Request) -> float | None:
    """When a request ends by itself (s since 1970); None if its content names no moment.

    Errors: OSError, BadFile.
    """
    data = fs.read(path(request))
    until = codec.load_model(RequestBody, data, path(request)).until if data.strip() else None
    return until.timestamp() if until else None


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
