"""The forms that cancel, retry, hold, release, answer, pause, resume and drain.

Each is a page that says what will happen, with a form that does it. For many tasks that page is a preview: how many,
in which states, the first ids. A name says little: a task may have been replaced by another of the same id, or may
have started meanwhile. So a form carries a digest of what its page showed, and all of it is read anew before anything
is requested; if any of it has changed, nothing is requested, and the page is shown again.

Law: these routes are there only where actions are allowed. A GET changes nothing. Of a question, the files are read
each time, and never a copy in memory. Every request carries who asked, and that it came from here. The leader judges
each request again.

Touches: the clock, the environment.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from spoold.client.in_task import adopt_task
from spoold.client.read import preconditions, questions, selecting
from spoold.client.spool_client import SpoolClient
from spoold.client.view import Card
from spoold.faces.web import page_address
from spoold.faces.web.page_address import Address
from spoold.faces.web.page_cache import copy_of
from spoold.faces.web.security import BODY_MOST
from spoold.faces.web.site import Shown, Site, failed, render, respond
from spoold.pictures import task_description
from spoold.protocol import codec
from spoold.protocol.amount import amount
from spoold.protocol.approval import may_answer
from spoold.protocol.errors import BadFile, NotFound, SpoolError, Unavailable
from spoold.protocol.lifecycle import State
from spoold.protocol.names import is_id, key, parse_task
from spoold.protocol.request import Verb

BODY_S = 10.0
FIRST = 10
REASON_MOST = 500
# What answers a question.
ASKED = ("approve", "reject")
# So long (s) the next page says what was requested; the key is of this process.
NOTE_S = 600
_KEY = secrets.token_bytes(32)


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
    "hold": Deed(
        "Hold a task",
        "It does not start until it is released. One that runs goes on, and its next attempt is held.",
        "Hold",
        ("waiting", "ready", "claimed"),
    ),
    "release": Deed("Release a task", "It may start again.", "Release", ("waiting", "claimed")),
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
        return _page(site, request, confirm(site, verb, page_address.read(request.url.query)))

    return answer


def _doing(site: Site) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        verb = _verb(request)
        form = page_address.read(await _body(request))
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
    """Return the page that says what will happen. changed: it is other than what was shown before."""
    deed = DEEDS[verb]
    values: dict[str, Any] = {
        "verb": verb,
        "deed": deed,
        "changed": changed,
        "asked": asked,
        "reason": asked.one("reason"),
    }
    if deed.states:
        return Shown("act_tasks", deed.title, {**values, **_set(site, verb, asked)}, status=409 if changed else 200)
    question = None
    if verb in ASKED:
        try:
            question = read_question(site.client, verb, asked.one("id"), asked.one("question"))
        except (NotFound, Unavailable):
            raise
        except SpoolError as error:
            raise NotFound(str(error)) from error
    types = sorted(site.view.picture.types) if site.view.picture is not None else []
    shown = {**values, "question": question, "types": types}
    return Shown("act_one", deed.title, shown, status=409 if changed else 200)


def _set(site: Site, verb: str, asked: Address) -> dict[str, Any]:
    """The tasks that are meant, with their marks, how many of them it is for, and the digest of these."""
    deed = DEEDS[verb]
    can = (*deed.states, *deed.also)
    if asked.one("id"):
        located = find_one(site.client, asked.one("id"))
        mark = mark_of(located)
        marks = {located.id: mark} if mark.state in can else {}
        return {"single": located.id, "matches": 1, "states": {mark.state: 1}, **_marked(verb, marks), "pairs": []}
    query = page_address.query_of(asked)
    everything = not page_address.selects(query)
    if everything and asked.one("all") != "1":
        raise BadFile("the URL", "", "names no tasks.", "choose them in the list of tasks, and use its buttons.")
    wanted = [state for state in query.states if state in can]
    meant = replace(query, states=tuple(wanted or deed.states))
    ids = [] if query.states and not wanted else site.view.keys(meant)
    cards = ((task, site.view.card(task)) for task in ids)
    marks = {task: mark_of_card(card) for task, card in cards if card is not None}
    counts = Counter(mark.state for mark in marks.values())
    return {
        "single": "",
        "matches": site.view.find(query, limit=1).matches,
        "states": {state: counts[state] for state in can if counts[state]},
        **_marked(verb, marks),
        "pairs": [*page_address.pairs_of(query), *([("all", "1")] if everything else [])],
        "back": page_address.tasks(query),
    }


def _marked(verb: str, marks: dict[str, Mark]) -> dict[str, Any]:
    ids = list(marks)
    nameless = {task for task in ids[:FIRST] if not is_id(task)}
    found = {"ids": ids, "first": ids[:FIRST], "nameless": nameless, "marks": marks}
    return {**found, "digest": digest(verb, marks)}


def _done(site: Site, request: Request, verb: str, form: Address) -> Response:
    """Do it, and lead to the page that shows what comes of it."""
    deed, reason = DEEDS[verb], form.one("reason")[:REASON_MOST]
    if deed.states:
        meant = _set(site, verb, form)
        if not meant["ids"] or meant["digest"] != form.one("set"):
            return _page(site, request, confirm(site, verb, form, changed=True))
        asked, refused = for_tasks(site.client, verb, meant["marks"], reason)
        if refused:
            values = {"verb": verb, "deed": deed, "asked": asked, "refused": refused[:FIRST], "left": len(refused)}
            return _page(site, request, Shown("act_done", deed.title, values))
        if meant["single"]:
            return _to(page_address.link(page_address.task(meant["single"]), {"done": note(verb, 1)}))
        return _to(page_address.tasks(page_address.query_of(form), done=note(verb, len(asked))))
    if verb in ASKED:
        question = read_question(site.client, verb, form.one("id"), form.one("question"))
        if question.digest != form.one("seen"):
            return _page(site, request, confirm(site, verb, form, changed=True))
        answer(site.client, verb, question, form.one("answer"), reason)
        return _to(page_address.link(page_address.task(question.task), {"done": note(verb, 1)}))
    return _to(page_address.link(for_one(site.client, verb, form, reason), {"done": note(verb, 1)}))


def _to(where: str) -> Response:
    return RedirectResponse(where, 303)


def note(verb: str, number: int) -> str:
    """Return what says on the next page that this was requested of so many tasks; only this server can make it."""
    said = f"{verb}:{number}:{int(time.time())}"
    return f"{said}:{_signed(said)}"


def told(done: str) -> str:
    """Return what was requested, in words: `done` as `note` made it a while ago; '' for anything else."""
    said, _, signature = done.rpartition(":")
    if not hmac.compare_digest(signature.encode(errors="replace"), _signed(said).encode()):
        return ""
    verb, number, at = said.split(":")
    if abs(time.time() - int(at)) > NOTE_S:
        return ""
    of = f" of {amount(int(number), 'task')}" if DEEDS[verb].states else ""
    return f"Requested: {verb}{of}. The leader acts on it."


def _signed(said: str) -> str:
    return hmac.new(_KEY, said.encode(errors="replace"), hashlib.sha256).hexdigest()[:32]


# What an action posts: requests about tasks, types and workers.


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
    by = {
        "cancel": preconditions.refuses_cancel,
        "retry": preconditions.refuses_retry,
        "hold": questions.refuses_hold,
    }
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


# What the page of an action shows of tasks, and a digest of it: only what was shown is done.


# A task that moves on while it is read is looked for so often.
TRIES = 3
_ENDED = (State.COMPLETED.value, State.FAILED.value, State.SKIPPED.value)


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells a task, as it is now, from others of its id. order: of its token, '' where its name is not known;
    decider: who ended it, '' while it lives and where only the view was asked, which may know who reported the end.
    """

    state: str
    attempt: int
    order: str = ""
    decider: str = ""

    def fits(self, other: Mark) -> bool:
        """Whether both are of the same task in the same state; what one of them does not know fits any."""
        alike = all(
            mine == its or "" in (mine, its)
            for mine, its in ((self.order, other.order), (self.decider, other.decider))
        )
        return (self.state, self.attempt) == (other.state, other.attempt) and alike


