"""All that an agent has said in one attempt: its words, its session, what it used, and what stands in its way.

Law: pure. Usage is counted as the adapter says, so that nothing is counted twice; a trouble that the agent got over
by itself is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from spoold.agents.adapters.adapter import Cost, Counting, Event, Trouble, Usage
from spoold.protocol.quantity import plus

# So much (characters) of what an agent said is kept: the end of it.
TEXT_MAX = 1 << 20
# Faults after which the agent cannot go on by itself, whatever it says next.
_FATAL = frozenset({"auth", "input", "context", "refusal", "budget"})


@dataclass(slots=True)
class Heard:
    """counting: of the adapter. answer: the words with which it ended; asked: a question that it put and left open;
    tools: how many it called; permission: that it was refused one; seen: whether it said anything at all.
    """

    counting: Counting
    session: str = ""
    words: list[str] = field(default_factory=list)
    answer: str = ""
    tools: int = 0
    trouble: Trouble | None = None
    permission: Trouble | None = None
    asked: Mapping[str, Any] | None = None
    done: bool = False
    seen: bool = False
    _used: list[Usage] = field(default_factory=list)
    _kept: int = 0
    _lost: bool = False

    def take(self, event: Event) -> None:
        """Take in one event."""
        self.seen = True
        self.session = event.session or self.session
        self.tools += bool(event.tool)
        if event.usage is not None:
            self._used = [*self._used, event.usage] if self.counting == "sum" else [event.usage]
            if len(self._used) > 1:
                self._used = [total(self._used)]
        if event.verb == "QUESTION":
            self.asked = event.said
        elif event.text and event.verb != "PROGRESS":
            self._say(event.text)
        if event.done:
            self.done, self.answer, self.asked = True, event.text or self.answer, None
        self._judge(event)

    def again(self) -> None:
        """Begin another turn of the same attempt: what was used and said stays."""
        self.done, self.asked, self.trouble = False, None, None

    @property
    def text(self) -> str:
        """The words with which it ended, or else all its words."""
        return self._said()[-TEXT_MAX:]

    @property
    def cut(self) -> bool:
        """Whether it said more than that: the beginning is lost."""
        return (self._lost and not self.answer) or len(self._said()) > TEXT_MAX

    @property
    def last(self) -> str:
        """The last line of its words."""
        lines = self.words[-1].strip().splitlines() if self.words else []
        return lines[-1][:300] if lines else ""

    @property
    def answered(self) -> bool:
        """Whether the model has answered: a tool was called, or tokens came out. Words may be those of an error."""
        return self.tools > 0 or any(one.tokens_out > 0 for one in self._used)

    @property
    def usage(self) -> Usage | None:
        """What it used, as far as it said so."""
        return total(self._used) if self._used else None

    def _said(self) -> str:
        return self.answer or "\n".join(self.words)

    def _say(self, text: str) -> None:
        self.words.append(text)
        self._kept += len(text)
        while self._kept > 2 * TEXT_MAX and len(self.words) > 1:
            self._kept -= len(self.words.pop(0))
            self._lost = True

    def _judge(self, event: Event) -> None:
        """Take in a trouble; progress after a lesser one means that it went on."""
        told = event.trouble
        if told is not None:
            if told.fault == "permission":
                self.permission = told
            elif self.trouble is None or not self.trouble.final or told.final:
                self.trouble = told
        elif self.trouble is not None and (event.text or event.tool or event.done):
            # Some agents say that they are done after an error that ended them.
            gives_way = not self.trouble.final and self.trouble.fault not in _FATAL
            self.trouble = None if gives_way else self.trouble


def total(used: list[Usage]) -> Usage:
    """Return the sum. Its cost is as sure as the least sure part; a part without tokens and cost makes it no less."""
    kinds = [one.cost for one in used if one.cost != "unknown" or one.tokens_in or one.tokens_out]
    cost: Cost = "unknown"
    if kinds and "unknown" not in kinds:
        cost = "estimated" if "estimated" in kinds else "reported"
    return Usage(
        reduce(plus, (one.tokens_in for one in used), 0),
        reduce(plus, (one.tokens_out for one in used), 0),
        reduce(plus, (one.tokens_cached for one in used), 0),
        reduce(plus, (one.cost_usd for one in used), 0.0),
        cost,
    )


def since(now: Usage | None, before: Usage | None) -> Usage | None:
    """Return what was used since `before`, for an agent that goes on counting in a session that is resumed. Where the
    figures are no continuation they count as they are.
    """
    if now is None or before is None:
        return now
    tokens_in, tokens_out = now.tokens_in - before.tokens_in, now.tokens_out - before.tokens_out
    cached, cost = now.tokens_cached - before.tokens_cached, now.cost_usd - before.cost_usd
    if min(tokens_in, tokens_out, cached, cost) < 0:
        return now
    return Usage(tokens_in, tokens_out, cached, cost, now.cost)
