"""claude: `claude -p --output-format stream-json`, with its settings and its sessions in the private home.

`Stream` reads its events. It stands here, and qwen takes it from here: qwen speaks the same, with differences that
are told apart in it.

Law: nobody is asked. Of the repository it reads no settings and no MCP servers: both name programs, which it would
start unasked. Usage of single messages is no count of its own, since the result has the sum: where the sum is less,
it has begun anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from spoold.agents.adapters import error_classes, parsing
from spoold.agents.adapters.adapter import Adapter, Cost, Counting, Errand, Event, Start, Trouble, Usage
from spoold.agents.adapters.parsing import Memory

# A session that is gone, or whose file cannot be read (claude-code #62851, and played).
LOST = "no conversation found|session.{0,60}(could not be|cannot be|not) (found|read|loaded)"
# Edits within the workspace and commands are allowed. What else would be a question is denied: nobody is asked.
SETTINGS = {"permissions": {"defaultMode": "acceptEdits", "allow": ["Bash", "WebFetch", "WebSearch"]}}


class Claude:
    """Each of its results has the tokens by model and a cost that it estimates itself, both of the whole session with
    all its subagents; `usage` is of its own words alone. With subagents in the background it prints several."""

    name: ClassVar[str] = "claude"
    program: ClassVar[str] = "claude"
    package: ClassVar[str] = "@anthropic-ai/claude-code"
    takes: ClassVar[tuple[str, ...]] = ("model", "max_tokens")
    by_model: ClassVar[tuple[str, ...]] = ()
    asks_at: ClassVar[Mapping[str, str]] = {"": "api.anthropic.com"}
    address: ClassVar[str] = "ANTHROPIC_BASE_URL"
    recorded: ClassVar[str] = (
        "claude 2.1.332, played against a scripted model; its limit events from the documentation"
    )
    counting: ClassVar[Counting] = "last"
    resumes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._memory = Memory(LOST)
        self._stream = Stream(self._memory, by_model=True)

    def start(self, errand: Errand) -> Start:
        """The prompt goes to stdin."""
        home = f"{errand.home}/.claude"
        self._memory.resumed = bool(errand.session)
        argv = [*(errand.command or (self.program,)), "-p", "--output-format", "stream-json", "--verbose"]
        argv += ["--setting-sources", "user", "--strict-mcp-config"]
        argv += ["--model", errand.model] if errand.model else []
        argv += ["--max-turns", str(errand.max_turns)] if errand.max_turns is not None else []
        argv += ["--resume", errand.session] if errand.session else []
        env = {
            "HOME": errand.home,
            "CLAUDE_CONFIG_DIR": home,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        if errand.max_tokens is not None:
            env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(errand.max_tokens)
        if errand.trace:  # the second is what joins the attempt's trace
            env |= {"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1"}
        files = {f"{home}/settings.json": json.dumps(SETTINGS, indent=1)}
        return Start((*argv, *errand.args), errand.prompt, env | dict(errand.env), files)

    def read(self, line: str, now: float) -> list[Event]:
        """Events of `stream-json`."""
        return self._stream.read(line, now)

    def read_log(self, line: str, now: float) -> list[Event]:
        """Nothing: it says in its output when it tries again."""
        return []

    def ended(self, code: int, errors: str) -> Trouble | None:
        """It ends with 1 after every error."""
        return self._memory.ended(code, errors)


def make() -> Adapter:
    """Return an adapter for one attempt."""
    return Claude()


# The event stream `stream-json`: that of claude, which qwen speaks too, with differences that are told apart here.


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
        return [event for found in parsing.objects(line) for event in self._event(found, now)]

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
                return self._limit(parsing.inner(found, "rate_limit_info"), now)
            case "result":
                return [*self._memory.session(found.get("session_id")), *self._result(found, now)]
        return []

    def _words(self, found: dict[str, object]) -> list[Event]:
        events: list[Event] = []
        message = parsing.inner(found, "message")
        for part in parsing.items(message.get("content")):
            words = parsing.text(part.get("text"))
            if part.get("type") == "text" and not _is_error(words):
                events += self._memory.says(words)
            elif part.get("type") == "tool_use":
                events.append(Event(tool=parsing.text(part.get("name"))))
        if not self._by_model and message.get("usage"):
            # of a program that is killed there is no result, and those of its subagents may be missing
            events.append(Event(least=replace(self._part(parsing.inner(message, "usage")), sure=False)))
        if message.get("stop_reason") == "refusal":
            events += self._memory.erred(Trouble("refusal", "the model refused to go on"))
        return events

    def _answers(self, found: dict[str, object]) -> list[Event]:
        events: list[Event] = []
        for part in parsing.items(parsing.inner(found, "message").get("content")):
            if part.get("type") != "tool_result":
                continue
            if part.get("is_error") is True:
                events += self._memory.refused(_flat(part.get("content")))
            else:
                self._memory.worked()
        return events

    def _retry(self, found: dict[str, object], now: float) -> list[Event]:
        status = parsing.count(found.get("error_status")) or None
        again = self._resets or now + parsing.count(found.get("retry_delay_ms")) / 1000
        text = f"attempt {parsing.count(found.get('attempt'))}: {parsing.text(found.get('error'))}"
        return self._memory.erred(error_classes.retrying(text, now, status=status, again=again))

    def _limit(self, info: dict[str, object], now: float) -> list[Event]:
        """A rejected limit is final only when the result says so: it may go on with what was paid for."""
        if info.get("status") != "rejected":
            return []
        self._resets = error_classes.stamp(info.get("resetsAt"))
        kind = parsing.text(info.get("rateLimitType")) or "usage"
        return self._memory.erred(Trouble("quota", f"the limit {kind} is reached", self._resets, final=False))

    def _result(self, found: dict[str, object], now: float) -> list[Event]:
        events = self._spent(found)
        text = parsing.text(found.get("result")) or parsing.text(parsing.inner(found, "error").get("message"))
        text = text or " ".join(str(one) for one in _listed(found.get("errors")))
        subtype = parsing.text(found.get("subtype"))
        for denied in parsing.items(found.get("permission_denials")):
            events += self._memory.denied(parsing.text(denied.get("tool_name")) or "a tool")
        if found.get("stop_reason") == "refusal":
            return [*events, *self._memory.erred(Trouble("refusal", text or "the model refused"))]
        if subtype not in ("", "success") or found.get("is_error") is True or _is_error(text):
            about = {"error_max_turns": "max turns reached", "error_max_budget_usd": "max budget reached"}.get(
                subtype, ""
            )
            status = parsing.count(found.get("api_error_status")) or None
            said = " ".join(part for part in (about, text) if part) or subtype
            return [*events, *self._memory.erred(error_classes.trouble(said, now, status=status, until=self._resets))]
        return [*events, *self._memory.done()]

    def _spent(self, found: dict[str, object]) -> list[Event]:
        own = self._part(parsing.inner(found, "usage"))
        if not self._by_model:
            return [Event(usage=own)]
        models = found.get("modelUsage")
        if not isinstance(models, dict):
            return [Event(least=replace(own, sure=False))]
        each = [_of_model(parsing.inner(models, name)) for name in models]
        cost = parsing.amount(found.get("total_cost_usd"))
        sums = (sum(one.tokens_in for one in each), sum(one.tokens_out for one in each))
        kind: Cost = "estimated" if cost else "unknown"
        spent = Usage(*sums, sum(one.tokens_cached for one in each), cost, kind)
        return [Event(usage=spent, least=own)]

    def _part(self, usage: dict[str, object]) -> Usage:
        cached = parsing.count(usage.get("cache_read_input_tokens"))
        into = parsing.count(usage.get("input_tokens")) + parsing.count(usage.get("cache_creation_input_tokens"))
        fresh = into if self._by_model else max(0, into - cached)
        return Usage(fresh, parsing.count(usage.get("output_tokens")), cached)


def _of_model(usage: dict[str, object]) -> Usage:
    into = parsing.count(usage.get("inputTokens")) + parsing.count(usage.get("cacheCreationInputTokens"))
    return Usage(into, parsing.count(usage.get("outputTokens")), parsing.count(usage.get("cacheReadInputTokens")))


def _is_error(text: str) -> bool:
    return text.lstrip().startswith(("[API Error", "API Error"))


def _flat(content: object) -> str:
    if isinstance(content, str):
        return content
    return " ".join(parsing.text(part.get("text")) for part in parsing.items(content))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