def mark_of(located: selecting.Located) -> Mark:
    """Return the mark of a task that was looked for just now."""
    order = "" if located.name is None else located.name.order
    state = located.state.value
    return Mark(state, located.attempt, order, located.node if state in _ENDED else "")


def mark_of_card(card: Card) -> Mark:
    """Return the mark of a task, as the view knows it."""
    name = parse_task(card.file)
    return Mark(card.state, card.attempt, name.order if name is not None else "")


def find_one(client: SpoolClient, task: str) -> selecting.Located:
    """Return where a task is now, by its whole id. Errors: NotFound, Unavailable."""
    with client.reaching():
        found, wrong = selecting.find(client.store, [task])
    for error in wrong.values():
        raise error
    return found[0]


def digest(verb: str, marks: Mapping[str, Mark]) -> str:
    """Return what tells this action on these tasks, as they are, from any other."""
    return _digest([verb, *([task, *_fields(mark)] for task, mark in sorted(marks.items()))])


def _fields(mark: Mark) -> list[Any]:
    return [mark.state, mark.attempt, mark.order, mark.decider]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Asking:
    """A question that stands, and the task that asks it. name: of the question of a task that runs, else ''.

    order: of the token that waits for an approval, else ''; does: all that the task says, whole;
    file: the SHA-256 of its file; digest: of the action and all of this.
    """

    task: str
    mark: Mark
    ask: str
    choices: tuple[str, ...]
    name: str
    order: str
    by: str
    at: str
    does: tuple[task_description.Part, ...]
    file: str
    digest: str


def read_question(client: SpoolClient, verb: str, task: str, wanted: str) -> Asking:
    """Return the question of a task as it stands now. wanted: its name, '' where the task asks one.

    Errors: NotFound; SpoolError where nothing is asked; Unavailable.
    """
    for _ in range(TRIES):
        located = find_one(client, task)
        if located.state is State.PENDING:
            raise NotFound(f"Task {task} is not admitted yet. Wait a moment, and try again.")
        with client.reaching():
            asked = questions.question_of(client.store, located, wanted)
            open_ones = questions.list_questions(client.store)
            try:
                data = client.store.fs.read(located.path)
            except FileNotFoundError:
                continue  # it has just moved on
        standing = [one for one in open_ones if key(one.task) == key(located.id) and _is_of(one, asked.about)]
        if not standing:
            raise NotFound(f"Task {task} asks nothing now.")
        mark, file = mark_of(located), hashlib.sha256(data).hexdigest()
        said = [[one.ask, one.choices, one.at, one.until, one.attempt, one.question, one.by] for one in standing]
        whole = [verb, located.id, *_fields(mark), asked.ask, asked.choices, asked.about, asked.order, said, file]
        return Asking(
            task=located.id,
            mark=mark,
            ask=asked.ask,
            choices=asked.choices,
            name=asked.about,
            order=asked.order,
            by=standing[0].by,
            at=standing[0].at,
            does=_does(data, located.path),
            file=file,
            digest=_digest(whole),
        )
    raise SpoolError(f"task {task} moves on all the time. Wait a moment, and try again.")


def _is_of(one: questions.Question, about: str) -> bool:
    return one.question == about if about else one.attempt is None


def _does(data: bytes, path: str) -> tuple[task_description.Part, ...]:
    try:
        return task_description.parts_of(codec.load_object(data, path), path)
    except BadFile:
        return ()
