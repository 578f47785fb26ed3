"""What a person may do: each action as a proposal that says what will happen, and what runs after a yes.

Law: nothing is done here; `run` of a proposal posts requests through the client, in a thread. The first option is
always to do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.faces.top.source import Source
from spoold.faces.top.text_layout import NODE, QUESTION, TASK, TYPE, Behind
from spoold.pictures import task_description
from spoold.protocol import codec
from spoold.protocol.amount import amount, some
from spoold.protocol.errors import SpoolError

REASON = "asked for in spool top"
NO = "no"


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something that a person is asked about. options: what can be answered beside no, each a label and a value.

    runs: what a task runs that is to start by it.

    asks: what is to be typed, '' for nothing; must: whether it has to be. run: does it; gets the value of the option
    and what was typed.
    """

    title: str
    says: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    run: Callable[[str, str], object]
    done: str
    asks: str = ""
    must: bool = False
    runs: tuple[task_description.Part, ...] = ()


_EFFECTS = {
    "cancel": ("Cancel", "Running or not, it ends. What was done so far stays."),
    "retry": ("Retry", "A task that failed runs again, with a fresh budget of retries."),
    "hold": ("Hold", "It does not start before it is released. One that runs goes on, and its next attempt is held."),
    "release": ("Release", "It goes on as if it had not been held."),
}


def propose(source: Source, action: str, behind: Sequence[Behind]) -> Proposal:
    """Return what the action would do with these. Errors: SpoolError where it can do nothing with them."""
    if action in _EFFECTS:
        return _for_tasks(source, action, [one.id for one in behind if one.kind in (TASK, QUESTION)])
    if action in ("approve", "reject"):
        return _answer(source, action, _one(action, [one for one in behind if one.kind in (TASK, QUESTION)]))
    if action in ("pause", "resume"):
        return _pause(source, action, [one.id for one in behind if one.kind == TYPE])
    return _drain(source, action, [one.id for one in behind if one.kind == NODE])


def _for_tasks(source: Source, action: str, ids: list[str]) -> Proposal:
    if not ids:
        raise SpoolError(f"`{action}` is about tasks: put the cursor on one, or mark some.")
    word, effect = _EFFECTS[action]
    spool = source.spool
    calls: dict[str, Callable[..., object]] = {
        "cancel": spool.cancel,
        "retry": spool.retry,
        "hold": spool.hold,
        "release": spool.release_held,
    }
    tasks = amount(len(ids), "task")
    return Proposal(
        f"{word} {tasks}?",
        (some(ids, 8), effect if len(ids) == 1 else f"Each of them: {effect[0].lower()}{effect[1:]}"),
        ((f"yes, {action} {tasks}", "yes"),),
        lambda _value, _typed: calls[action](ids, reason=REASON),
        f"{action} of {tasks} is asked for; the leader does it",
    )


def _one(action: str, behind: Sequence[Behind]) -> Behind:
    if len(behind) != 1:
        raise SpoolError(f"`{action}` is about one task: put the cursor on it, without marks.")
    return behind[0]


def _answer(source: Source, action: str, behind: Behind) -> Proposal:
    """Return the proposal to answer the question of a task."""
    name, ask = "", ""
    choices: tuple[str, ...] = ()
    if behind.kind == QUESTION:
        name, ask, *rest = behind.more
        choices = tuple(rest)
    else:
        asked = [one for one in source.view.questions() if one.task == behind.id]
        if len(asked) > 1:
            raise SpoolError(f"task {behind.id} asks {len(asked)} questions: choose one in the view `asks`.")
        if asked:
            ask, choices = asked[0].ask, asked[0].choices
            name = asked[0].question if asked[0].attempt is not None else ""
    says = (behind.id, f"It asks: {ask}" if ask else "It waits for its approval, if it has one.")
    spool = source.spool
    if action == "reject":
        return Proposal(
            f"Reject {behind.id}?",
            (*says, "A task that waits for its approval fails as REJECTED; one that runs is told so."),
            ((f"yes, reject {behind.id}", "yes"),),
            lambda _value, typed: spool.reject(behind.id, reason=typed, question=name),
            f"{behind.id} is rejected",
            asks="reason",
            must=True,
        )

    # A question of a task that runs lets nothing start that a person has not seen.
    shown = None if name else spool.shown(behind.id)
    seen, runs = (shown.seen, shown.parts) if shown is not None and shown.asks else ("", ())

    def approve(value: str, typed: str) -> object:
        said = value if choices else typed
        answer = json_of(said) if said else None
        return spool.approve(behind.id, answer, said=said or None, question=name, reason=REASON, seen=seen)

    options = tuple((f"answer: {one}", one) for one in choices) or ((f"yes, approve {behind.id}", ""),)
    asks = "" if choices else "answer, if it needs one"
    done = f"{behind.id} has its answer"
    return Proposal(f"Answer {behind.id}?", says, options, approve, done, asks=asks, runs=runs)


def json_of(text: str) -> Any:
    """Return the JSON value of what was typed; what is no JSON is a text."""
    return codec.value_of(text)


def _pause(source: Source, action: str, types: list[str]) -> Proposal:
    if len(types) > 1:
        raise SpoolError(f"`{action}` is about one type, or everything: take the marks back.")
    kind = types[0] if types else ""
    what, spool = f"tasks of type {kind}" if kind else "everything", source.spool
    effect = "No more of these start. Those that run go on." if action == "pause" else "They may start again."
    if not kind:
        lifted = "Every pause is taken back, and a halt."
        effect = "Nothing more starts. What runs goes on." if action == "pause" else lifted
    call = spool.pause if action == "pause" else spool.resume
    return Proposal(
        f"{action.capitalize()} {what}?",
        (effect,),
        ((f"yes, {action} {what}", "yes"),),
        lambda _value, _typed: call(kind or None, reason=REASON),
        f"{action} of {what} is asked for; the leader does it",
    )


def _drain(source: Source, action: str, nodes: list[str]) -> Proposal:
    if not nodes:
        raise SpoolError(f"`{action}` is about nodes: put the cursor on one in the view `nodes`.")
    spool, what = source.spool, amount(len(nodes), "node")
    call = spool.drain if action == "drain" else spool.undrain
    effect = "finishes its tasks and claims no more." if action == "drain" else "claims tasks again."

    def run(_value: str, _typed: str) -> None:
        for node in nodes:
            call(node, reason=REASON)

    return Proposal(
        f"{action.capitalize()} {what}?",
        (some(nodes, 8), f"Each {effect}"),
        ((f"yes, {action} {what}", "yes"),),
        run,
        f"{action} of {what} is asked for",
    )
