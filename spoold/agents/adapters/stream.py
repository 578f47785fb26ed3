"""The event stream `stream-json`: that of claude, which qwen speaks too, with differences that are told apart here.

Law: usage of single messages is no count of its own, since the result has the sum: where the sum is less, it has
begun anew.
"""

from __future__ import annotations

from dataclasses import replace

from spoold.agents.adapters import faults, lines, resets
from spoold.agents.adapters.adapter import Cost, Event, Trouble, Usage
from spoold.agents.adapters.memory import Memory


class Stream:
    """Reads the lines of one attempt. by_model: the sum of the session is by model in `modelUsage`, and `usage` of a
    result is a part of it, as claude says it; else `usage` of a result is the sum, each message has a part of it, and
    input_tokens has those that came from the cache, too, as qwen says it."""

    def __init__(self, memory: Memory, *, by_model: bool) -> None:
        self._memory, self._by_model = memory, by_model
        self._resets: float | None = None

    def read(self, line: str, now: float) -> list[Event]:
        """Return the events of a line."""
        self._memory.now = now
        return [event for found in lines.objects(line) for event in self._event(found, now)]

    def _event(self, found: dict[str, object], now: float) -> list[Event]:
        match found.get("type"):
            case "system":
                if found.get("subtype") == "api_retry":
                    return self._retry(found, now)
                return self._memory.session(found.get("session_id"))
            case "assistant":
                return self._words(found)
            case "user":
                return self._answers(found)
            case "rate_limit_event":
                return self._limit(lines.inner(found, "rate_limit_info"), now)
            case "result":
                return [*self._memory.session(found.get("session_id")), *self._result(found, now)]
        return []

    def _words(self, found: dict[str, object]) -> list[Event]:
        events: list[Event] = []
        message = lines.inner(found, "message")
        for part in lines.items(message.get("content")):
            words = lines.text(part.get("text"))
            if part.get("type") == "text" and not _is_error(words):
                events += self._memory.says(words)
            elif part.get("type") == "tool_use":
                events.append(Event(tool=lines.text(part.get("name"))))
        if not self._by_model and message.get("usage"):
            # of a program that is killed there is no result, and those of its subagents may be missing
            events.append(Event(least=replace(self._part(lines.inner(message, "usage")), sure=False)))
        if message.get("stop_reason") == "refusal":
            events += self._memory.erred(Trouble("refusal", "the model refused to go on"))
        return events

    def _answers(self, found: dict[str, object]) -> list[Event]:
        events: list[Event] = []
        for part in lines.items(lines.inner(found, "message").get("content")):
            if part.get("type") != "tool_result":
                continue
            if part.get("is_error") is True:
                events += self._memory.refused(_flat(part.get("content")))
            else:
                self._memory.worked()
        return events

    def _retry(self, found: dict[str, object], now: float) -> list[Event]:
        status = lines.count(found.get("error_status")) or None
        again = self._resets or now + lines.count(found.get("retry_delay_ms")) / 1000
        text = f"attempt {lines.count(found.get('attempt'))}: {lines.text(found.get('error'))}"
        return self._memory.erred(faults.retrying(text, now, status=status, again=again))

    def _limit(self, info: dict[str, object], now: float) -> list[Event]:
        """A rejected limit is final only when the result says so: it may go on with what was paid for."""
        if info.get("status") != "rejected":
            return []
        self._resets = resets.stamp(info.get("resetsAt"))
        kind = lines.text(info.get("rateLimitType")) or "usage"
        return self._memory.erred(Trouble("quota", f"the limit {kind} is reached", self._resets, final=False))

    def _result(self, found: dict[str, object], now: float) -> list[Event]:
        events = self._spent(found)
        text = lines.text(found.get("result")) or lines.text(lines.inner(found, "error").get("message"))
        text = text or " ".join(str(one) for one in _listed(found.get("errors")))
        subtype = lines.text(found.get("subtype"))
        for denied in lines.items(found.get("permission_denials")):
            events += self._memory.denied(lines.text(denied.get("tool_name")) or "a tool")
        if found.get("stop_reason") == "refusal":
            return [*events, *self._memory.erred(Trouble("refusal", text or "the model refused"))]
        if subtype not in ("", "success") or found.get("is_error") is True or _is_error(text):
            about = {"error_max_turns": "max turns reached", "error_max_budget_usd": "max budget reached"}.get(
                subtype, ""
            )
            status = lines.count(found.get("api_error_status")) or None
            said = " ".join(part for part in (about, text) if part) or subtype
            return [*events, *self._memory.erred(faults.trouble(said, now, status=status, until=self._resets))]
        return [*events, *self._memory.done()]

    def _spent(self, found: dict[str, object]) -> list[Event]:
        own = self._part(lines.inner(found, "usage"))
        if not self._by_model:
            return [Event(usage=own)]
        models = found.get("modelUsage")
        if not isinstance(models, dict):
            return [Event(least=replace(own, sure=False))]
        each = [_of_model(lines.inner(models, name)) for name in models]
        cost = lines.amount(found.get("total_cost_usd"))
        sums = (sum(one.tokens_in for one in each), sum(one.tokens_out for one in each))
        kind: Cost = "estimated" if cost else "unknown"
        spent = Usage(*sums, sum(one.tokens_cached for one in each), cost, kind)
        return [Event(usage=spent, least=own)]

    def _part(self, usage: dict[str, object]) -> Usage:
        cached = lines.count(usage.get("cache_read_input_tokens"))
        into = lines.count(usage.get("input_tokens")) + lines.count(usage.get("cache_creation_input_tokens"))
        fresh = into if self._by_model else max(0, into - cached)
        return Usage(fresh, lines.count(usage.get("output_tokens")), cached)


def _of_model(usage: dict[str, object]) -> Usage:
    into = lines.count(usage.get("inputTokens")) + lines.count(usage.get("cacheCreationInputTokens"))
    return Usage(into, lines.count(usage.get("outputTokens")), lines.count(usage.get("cacheReadInputTokens")))


def _is_error(text: str) -> bool:
    return text.lstrip().startswith(("[API Error", "API Error"))


def _flat(content: object) -> str:
    if isinstance(content, str):
        return content
    return " ".join(lines.text(part.get("text")) for part in lines.items(content))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
