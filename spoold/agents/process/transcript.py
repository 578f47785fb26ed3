"""All that an agent has said in one attempt: its words, its session, what it used, and what stands in its way.

Law: pure. Usage is counted as the adapter says, so that nothing is counted twice and no session is left out: one
that the attempt gave up counts, and so does that of a subagent. Where something is missing, the sum says so. A
trouble that the agent got over by itself is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from spoold.agents.adapters.adapter import Cost, Counting, Event, Trouble, Usage
from spoold.protocol.amount import plus

# So much (characters) of what an agent said is kept: the end of it.
TEXT_MAX = 1 << 20
# Faults after which the agent cannot go on by itself, whatever it says next.
_FATAL = frozenset({"auth", "input", "context", "refusal", "budget"})


@dataclass(slots=True)
class Transcript:
    """counting: of the adapter. answer: the words with which it ended; asked: a question that it put and left open;
    tools: how many it called; permission: that it was refused one; seen: whether it said anything at all; named:
    how often it named its session. base: what the session that goes on had used before this attempt, as far as that
    is known.
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
    named: int = 0
    base: Usage | None = None
    _used: list[Usage] = field(default_factory=list)
    _least: list[Usage] = field(default_factory=list)
    _left: list[Usage] = field(default_factory=list)
    _helpers: set[str] = field(default_factory=set)
    _counted: set[str] = field(default_factory=set)
    _kept: int = 0
    _lost: bool = False

    def take(self, event: Event) -> None:
        """Take in one event."""
        self.seen = True
        self.session = event.session or self.session
        self.tools += bool(event.tool)
        self.named += bool(event.session)
        self.count(event)
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

    def anew(self) -> None:
        """Leave the session, which cannot go on, for another one: what it used stays."""
        self.again()
        self._left = [] if self.usage is None else [self.usage]
        self._used, self._least, self.base, self.session = [], [], None, ""

    def owe(self, used: Usage) -> None:
        """Count what an attempt before used, whose record does not say so."""
        self._left.append(used)

    @property
    def came_to(self) -> tuple[int, int, int]:
        """What shows that its session has the prompt: that it names it, or that the model has answered."""
        return self.named, self.tools, self.usage.tokens_out if self.usage is not None else 0

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
        return self.tools > 0 or (self.usage or Usage()).tokens_out > 0

    @property
    def usage(self) -> Usage | None:
        """What this attempt used, as far as it said so."""
        own = self._own()
        used = [*self._left, *([] if own is None else [own])]
        if not used:
            return None
        return replace(total(used), sure=total(used).sure and self._helpers <= self._counted)

    @property
    def of_session(self) -> Usage | None:
        """What its session has used since its beginning, from which a later attempt counts on."""
        return self._used[-1] if self._used else self.base

    def count(self, event: Event) -> None:
        """Take in what an event says of usage, and nothing else."""
        if event.usage is not None:
            self._used = [*self._used, event.usage] if self.counting == "sum" else [event.usage]
            self._used = [total(self._used)]
            self._counted.add(event.by)
        if event.least is not None:
            self._least = [total([*self._least, event.least])]
        if event.helper:
            self._helpers.add(event.helper)

    def _own(self) -> Usage | None:
        """What was used in the present session by this attempt."""
        least = self._least[0] if self._least else None
        if not self._used:
            return least
        return since(self._used[0], self.base, least) if self.counting == "last" else self._used[0]

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
        all(one.sure for one in used),
    )


def since(now: Usage, before: Usage | None, least: Usage | None = None) -> Usage:
    """Return what was used since `before`, for an agent that goes on counting in a session that is resumed. least:
    what it used for certain. A session that was torn goes on from an older figure, or from none: then the figures are
    no continuation, and what was used may be more than can be known.
    """
    if before is None:
        return now
    new = _less(now, before)
    if _within(Usage(), new) and (least is None or _within(least, new)):
        return new
    whole = least is None or (now.tokens_in, now.tokens_out) == (least.tokens_in, least.tokens_out)
    return now if whole else replace(least or now, sure=False)


def _less(now: Usage, before: Usage) -> Usage:
    tokens_in, tokens_out = now.tokens_in - before.tokens_in, now.tokens_out - before.tokens_out
    cached, cost = now.tokens_cached - before.tokens_cached, now.cost_usd - before.cost_usd
    return Usage(tokens_in, tokens_out, cached, cost, now.cost, now.sure)


def _within(least: Usage, most: Usage) -> bool:
    return (
        least.tokens_in <= most.tokens_in
        and least.tokens_out <= most.tokens_out
        and least.tokens_cached <= most.tokens_cached
        and least.cost_usd <= most.cost_usd
    )
