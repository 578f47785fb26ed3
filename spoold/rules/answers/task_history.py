"""The history of one task: each event of it as a sentence, from its results what the journals have lost, and what its
agent was told.

Law: journals are for people, and no state is derived from them. The attempts are told in their order, and within one
its moves in theirs, whatever the clocks of the writers say. An attempt whose end stands in no journal is told from
its result. A line is the word of the node whose journal it is in: one that names another writer is told with that
name, and an end that all results of the attempt contradict with that doubt. Of other lines nobody can know whether
they are true: a node that lost its claim has no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.agent_messages import JUDGED, Message, names_in, told_in, untold_in
from spoold.protocol.amount import amount, precise, some
from spoold.protocol.event import Event
from spoold.protocol.names import key
from spoold.protocol.result import Result, Status, message_of
from spoold.rules.attempts.reported_figures import CHANGED
from spoold.rules.gates.standing_requests import Requested, tells

# How an attempt ends, and ENDED for one of which only its result tells.
ENDS = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "SKIPPED": "skipped",
    "RETURNED": "attempt {attempt} ended without success",
    "ENDED": "attempt {attempt} ended without success",
}
# The order of the moves within one attempt. What is not here stands where its time puts it.
_PHASES = {"ADMITTED": 0, "RETRIED": 0, "REDONE": 0, "WAITING": 0, "READY": 1, "CLAIMED": 2, "STARTED": 3}
_PHASES |= dict.fromkeys(ENDS, 4) | {"ARCHIVED": 5}
# A sentence for each event, and the details that follow it, each with the words before it.
WORDS: dict[str, tuple[str, dict[str, str]]] = {
    "ADMITTED": ("admitted", {"drop": " from "}),
    "ANSWERED": ("answered", {"by": " by ", "answer": ": ", "reason": "; "}),
    "APPROVAL_ASKED": ("people are asked for an approval", {"question": ": "}),
    "APPROVAL_EXPIRED": ("nobody has answered in time", {}),
    "APPROVED": ("approved", {"by": " by ", "reason": ": "}),
    "ARCHIVED": ("archived", {}),
    "CLAIMED": ("claimed by {writer}", {}),
    "DUPLICATE": ("submitted again with the same content, which changes nothing", {"drop": ": "}),
    "FAULT": ("spoold itself failed on {writer}", {"input": " in the handling of ", "error": ": "}),
    "FENCED": ("taken away from {writer}: what attempt {attempt} did there does not count", {}),
    "FILES_OVERLAP": ("changed files that another task changed, too", {}),
    "FROZEN": ("stands still, since {writer} has not beaten for as long as its lease", {}),
    "HELD": (
        "taken back from the workers: a gate has changed, or more urgent work has come",
        {"for": ": task "},
    ),
    "IGNORED": ("a request about it was ignored", {"why": ": "}),
    "RANKED": ("given another priority", {"priority": ": "}),
    "READY": ("ready for a worker", {"type": " as ", "instead_of": ": a limit is closed for "}),
    "REDONE": ("sent back by `spool reject --redo`", {}),
    "REJECTED": ("a second task with this id was set aside", {"problem": ": "}),
    "RESUMED": ("goes on on {writer}", {}),
    "RETRIED": ("taken up again by `spool retry`", {}),
    "STARTED": ("started on {writer}", {"instead_of": " as another type than "}),
    "TOLD": ("its agent was given a message", {"by": " of ", "tell": ": "}),
    "UNITS_BACK": ("has the units back that it had lent", {}),
    "UNITS_LENT": ("lends its units while it waits", {}),
    "UNREAD": ("cannot be read", {"problem": ": "}),
    "VANISHED": ("gone: its file is nowhere", {"where": "; it was "}),
    "WAITING": ("waits to be tried again", {}),
}


@dataclass(frozen=True, slots=True)
class Chapter:
    """One thing that happened. at: RFC 3339, by the clock of `writer`; attempt: None where it concerns none.

    text: a sentence for people; source: `journal`, or `result` where only that tells of it.
    """

    at: str
    writer: str
    event: str
    attempt: int | None
    text: str
    source: str = "journal"
    detail: dict[str, Any] = field(default_factory=dict)


def tell(task_id: str, events: Iterable[Event], attempts: Iterable[Result]) -> list[Chapter]:
    """Return the story of a task. events: of any tasks; attempts: results of this one."""
    mine = {_same(event): event for event in sorted(events, key=_clock, reverse=True) if _about(event, task_id)}
    results = list(attempts)
    wrong = {_clock(event) for event in mine.values() if _contradicted(event, results)}
    told = [_chapter(event, wrong=_clock(event) in wrong) for event in reversed(mine.values())]
    ended = {event.attempt for event in mine.values() if event.event in ENDS and _clock(event) not in wrong}
    told += [_from_result(result) for result in results if result.attempt not in ended]
    return _in_order(sorted(told, key=lambda chapter: chapter.at))


def _about(event: Event, task_id: str) -> bool:
    return event.task is not None and key(event.task) == key(task_id)


def _contradicted(event: Event, results: list[Result]) -> bool:
    """Whether a line tells of an end that no result of the attempt has, and another end that one has."""
    records = [result for result in results if result.attempt == event.attempt] if event.event in ENDS else []
    success = event.event == "COMPLETED"
    return bool(records) and all((result.status == Status.SUCCESS) is not success for result in records)


def _clock(event: Event) -> tuple[str, str, int]:
    return event.at, event.writer, event.seq


def _same(event: Event) -> tuple[object, ...]:
    """What makes two events one: each new leader notes a request that still stands again."""
    if event.event in ("ASKED", "APPROVED", "ANSWERED", "REDO"):
        return event.event, repr(event.detail)
    return _clock(event)


def _in_order(told: list[Chapter]) -> list[Chapter]:
    """Sort by attempt and phase, which no clock can confuse; all else comes after what came before it in time."""
    place = (0, 0)
    places = []
    for chapter in told:
        phase = _PHASES.get(chapter.event)
        if phase is not None and chapter.attempt is not None:
            place = (chapter.attempt, phase)
        places.append(place)
    return [told[number] for number in sorted(range(len(told)), key=places.__getitem__)]


def _chapter(event: Event, *, wrong: bool = False) -> Chapter:
    detail = dict(event.detail) if isinstance(event.detail, Mapping) else {}
    doubts = [f"the line names {event.misattributed} as its writer"] if event.misattributed else []
    doubts += [f"the result of attempt {event.attempt} says otherwise"] if wrong else []
    # The doubt comes first, since what follows it may be long, and is cut.
    text = ": ".join(filter(None, ("; ".join(doubts), _words(event, detail))))
    return Chapter(event.at, event.writer, event.event, event.attempt, text, detail=detail)


def _words(event: Event, detail: dict[str, Any]) -> str:
    if event.event in ENDS:
        took_s, worker = detail.get("duration_s"), detail.get("worker")
        said = f"worker {worker} died or was cut off" if worker else detail.get("message")
        return _end(event.event, event.attempt, took_s, _why(said, detail.get("code")))
    if event.event == "ASKED" and detail.get("request") == "tell":
        return f"its agent was told something{_more(detail, {'by': ' by ', 'tell': ': '})}"
    if event.event == "ASKED":
        return f"{detail.get('request', 'something')} was asked for{_more(detail, {'by': ' by ', 'reason': ': '})}"
    if event.event == CHANGED and isinstance(files := detail.get("files"), list):
        return f"changed {amount(len(files), 'file')}: {some(list(map(str, files)))}"
    if event.event in WORDS:
        words, more = WORDS[event.event]
        return words.format(writer=event.writer, attempt=event.attempt) + _more(detail, more)
    more = {name: f"{', ' if number else ': '}{name} " for number, name in enumerate(detail)}
    return event.event.lower().replace("_", " ") + _more(detail, more)


def _more(detail: dict[str, Any], words: dict[str, str]) -> str:
    return "".join(f"{before}{detail[name]}" for name, before in words.items() if detail.get(name) not in (None, ""))


def _end(event: str, attempt: int | None, took_s: object, why: str) -> str:
    took = f" after {precise(took_s)}" if isinstance(took_s, int | float) else ""
    return f"{ENDS[event].format(attempt=attempt)}{took}{why}"


def _why(said: object, code: object) -> str:
    return f": {said}{f' ({code})' if code else ''}" if said else f": {code}" if code else ""


def _from_result(result: Result) -> Chapter:
    event = "COMPLETED" if result.status == Status.SUCCESS else "ENDED"
    why = _why(message_of(result), result.error.code if result.error is not None else "")
    text = _end(event, result.attempt, result.duration_s, why)
    return Chapter(result.completed_at, result.worker_id, event, result.attempt, text, source="result")


# What the agent of a task was told: each message, and the attempts whose conversation has it.
# Law: a result says what its attempt has had. Of an attempt that runs its report of progress says it; of one that
# died without a result nobody knows, and the next attempt gets the message again.


@dataclass(frozen=True, slots=True)
class Told:
    """One message. name: of it; by: who told it; at: RFC 3339, by the sender's clock; attempts: those that were
    given it; none while none was. One that goes on in the session of an earlier attempt is not given it again."""

    name: str
    by: str
    at: str
    text: str
    attempts: tuple[int, ...] = ()


def when(progress: Any, *, runs: bool) -> str:
    """Return when the agent of a task that has not ended is given a new message. progress: the last report of the
    attempt that runs."""
    if runs and not (isinstance(progress, dict) and progress.get(JUDGED) is True):
        return "when its next turn begins"
    accepted = ", if its work, which is judged now, is not accepted" if runs else ""
    return f"with the prompt of its next attempt{accepted}"


def messages(
    standing: Sequence[Requested], results: Iterable[Result], running: int | None, progress: Any
) -> list[Told]:
    """Return what the agent of a task was told, the oldest first. running: the attempt that runs, None for none;
    progress: its last report.
    """
    known: dict[str, Message] = {}
    given: dict[str, dict[int, str]] = {}  # by message: attempt → session, '' for an unknown one
    for result in results:
        session = _session(result.output)
        for one in told_in(result.output):
            known[one.name] = one
            given.setdefault(one.name, {})[result.attempt] = session
        for one, was in untold_in(result.output):
            known.setdefault(one.name, one)
            if was:
                given.setdefault(one.name, {}).setdefault(result.attempt, "")
    for asked in tells(standing):
        known.setdefault(asked.unique, Message(asked.unique, asked.by, asked.at, asked.tell))
    for name in names_in(progress) if running is not None else ():
        given.setdefault(name, {}).setdefault(running or 0, _session(progress))
    found = sorted(known.values(), key=lambda one: one.name)
    return [Told(one.name, one.by, one.at, one.text, _first_of_each(given.get(one.name, {}))) for one in found]


def _first_of_each(given: Mapping[int, str]) -> tuple[int, ...]:
    """Return the attempts with which a session had a message first, of attempts with their sessions."""
    sessions = list(given.values())
    return tuple(
        attempt for at, (attempt, session) in enumerate(given.items()) if not session or session not in sessions[:at]
    )


def _session(said: Any) -> str:
    """Return the session that an output, or a report of progress, names; '' for none."""
    session = said.get("session") if isinstance(said, Mapping) else None
    return session if isinstance(session, str) else ""
