"""The forms that cancel, retry, hold, release, answer, pause, resume and drain.

Each is a page that says what will happen, with a form that does it. For many tasks that page is a preview: how many,
in which states, the first ids. The form carries a digest of the set; if the set has changed meanwhile, nothing is
requested, and the preview is shown again.

Law: these routes are there only where actions are allowed. A GET changes nothing. Every request carries who asked,
and that it came from here. The leader judges each request again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from spoold.faces.web import address, deeds
from spoold.faces.web.address import Address
from spoold.faces.web.copies import copy_of
from spoold.faces.web.guard import BODY_MOST
from spoold.faces.web.site import Shown, Site, failed, render, respond
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, NotFound, SpoolError

BODY_S = 10.0
FIRST = 10
REASON_MOST = 500


@dataclass(frozen=True, slots=True)
class Deed:
    """What can be done. title: of the page; states: of the tasks that it is for, none where it is for no tasks.

    about: what will happen, as a sentence; button: the words on it.
    """

    title: str
    about: str
    button: str
    states: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


DEEDS = {
    "cancel": Deed(
        "Cancel tasks",
        "Waiting tasks never start, and running tasks are stopped. Tasks that need them fail.",
        "Cancel",
        ("pending", "waiting", "ready", "claimed"),
    ),
    "retry": Deed(
        "Retry tasks",
        "They run again, with a fresh budget of retries. One that needs a failed task fails again, unless that task "
        "is retried, too.",
        "Retry",
        ("failed",),
        ("skipped",),
    ),
    "hold": Deed("Hold a task", "It does not start until it is released.", "Hold", ("waiting", "ready")),
    "release": Deed("Release a task", "It may start again.", "Release", ("waiting",)),
    "approve": Deed("Answer a question", "The task starts, or goes on, with this answer.", "Answer"),
    "reject": Deed("Reject", "A task that waits for its approval fails; one that runs is told so.", "Reject"),
    "pause": Deed("Pause", "No more tasks start. Running tasks go on.", "Pause"),
    "resume": Deed("Resume", "Tasks may start again.", "Resume"),
    "drain": Deed("Drain a worker", "It takes no new tasks. Its running tasks may end.", "Drain"),
    "undrain": Deed("Undrain a worker", "It may take tasks again.", "Undrain"),
}


def routes(site: Site) -> list[BaseRoute]:
    """Return the routes of all actions; none where they are not allowed."""
    if not site.actions:
        return []
    return [
        Route("/act/{verb}", _asking(site), methods=["GET"]),
        Route("/act/{verb}", _doing(site), methods=["POST"]),
    ]


def _asking(site: Site) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        verb = _verb(request)
        return _page(site, request, confirm(site, verb, address.read(request.url.query)))

    return answer


def _doing(site: Site) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        verb = _verb(request)
        form = address.read(await _body(request))
        try:
            return await run_in_threadpool(_done, site, request, verb, form)
        except SpoolError as error:
            return _page(site, request, failed(error))

    return answer


def _verb(request: Request) -> str:
    verb = str(request.path_params["verb"])
    if verb not in DEEDS:
        raise NotFound("There is no such action.")
    return verb


async def _body(request: Request) -> bytes:
    """The form of a request. Errors: BadFile for one that is too large or too slow."""
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                data += chunk
                if len(data) > BODY_MOST:
                    raise BadFile("the form", "", "is too large.", "send less.")
    except TimeoutError:
        raise BadFile("the form", "", "did not arrive.", "send it again.") from None
    return bytes(data)


def _page(site: Site, request: Request, shown: Shown) -> Response:
    text = render(site, shown, part=False, version=site.view.version, here="")
    sent = respond(request, copy_of(text, site.view.version, 0.0, shown.status))
    # Under `no-referrer` a browser says `Origin: null` for a form, and the guard wants to know.
    sent.headers["Referrer-Policy"] = "same-origin"
    return sent


def confirm(site: Site, verb: str, asked: Address, *, changed: bool = False) -> Shown:
    """Return the page that says what will happen. changed: the tasks are others than those that were shown before."""
    deed = DEEDS[verb]
    values: dict[str, Any] = {
        "verb": verb,
        "deed": deed,
        "changed": changed,
        "asked": asked,
        "reason": asked.one("reason"),
    }
    if deed.states:
        return Shown("act_tasks", deed.title, {**values, **_set(site, deed, asked)}, status=409 if changed else 200)
    question = None
    if verb in ("approve", "reject"):
        task, name = asked.one("id"), asked.one("question")
        question = next(
            (one for one in site.view.questions() if one.task == task and name in ("", one.question)), None
        )
        if question is None:
            raise NotFound(f"Task {task} asks nothing now.")
    types = sorted(site.view.picture.types) if site.view.picture is not None else []
    return Shown("act_one", deed.title, {**values, "question": question, "types": types})


def _set(site: Site, deed: Deed, asked: Address) -> dict[str, Any]:
    """The tasks that are meant, how many of them it is for, and the digest of these."""
    if task := asked.one("id"):
        card = site.view.card(task)
        info = None if card is not None else site.view.info(task)
        state = card.state if card is not None else info.state if info is not None else ""
        can = state in (*deed.states, *deed.also) or not deed.states
        ids = [task] if can else []
        states = {state: 1}
        return {
            "single": task,
            "matches": 1,
            "states": states,
            "ids": ids,
            "first": ids,
            "digest": digest(ids),
            "pairs": [],
        }
    query = address.query_of(asked)
    wanted = [state for state in query.states if state in (*deed.states, *deed.also)]
    meant = replace(query, states=tuple(wanted or deed.states))
    matches = site.view.find(query, limit=1).matches
    if query.states and not wanted:
        ids, states = [], {}
    else:
        ids = site.view.keys(meant)
        counts = site.view.find(meant, limit=1).facets.get("state", {})
        states = {state: counts[state] for state in meant.states if counts.get(state)}
    return {
        "single": "",
        "matches": matches,
        "states": states,
        "ids": ids,
        "first": ids[:FIRST],
        "digest": digest(ids),
        "pairs": address.pairs_of(query),
        "back": address.tasks(query),
    }


def digest(ids: Sequence[str]) -> str:
    """Return what tells a set of tasks from another."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:24]


