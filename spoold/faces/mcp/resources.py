"""A task, its log and the queue, by URI.

Law: the id in a URI is judged by the grammar of ids before anything is looked for, and reaches no further than in a
tool.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

import orjson

from spoold.client.logs import last_bytes
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tasks import ListTasks, listed
from spoold.protocol import codec
from spoold.protocol.codec import WRITTEN_DEPTH
from spoold.protocol.errors import NotFound
from spoold.protocol.names import is_id

QUEUE = "spool://queue"
TASK = "spool://task/"
LOG = "/log"
TEMPLATES = {
    "spool://task/{id}": (
        "task",
        "Everything that is known of a task: content, attempts, results.",
        "application/json",
    ),
    "spool://task/{id}/log": ("log", "What the last attempt of a task wrote, at most the last 1 MiB.", "text/plain"),
}
LOG_MOST = 1 << 20
QUEUE_MOST = 200


def read(session: Session, uri: str) -> tuple[str, str]:
    """Return the text of a resource, and its type. Errors: NotFound."""
    if uri == QUEUE:
        page = listed(session, ListTasks(status="running", limit=QUEUE_MOST))
        return page.model_dump_json(), "application/json"
    rest = uri.removeprefix(TASK)
    task_id = unquote(rest.removesuffix(LOG))
    if not uri.startswith(TASK) or not is_id(task_id):
        known = ", ".join([*TEMPLATES, QUEUE])
        raise NotFound(f"there is no resource {uri[:200]!r}. Fix: use one of {known}, with the whole id of a task.")
    located = session.reach.find(task_id)
    if not rest.endswith(LOG):
        return json.dumps(_plain(asdict(session.spool.show(located.id))), ensure_ascii=False), "application/json"
    with session.spool.reaching():
        piece = last_bytes(session.spool.store, located.id, LOG_MOST)
    return "" if piece is None else piece.data.decode(errors="replace"), "text/plain"


def _plain(value: Any) -> Any:
    """What was found, as JSON has it: results are models."""
    data = orjson.dumps(value, default=lambda model: model.model_dump(mode="json"))
    return codec.load(data, "the task", depth=WRITTEN_DEPTH)
