"""One task: its attempts, why it is where it is, its log, its input and output, and what it needs.

Law: what files tell is read through the view, once for all who look. A part that cannot be read says so in its place,
and the rest is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from spoold.client.view import Card, Query
from spoold.faces.web.address import Address
from spoold.faces.web.later import Answer
from spoold.faces.web.pages import logs
from spoold.faces.web.site import FILES_S, Shown, Site
from spoold.pictures import task_description
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.names import is_id, key
from spoold.protocol.result import why_ended
from spoold.protocol.task import Task as Written

T = TypeVar("T")
# Reading what a large batch needs takes long; its own page does it when it is asked.
SCENE_MOST = 400
_NEEDS = ("dependencies", "after_any", "after_failed")
RELATIVES = 60


def show(site: Site, asked: Address, task: str) -> Shown:
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
        part, no_log = _try(lambda: logs.piece(view, task, attempt, -logs.END_BYTES, logs.END_BYTES))
    values: dict[str, Any] = {
        "task": info.id,
        "info": info,
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
    logs.insist(task)
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
    """The tasks of its batch that wait for it; no value where its batch is large, and was not read."""
    if not batch:
        return Answer([])
    row = next((row for row in site.view.batches() if row.batch == batch), None)
    if row is not None and row.total > SCENE_MOST:
        return Answer()
    scene = _later(site, "scene", batch, lambda: site.view.scene(batch))
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
    if state in ("waiting", "ready"):
        found += ["hold", "release"]
    return found
