"""The scripted model of the demonstration, on loopback: it plans, edits and resolves, and is once out of quota.

Law: it counts what it did, so that what the spool says can be held against it. Touches: the network (loopback only),
threads, the clock.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.agents.fakemodel import FakeModel, Script, call_of_shell
from tests.agents.fakemodel_dialects import TOKENS_CACHED, TOKENS_IN, TOKENS_OUT, Dialect, Reply
from tools.demonstration.agents.mind import think

# For how long (s) the quota of one edit is used up: longer for an agent that waits for up to a minute in silence.
CLOSED_S, CLOSED_LONGER_S = 8, {"qwen": 75}
# How long (s) the slow edit takes, for its laptop to be killed in it. Some agents refuse to run `sleep`.
SLOW_S = 60
WAIT = f"python3 -c 'import time; time.sleep({SLOW_S})'"


class Model(FakeModel):
    """slow: the edit that takes long when it is first asked for; spent: the one whose quota is used up at first, for
    closed_s.
    """

    def __init__(self, slow: str, spent: str, closed_s: int = CLOSED_S, host: str = "127.0.0.1") -> None:
        super().__init__(Script(), host=host)
        self.slow, self.spent, self.closed_s = slow, spent, closed_s
        self.reached = threading.Event()
        self.refusals = 0
        self.refused_at = 0.0
        self.asked_for: Counter[str] = Counter()
        self.tokens = 0
        self._lock = threading.Lock()

    def answer(self, dialect: Dialect, body: dict[str, Any]) -> Reply:
        """Return what the model says to a request."""
        tools = dialect.tools(body)
        thought = think("\n".join(texts(body)))
        if not tools or thought is None:
            return Reply(text="A title")
        with self._lock:
            if thought.edit == self.spent and (left := self._closed_s()):
                message = f"You've hit your usage limit. Try again in {left} seconds."
                headers = {"retry-after": str(left)}
                return Reply(status=429, code="usage_limit_reached", message=message, headers=headers)
            self.tokens += TOKENS_IN - TOKENS_CACHED + TOKENS_OUT
            if not thought.line or dialect.is_after_tool(body):
                return Reply(text=thought.words)
            self.asked_for[thought.edit] += 1
            line = thought.line
            if thought.edit == self.slow and self.asked_for[thought.edit] == 1:
                line = f"{WAIT} && {line}"
                self.reached.set()
        chosen = call_of_shell(line, "does the work", tools)
        return Reply(call=chosen) if chosen else Reply(text="I have no tool for that.")

    def _closed_s(self) -> int:
        """For how many seconds more the quota is used up: a while from the first time that it is asked."""
        now = time.time()
        self.refused_at = self.refused_at or now
        left = round(self.refused_at + self.closed_s - now)
        self.refusals += left > 0
        return max(left, 0)


def texts(value: Any) -> Iterator[str]:
    """Yield every text of a request but its tools."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name not in ("tools", "model"):
                yield from texts(one)
