"""The scripted model of the trial: it counts by edit, closes one account for a while, and holds back last words.

Law: as of the demonstration's. Touches: the network, threads, the clock.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from typing import Any

from tests.agents.fakemodel import FakeModel, Script, call_of_shell
from tests.agents.fakemodel_dialects import (
    TOKENS_CACHED,
    TOKENS_IN,
    TOKENS_OUT,
    Dialect,
    Messages,
    Reply,
    Responses,
)
from tools.demonstration.agents.mind import think
from tools.demonstration.agents.model import texts

# Whose account can be closed: those that alone speak a dialect.
ACCOUNTS: dict[str, type[Dialect]] = {"codex": Responses, "claude": Messages}
TOKENS = TOKENS_IN - TOKENS_CACHED + TOKENS_OUT
# Of one answer by claude-sonnet-4-5 (US$): its price list has 3, 0.30 and 15 for a million tokens.
PRICE = ((TOKENS_IN - TOKENS_CACHED) * 3 + TOKENS_CACHED * 0.3 + TOKENS_OUT * 15) / 1e6
HELD_MAX_S = 300.0


class Provider(FakeModel):
    """account: the command line whose account is closed for closed_s, from the beginning of its edit number
    `closes_at` on; '' for none.

    By the name of an edit, with '' for conflicts: answers, those that are paid; begun and finished, the conversations
    that got work to do and a last word; refusals, those for want of quota; cost (US$), of what has a price. held: the
    edits whose last word waited, or waits, for `release`.
    """

    def __init__(self, account: str = "", closed_s: float = 240, closes_at: int = 1, host: str = "127.0.0.1") -> None:
        super().__init__(Script(), host=host)
        self.account, self.closed_s, self.closes_at = account, closed_s, closes_at
        self.closed_at = 0.0
        self.answers, self.begun, self.finished = Counter[str](), Counter[str](), Counter[str]()
        self.refusals, self.cost = Counter[str](), defaultdict[str, float](float)
        self.held: list[str] = []
        self._seen, self._open, self._lock = set[str](), threading.Event(), threading.Lock()
        self._open.set()

    def hold(self) -> None:
        """From now on, last words wait."""
        self.held = []
        self._open.clear()

    def release(self) -> None:
        """Last words are said again."""
        self._open.set()

    def answer(self, dialect: Dialect, body: dict[str, Any]) -> Reply:
        """Return what the model says to a request."""
        tools, thought = dialect.tools(body), think("\n".join(texts(body)))
        if thought is None:
            return Reply(text="A title")
        after = dialect.is_after_tool(body)
        with self._lock:
            if left := self._left_s(dialect, thought.edit):
                self.refusals[thought.edit] += 1
                return Reply(
                    status=429,
                    code="usage_limit_reached",
                    message=f"You've hit your usage limit. Try again in {left:.0f} seconds.",
                    headers={"retry-after": f"{left:.0f}"},
                    resets=int(time.time() + left),
                )
            self.answers[thought.edit] += 1
            self.cost[thought.edit] += PRICE if isinstance(dialect, Messages) else 0
            if tools:
                (self.finished if after else self.begun)[thought.edit] += 1
            if tools and after and thought.edit and not self._open.is_set():
                self.held.append(thought.edit)
        if not tools:
            return Reply(text="A title")
        if after:
            self._open.wait(HELD_MAX_S)
            return Reply(text=thought.words)
        chosen = call_of_shell(thought.line, "does the work", tools)
        return Reply(call=chosen) if chosen else Reply(text="I have no tool for that.")

    def _left_s(self, dialect: Dialect, edit: str) -> float:
        """For how long the account is closed yet; 0 where it is open, or another one is asked."""
        if not self.account or not isinstance(dialect, ACCOUNTS[self.account]):
            return 0
        self._seen.add(edit)
        if not self.closed_at and len(self._seen) >= self.closes_at:
            self.closed_at = time.time()
        return max(0, self.closed_at + self.closed_s - time.time()) if self.closed_at else 0
