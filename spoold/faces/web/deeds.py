"""What an action posts: requests about tasks, types and workers.

Law: for many tasks, each is judged before anything is requested; those that cannot be are left alone, and named.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spoold.client import asking, questions, selecting
from spoold.client.spool_client import SpoolClient
from spoold.faces.web import address
from spoold.faces.web.address import Address
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.request import Verb

_VERBS = {"cancel": Verb.CANCEL, "retry": Verb.RETRY, "hold": Verb.HOLD, "release": Verb.UNHOLD}
MINUTES_MOST = 60 * 24 * 366


def for_tasks(
    client: SpoolClient, verb: str, ids: Sequence[str], reason: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Post a request for each of these tasks that allows it; return their ids, and the others with why not.

    Errors: Unavailable.
    """
    with client.reaching():
        found, wrong = selecting.find(client.store, list(ids), exactly=True)
        refused = [(ref, str(error)) for ref, error in wrong.items()]
        able = []
        for located in found:
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


def for_one(client: SpoolClient, verb: str, form: Address, reason: str) -> str:
    """Do what a form says about a question, a type or a worker; return where that can be seen. Errors: SpoolError."""
    done = {"done": f"{verb}:1"}
    if verb in ("approve", "reject"):
        task, question = form.one("id"), form.one("question")
        if verb == "reject":
            client.reject(task, reason=reason or "rejected", question=question)
        else:
            said = form.one("answer") or None
            value = None if said is None else _value(said)
            client.approve(task, value, said=said, reason=reason, question=question)
        return address.link(address.task(task), done)
    if verb in ("drain", "undrain"):
        worker = form.one("worker")
        if not worker:
            raise BadFile("the form", "worker", "names no worker.", "choose one on the page of nodes.")
        (client.drain if verb == "drain" else client.undrain)(worker, reason=reason)
        return address.link("/nodes", done)
    kind = form.one("type") or None
    if verb == "pause":
        minutes = form.number("minutes")
        if not 0 <= minutes <= MINUTES_MOST:
            raise BadFile("the form", "minutes", "is no length of time.", "leave it out, or give up to a year.")
        client.pause(kind, reason=reason, for_s=minutes * 60.0 if minutes else None)
    else:
        client.resume(kind, reason=reason)
    return address.link("/gates", done)


def _value(text: str) -> Any:
    """The JSON value of an answer; an answer that is no JSON is a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
