"""What an agent is told: the prompt of an attempt, the messages of people, and the note of the attempt before.

    attempt 1 of edit-1 by coder: not_accepted
    session: 0199-ab
    work: refs/spool/edit-1/1
    files: a.py, b.py
    done: I moved the parser into a file of its own.
    open:
    - make test: exit code 2

Such a handoff note is in the attempt's result, from which the next attempt has it in its prompt, and an entry of the
batch's context, for other agents and people.

Law: text that is filled in is never filled in again. A session that is resumed gets no second copy of the whole
prompt, since an agent would repeat its work.

A message goes into one turn of a conversation, and into the first turn of each new one, which knows nothing of what
was said in another. In a session that goes on, a message counts as said only after a turn that came to something: it
may be said again in a later attempt, and never twice in one.

A note has at most NOTE_MAX bytes. What a worker masks in an output is masked there, too, before any of it comes to
the share. A note that cannot be put stops nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.agents.configuration.redactor import Clean
from spoold.agents.process.ending import End
from spoold.agents.process.interfaces import Saved
from spoold.agents.process.transcript import Transcript
from spoold.client.context_and_steps import SharedContext
from spoold.client.spool_client import SpoolClient
from spoold.protocol import agent_messages
from spoold.protocol.agent_fields import FILLED, NAMED
from spoold.protocol.agent_messages import BY_MAX, Message
from spoold.protocol.amount import some
from spoold.protocol.context_entry import ENTRIES_MAX, NAME_MAX
from spoold.protocol.errors import SpoolError

_INDEX = re.compile(r"[0-9]{1,9}")
_STEP = re.compile(r"\.([\w-]+)|\[([0-9]+)\]")
REASONS_MAX, NOTE_MAX = 16 << 10, 4 << 10
# So many names of what an output has are told, and so many characters of each.
NAMED_MAX, NAME_CHARS = 10, 60
# What a note has of the reasons comes last, and after this line.
OPEN = "\nopen:\n"


class Missing(Exception):
    """The prompt names a result that is not there; the words say which, and what there is."""


@dataclass(frozen=True, slots=True)
class Before:
    """The attempt before this one, as its record says. outcome: of an agent, '' for another end; error: in words;
    used: by its session since its beginning, as the record has it; note: that it left, without its reasons.
    """

    attempt: int
    outcome: str = ""
    error: str = ""
    session: str = ""
    reasons: tuple[str, ...] = ()
    text: str = ""
    used: Any = None
    note: str = ""


def filled(template: str, result_of: Callable[[str], Any], known: Sequence[str]) -> str:
    """Return the prompt with the outputs of earlier tasks in it. result_of: the record of a task, None for none;
    known: the ids of those that there are. Errors: Missing.
    """

    def value(found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:-1]
        record = result_of(found[2])
        if record is None:
            there = ", ".join(known) or "none"
            raise Missing(f"the prompt wants {found[0]}, and there is no result of {found[2]} (there are: {there})")
        output = record.get("output") if isinstance(record, Mapping) else None
        if found[3]:
            output = _inside(output, found[0], found[3])
        elif isinstance(output, Mapping) and "outcome" in output and isinstance(output.get("text"), str):
            output = output["text"]  # of an agent: its words
        return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)

    return FILLED.sub(value, template)


def _inside(value: Any, named: str, path: str) -> Any:
    """Return what a path leads to in an output. named: the whole field of the prompt. Errors: Missing."""
    at = "output"
    for step in _STEP.finditer(path):
        word = step[1] or step[2]
        if isinstance(value, Mapping) and word in value:
            value = value[word]
        elif isinstance(value, list) and _INDEX.fullmatch(word) and int(word) < len(value):
            value = value[int(word)]
        else:
            raise Missing(f"the prompt wants {named}, and {at} has no {word}: {_holds(value)}")
        at += step[0]
    return value


def _holds(value: Any) -> str:
    """Return what is in a value, for a person who has named something that is not."""
    if isinstance(value, Mapping):
        return f"it has {some([str(name)[:NAME_CHARS] for name in value], NAMED_MAX)}" if value else "it is empty"
    if isinstance(value, list):
        return f"it is a list of {len(value):,}, counted from 0"
    return "it is a text" if isinstance(value, str) else f"it is {json.dumps(value)}"


def literal(text: str) -> str:
    """Return a prompt that becomes this text, whatever it holds."""
    return re.sub(NAMED, r"{\g<0>}", text)


def whole(prompt: str, before: Before | None, feedback: str) -> str:
    """Return the prompt of a new session. feedback: the reason for which people sent the work back, '' for none."""
    parts = [prompt]
    if before is not None and (why := _why(before)):
        parts.append(f"This is another attempt. Attempt {before.attempt} did not do, for these reasons:\n\n{why}")
    if before is not None and before.note:
        parts.append(f"The note that attempt {before.attempt} left:\n\n{before.note}")
    if feedback:
        parts.append(_sent_back(feedback))
    return "\n\n".join(parts)


def going_on(before: Before, feedback: str) -> str:
    """Return the prompt of a session that is resumed: only what is new."""
    why = _why(before)
    parts = ["Continue with the task. Your last turn was interrupted; go on from where you stopped."]
    if before.outcome in ("not_accepted", "done", "no_change") or before.reasons:
        parts = ["Continue with the task: it is not done yet. What you have done so far is still there."]
    if why:
        parts.append(f"The reasons:\n\n{why}")
    if feedback:
        parts.append(_sent_back(feedback))
    return "\n\n".join(parts)


def answered(question: str, answer: str, by: str) -> str:
    """Return the prompt that brings an answer."""
    return f"You asked: {question}\n\nThe answer of {by or 'a person'}: {answer}\n\nContinue with the task."


def with_messages(prompt: str, messages: Sequence[Message]) -> str:
    """Return the prompt with what people tell the agent behind it."""
    return "\n\n".join([prompt, *map(_message, messages)])


def told_messages(messages: Sequence[Message]) -> str:
    """Return the prompt that brings messages to an agent at the end of a turn."""
    return "\n\n".join([*map(_message, messages), "Take that into account, and continue with the task."])


def before_of(record: Any) -> Before | None:
    """Return the attempt before, from its record; None where that cannot be read."""
    if not isinstance(record, Mapping):
        return None
    output, error = record.get("output"), record.get("error")
    said: Mapping[str, Any] = output if isinstance(output, Mapping) else {}
    reasons = said.get("reasons")
    return Before(
        attempt=record["attempt"] if isinstance(record.get("attempt"), int) else 0,
        outcome=str(said.get("outcome") or ""),
        error=str(error.get("message") or error.get("code") or "") if isinstance(error, Mapping) else "",
        session=str(said.get("session") or ""),
        reasons=tuple(map(str, reasons)) if isinstance(reasons, list) else (),
        text=str(said.get("text") or ""),
        used=said.get("session_usage", said.get("usage")),
        note=without_open(str(said.get("handoff") or ""))[:NOTE_MAX],
    )


def without_open(note: str) -> str:
    """Return a note without its reasons, which a prompt has in full."""
    return note.partition(OPEN)[0]


def _why(before: Before) -> str:
    reasons = before.reasons or ((before.error,) if before.error else ())
    return "\n".join(f"- {reason}" for reason in reasons)[:REASONS_MAX]


def _message(message: Message) -> str:
    by = " ".join(message.by.split())[:BY_MAX]
    return f"A message from {by or 'a person'}:\n\n{message.text.strip()}"


def _sent_back(feedback: str) -> str:
    return f"A person has looked at the work and sent it back:\n\n{feedback}"


# What people tell an agent while its task waits or runs: which of it goes into the next turn, and what it has had.


class Inbox:
    """The messages of one attempt."""

    def __init__(self, read: Callable[[], bytes], before: Any) -> None:
        """read: the file of messages as it is now; before: the output of the attempt before this one."""
        self._read = read
        self._before = {one.name: one for one in agent_messages.told_in(before)}
        self._known = dict(self._before)
        self._given = dict[str, Message]()
        self._had = dict[str, Message]()

    def go_on(self) -> None:
        """The session of the attempt before goes on, which has its messages."""
        self._had, self._given = dict(self._before), dict(self._before)

    def lost(self) -> None:
        """That session is gone: all messages are said again, in the prompt of a new one."""
        self._had = {}

    @property
    def news(self) -> bool:
        """Whether something was given that the attempt before had not."""
        return not self._given.keys() <= self._before.keys()

    @property
    def known(self) -> list[Message]:
        """All messages, the oldest first."""
        return list(self._known.values())

    def next(self) -> list[Message]:
        """Return those that were not given yet, the oldest first: they are given with the next turn."""
        self._look()
        new = [one for name, one in self._known.items() if name not in self._given]
        self._given |= {one.name: one for one in new}
        return new

    def _look(self) -> None:
        self._known |= {one.name: one for one in agent_messages.lines_of(self._read()) if one.name not in self._known}

    def over(self, *, well: bool) -> None:
        """A turn is over. well: the agent has said something, so it has had what it was given with."""
        if well:
            self._had |= self._given

    @property
    def given(self) -> dict[str, list[str]]:
        """The field of a report of progress: what this attempt was given so far; nothing for nothing."""
        return {agent_messages.FIELD: list(self._given)} if self._given else {}

    @property
    def had(self) -> Mapping[str, Any]:
        """The field of the result: the messages that its conversation has; nothing for none."""
        return {agent_messages.FIELD: [one.plain() for one in self._had.values()]} if self._had else {}

    @property
    def untold(self) -> Mapping[str, Any]:
        """The field of the result: the messages that its conversation may not have; nothing for none."""
        self._look()
        left = [one for name, one in self._known.items() if name not in self._had]
        said = [{**one.plain(), agent_messages.GIVEN: one.name in self._given} for one in left]
        return {agent_messages.UNTOLD: said} if said else {}


# The handoff note: what an attempt leaves for the next one, in a few lines.


# How much (characters) of its words, of one reason and of one path; and how many reasons and paths.
_WORDS, _REASON, _PATH, _REASONS, _PATHS = 1200, 300, 120, 5, 20
# A batch whose tasks are tried again and again keeps room for what its tasks share by themselves.
_ROOM = ENTRIES_MAX // 2


def note(attempt: str, task_id: str, agent: str, end: End, heard: Transcript, saved: Saved, clean: Clean) -> str:
    """Return the note of an attempt. attempt: its number; clean: masks a text, before any of it is cut off."""
    paths = [clean(one)[-_PATH:] for one in saved.changed[:_PATHS]]
    more = len(saved.changed) - len(paths)
    lines = [f"attempt {attempt} of {task_id} by {agent}: {end.outcome}"]
    lines += [f"session: {clean(heard.session)[:200]}"] if heard.session else []
    lines += [f"work: {saved.place['ref']}"] if saved.place.get("ref") else []
    lines += [f"files: {', '.join(paths)}{f' and {more} more' if more > 0 else ''}"] if paths else []
    words = _one_line(clean(heard.text))
    lines += [f"done: {'…' if len(words) > _WORDS else ''}{words[-_WORDS:]}"] if words else []
    text = "\n".join(lines)
    if end.reasons:
        text += OPEN + "\n".join(f"- {_one_line(clean(one))[:_REASON]}" for one in end.reasons[:_REASONS])
    return text.encode("utf-8", "replace")[:NOTE_MAX].decode("utf-8", "ignore")


def leaves_one(end: End, heard: Transcript, saved: Saved) -> bool:
    """Whether another attempt may follow, for which there is something to tell."""
    if end.outcome in ("done", "no_change", "refused"):
        return False
    return end.outcome != "later" or bool(heard.text.strip() or saved.changed)


def name_of(task_id: str) -> str:
    """Return the name of a task's entry; a long id is cut, with a hash in place of its end."""
    name, digest = f"handoff-{task_id}", hashlib.blake2b(task_id.lower().encode(), digest_size=5).hexdigest()
    return name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 11]}-{digest}"


def put(root: str, batch: str, task_id: str, text: str) -> str:
    """Put a note into the context of a batch; returns why it is not there, '' where it is."""
    try:
        with SpoolClient(root) as spool:
            shared = SharedContext(spool, batch)
            if len(shared.log()) >= _ROOM:
                return f"its handoff note is only in its result: batch {batch} has {_ROOM} entries"
            shared.put(name_of(task_id), text.encode())
    except (SpoolError, OSError) as error:
        return f"its handoff note is only in its result: {error}"
    return ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
