"""What an action posts: requests about tasks, types and workers.

Law: for many tasks, each is judged before anything is requested; those that cannot be, and those that are others than
were shown, are left alone, and named. A task cannot answer: within one, every answer is refused.
Touches: the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from spoold.client import asking, questions, selecting
from spoold.client.ancestors import adopt_task
from spoold.client.spool_client import SpoolClient
from spoold.faces.web.address import Address
from spoold.faces.web.seen import Asking, Mark, mark_of
from spoold.protocol import codec
from spoold.protocol.approval import may_answer
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.names import key
from spoold.protocol.request import Verb

_VERBS = {"cancel": Verb.CANCEL, "retry": Verb.RETRY, "hold": Verb.HOLD, "release": Verb.UNHOLD}
MINUTES_MOST = 60 * 24 * 366


def for_tasks(
    client: SpoolClient, verb: str, shown: Mapping[str, Mark], reason: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Post a request for each of these tasks that allows it; return their ids, and the others with why not.

    shown: the tasks, by id, as they were shown. Errors: Unavailable.
    """
    marks = {key(task): mark for task, mark in shown.items()}
    with client.reaching():
        found, wrong = selecting.find(client.store, list(shown))
        refused = [(ref, str(error)) for ref, error in wrong.items()]
        able = []
        for located in found:
            was, now = marks.get(key(located.id)), mark_of(located)
            if was is None or not was.fits(now):
                refused.append((located.id, f"it has changed since it was shown; it is {now.state} now."))
                continue
            error = _refuses(client, verb, located)
            if error is None and verb == "cancel" and located.result is not None:
                refused.append((located.id, f"it has {located.state} already."))
            elif error is None:
                able.append(located.id)
            else:
                refused.append((located.id, str(error)))
    more: dict[str, Any] = {"durable": client.store.durable} if verb in ("hold", "release") else {}
    for task in able:
        client.post(_VERBS[verb], task, reason, **more)
    return able, refused


def _refuses(client: SpoolClient, verb: str, located: selecting.Located) -> SpoolError | None:
    if verb == "release":
        return questions.refuses_release(client.store, located)
    by = {"cancel": asking.refuses_cancel, "retry": asking.refuses_retry, "hold": questions.refuses_hold}
    return by[verb](located)


def answer(client: SpoolClient, verb: str, question: Asking, said: str, reason: str) -> None:
    """Answer a question as it was shown: the answer names the token, or the question, and counts for no other.

    said: what a person typed, '' for yes. Errors: SpoolError.
    """
    # An agent may start its commands with a few variables only.
    inside = os.environ.get("SPOOL_TASK_ID") or adopt_task(client.directory, dict(os.environ))
    if inside:
        raise SpoolError(f"this runs within task {inside}, and a task cannot answer: ask a person to do it.")
    more: dict[str, Any] = {"about": question.name, "order": question.order, "durable": client.store.durable}
    if verb == "reject":
        client.post(Verb.REJECT, question.task, reason or "rejected", **more)
        return
    value = None if not said else said if said in question.choices else _value(said)
    if not may_answer(question.choices, value):
        choices = ", ".join(question.choices)
        raise SpoolError(f"the answer {value!r} is none of the choices. Answer one of: {choices}.")
    if value is not None:
        more["answer"] = value
    if not question.name:
        more["seen"] = question.file
    client.post(Verb.APPROVE, question.task, reason, **more)


def for_one(client: SpoolClient, verb: str, form: Address, reason: str) -> str:
    """Do what a form says about a type or a worker; return the path where that can be seen. Errors: SpoolError."""
    if verb in ("drain", "undrain"):
        worker = form.one("worker")
        if not worker:
            raise BadFile("the form", "worker", "names no worker.", "choose one on the page of nodes.")
        (client.drain if verb == "drain" else client.undrain)(worker, reason=reason)
        return "/nodes"
    kind = form.one("type") or None
    if verb == "pause":
        minutes = form.number("minutes")
        if not 0 <= minutes <= MINUTES_MOST:
            raise BadFile("the form", "minutes", "is no length of time.", "leave it out, or give up to a year.")
        client.pause(kind, reason=reason, for_s=minutes * 60.0 if minutes else None)
    else:
        client.resume(kind, reason=reason)
    return "/gates"


def _value(text: str) -> Any:
    """The JSON value of an answer; an answer that is no JSON is a text."""
    return codec.value_of(text)
