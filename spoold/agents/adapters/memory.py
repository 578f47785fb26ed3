"""What an adapter remembers of one attempt: its session, its errors, and whether anything came of it.

Law: a program that ends with 0 has not always done something: its tools may have been refused, or its model. Words
about a session that is gone or torn mean that only where one was resumed.
"""

from __future__ import annotations

import re
from dataclasses import replace

from spoold.agents.adapters import faults
from spoold.agents.adapters.adapter import Event, Fault, Trouble

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
        if faults.classify(text) != "permission":
            return []
        self._refusal = Trouble("permission", " ".join(text.split())[: faults.MESSAGE_LIMIT], final=False)
        return [Event(trouble=self._refusal)]

    def denied(self, tool: str) -> list[Event]:
        """Return the event of a tool that was refused, as the end says once more; [] if another tool worked since."""
        return [] if self._refusal or self._acted else self.refused(f"permission denied: {tool}")

    def erred(self, trouble: Trouble) -> list[Event]:
        """Return the event of an error. A final one is also what the end says, unless the agent is done after it."""
        if self.resumed and trouble.final and (self._lost.search(trouble.message) or faults.torn(trouble.message)):
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
                return Trouble("session", " ".join(_COLOURS.sub("", told[0]).split())[: faults.MESSAGE_LIMIT])
        if code == 0:
            if self._refusal is not None:
                return Trouble("permission", f"it ended with 0, but was refused: {self._refusal.message}")
            if not self.spoke and not self._acted:
                return Trouble("refusal", "it ended with 0, but the model said nothing and did nothing")
            return None
        text = _last(errors) or f"it ended with exit code {code} and said nothing"
        found = faults.trouble(text, self.now)
        fault = (codes or {}).get(code)
        return Trouble(fault, found.message) if fault and fault != found.fault else found


def _last(errors: str) -> str:
    """Return the last lines of stderr that say something: the places in a stack are left out."""
    kept = [line.strip() for line in errors.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return " ".join(kept[-5:])[-faults.MESSAGE_LIMIT :]
