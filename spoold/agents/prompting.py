"""The prompt of an attempt: what the task says, the results that it comes after, and why earlier attempts did not do.

Law: pure. Text that is filled in is never filled in again. A session that is resumed gets no second copy of the whole
prompt, since an agent would repeat its work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.protocol.agent_fields import FILLED, NAMED
from spoold.protocol.agent_messages import BY_MAX, Message
from spoold.protocol.amount import some

_INDEX = re.compile(r"[0-9]{1,9}")
_STEP = re.compile(r"\.([\w-]+)|\[([0-9]+)\]")
REASONS_MAX, NOTE_MAX = 16 << 10, 4 << 10
# So many names of what an output has are told, and so many characters of each.
NAMED_MAX, NAME_MAX = 10, 60
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
        return f"it has {some([str(name)[:NAME_MAX] for name in value], NAMED_MAX)}" if value else "it is empty"
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


def told(messages: Sequence[Message]) -> str:
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
