"""A question of an agent becomes one for people, as `spool ask` puts it; the slot is lent while it waits.

Law: a question that nobody can be asked, or nobody answers in time, blocks the task, with the question as evidence.
What a worker masks in an output is masked in a question, too.

Touches: the clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spoold.agents.adapters.adapter import Trouble
from spoold.protocol.errors import SpoolError, WaitTimeout


@dataclass(frozen=True, slots=True)
class Told:
    """What a person answered, and who."""

    text: str
    by: str


class _Stopped(BaseException):
    """No Exception: after one the slot would be waited for first."""


def ask(
    root: str,
    asked: Mapping[str, Any],
    within_s: float,
    stopped: Callable[[], bool],
    clean: Callable[[str], str] = str,
) -> Told | Trouble:
    """Return the answer to a question. root: the spool; asked: `text`, and `choices` if it has some; within_s: how
    long it may wait, 0 for not at all; stopped: whether the attempt has to end; clean: masks a text.
    """
    text = clean(str(asked.get("text") or "").strip())[:4000] or "it asked something, and did not say what"
    if not root or not within_s:
        return Trouble("refusal", f"it asked: {text}")

    def pause(seconds: float) -> None:
        if stopped():
            raise _Stopped
        time.sleep(seconds)

    choices = asked.get("choices")
    words = tuple(dict.fromkeys(clean(str(one)) for one in choices)) if isinstance(choices, list) else ()
    try:
        from spoold.client.spool_client import SpoolClient

        with SpoolClient(root) as spool:
            question = spool.ask(text, words, expires_s=within_s)
            found = spool.answer_to(question, within_s, sleep=pause)
    except WaitTimeout:
        return Trouble("refusal", f"nobody answered within {within_s:g} s: {text}")
    except SpoolError as error:
        return Trouble("refusal", f"it asked: {text}; nobody could be asked: {error}")
    except _Stopped:
        return Trouble("transient", "it was stopped while it waited for an answer")
    if found.rejected:
        return Trouble("refusal", f"it asked: {text}; {found.by or 'a person'} rejected that: {found.reason}")
    said = found.answer if isinstance(found.answer, str) else json.dumps(found.answer, ensure_ascii=False)
    return Told(said, found.by)