def _done(site: Site, request: Request, verb: str, form: Address) -> Response:
    """Do it, and lead to the page that shows what comes of it."""
    deed, reason = DEEDS[verb], form.one("reason")[:REASON_MOST]
    if deed.states:
        meant = _set(site, deed, form)
        if not meant["ids"] or meant["digest"] != form.one("set"):
            return _page(site, request, confirm(site, verb, form, changed=True))
        asked, refused = deeds.for_tasks(site.client, verb, meant["ids"], reason)
        if refused:
            values = {"verb": verb, "deed": deed, "asked": asked, "refused": refused[:FIRST], "left": len(refused)}
            return _page(site, request, Shown("act_done", deed.title, values))
        if meant["single"]:
            return _to(address.link(address.task(meant["single"]), {"done": f"{verb}:1"}))
        return _to(address.tasks(address.query_of(form), done=f"{verb}:{len(asked)}"))
    return _to(deeds.for_one(site.client, verb, form, reason))


def _to(where: str) -> Response:
    return RedirectResponse(where, 303)


def told(done: str) -> str:
    """Return what was requested, in words: `done` as our own redirects say it; '' for anything else."""
    verb, _, number = done.partition(":")
    if verb not in DEEDS or not number.isdecimal() or not number.isascii() or len(number) > 9:
        return ""
    of = f" of {amount(int(number), 'task')}" if DEEDS[verb].states else ""
    return f"Requested: {verb}{of}. The leader acts on it."
