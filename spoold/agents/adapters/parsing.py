"""What all adapters read with: the JSON objects in a line of output, and what is remembered of one attempt.

Command lines print warnings before, after and between their events. An adapter remembers the session of an attempt,
its errors, and whether anything came of it.

Law: pure. What is no JSON is passed over, also when a line ends in the middle of an object. A program that ends with
0 has not always done something: its tools may have been refused, or its model. Words about a session that is gone or
torn mean that only where one was resumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from spoold.agents.adapters import error_classes
from spoold.agents.adapters.adapter import Event, Fault, Trouble
from spoold.protocol import codec
from spoold.protocol.amount import is_amount

# A line of a log that is older than this is of the attempt before, which had the same home.
STALE_S = 120.0
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Memory:
    """lost: how the program says that a session is not there, or cannot be read; resumed: whether it was to go on
    with one. now: epoch s, of the last line; spoke: the agent said something. A tool that worked after a refused one
    makes good for it: the agent found another way."""

    def __init__(self, lost: str = r"(?!)") -> None:
        self._lost = re.compile(lost, re.IGNORECASE)
        self.resumed = False
        self.now = 0.0
        self.spoke = False
        self._acted = False
        self._refusal: Trouble | None = None
        self._error: Trouble | None = None
        self._session = ""

    def session(self, value: object) -> list[Event]:
        """Return the event of a session that was not yet told."""
        if not isinstance(value, str) or value in ("", self._session):
            return []
        self._session = value
        return [Event(session=value)]

    def first(self, value: object) -> list[Event]:
        """Return the event of a session, if none was told: a later one may be that of a helper of the agent."""
        return [] if self._session else self.session(value)

    def says(self, text: str) -> list[Event]:
        """Return the event of the agent's words."""
        self.spoke = self.spoke or bool(text.strip())
        return [Event(text=text)] if text else []

    def worked(self) -> None:
        """A tool was called, and did what it was called for."""
        self._acted, self._refusal = True, None

    def refused(self, text: str) -> list[Event]:
        """Return the event of a tool's error, if it is a refused permission; others are the agent's business."""
        self._acted = True
        if error_classes.classify(text) != "permission":
            return []
        self._refusal = Trouble("permission", " ".join(text.split())[: error_classes.MESSAGE_LIMIT], final=False)
        return [Event(trouble=self._refusal)]

    def denied(self, tool: str) -> list[Event]:
        """Return the event of a tool that was refused, as the end says once more; [] if another tool worked since."""
        return [] if self._refusal or self._acted else self.refused(f"permission denied: {tool}")

    def erred(self, trouble: Trouble) -> list[Event]:
        """Return the event of an error. A final one is also what the end says, unless the agent is done after it."""
        if (
            self.resumed
            and trouble.final
            and (self._lost.search(trouble.message) or error_classes.torn(trouble.message))
        ):
            trouble = replace(trouble, fault="session", until=None)
        self._error = trouble if trouble.final else self._error
        return [Event(trouble=trouble)]

    def done(self) -> list[Event]:
        """Return the event of an agent that says it ended."""
        self._error = None
        return [Event(done=True)]

    def ended(self, code: int, errors: str, codes: dict[int, Fault] | None = None) -> Trouble | None:
        """Return what an end means. codes: exit codes with a meaning of their own."""
        if self._error is not None:
            return self._error
        if self.resumed and not self.spoke and not self._acted:
            told = [line for line in errors.splitlines() if self._lost.search(line)]
            if told:
                return Trouble("session", " ".join(_COLOURS.sub("", told[0]).split())[: error_classes.MESSAGE_LIMIT])
        if code == 0:
            if self._refusal is not None:
                return Trouble("permission", f"it ended with 0, but was refused: {self._refusal.message}")
            if not self.spoke and not self._acted:
                return Trouble("refusal", "it ended with 0, but the model said nothing and did nothing")
            return None
        text = _last(errors) or f"it ended with exit code {code} and said nothing"
        found = error_classes.trouble(text, self.now)
        fault = (codes or {}).get(code)
        return Trouble(fault, found.message) if fault and fault != found.fault else found


def _last(errors: str) -> str:
    """Return the last lines of stderr that say something: the places in a stack are left out."""
    kept = [line.strip() for line in errors.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return " ".join(kept[-5:])[-error_classes.MESSAGE_LIMIT :]


# The JSON objects in a line of output: command lines print warnings before, after and between their events.


# How often an object's beginning is looked for in one line: a line of a megabyte of braces must not take minutes.
TRIES = 64


def objects(line: str) -> Iterator[dict[str, object]]:
    """Return the objects of a line, in order; those within another are part of it."""
    at = line.find("{")
    for _ in range(TRIES):
        if at < 0:
            return
        found, end = codec.load_next(line, at) or (None, at + 1)
        if isinstance(found, dict):
            yield found
        at = line.find("{", end)


def inner(value: object, *path: str) -> dict[str, object]:
    """Return the object at a path of keys; {} where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return dict(value) if isinstance(value, Mapping) else {}


def items(value: object) -> list[dict[str, object]]:
    """Return the objects of a list; [] where it is none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a string; '' for anything else."""
    return value if isinstance(value, str) else ""


def amount(value: object) -> float:
    """Return an amount; 0 for anything else."""
    return float(value) if isinstance(value, int | float) and is_amount(value) else 0.0


def count(value: object) -> int:
    """Return an amount as an int; 0 for anything else."""
    return int(amount(value))
