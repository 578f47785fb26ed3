"""gemini: `gemini -o stream-json`, with its settings and its sessions in the private home.

Its exit code is one of its own, or the HTTP status without its higher bits: 429 becomes 173.

Law: nobody is asked. A repository's hooks and MCP servers are not started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import ClassVar

from spoold.agents.adapters import error_classes, parsing
from spoold.agents.adapters.adapter import Adapter, Counting, Errand, Event, Fault, Start, Trouble, Usage
from spoold.agents.adapters.parsing import Memory

# As system settings they outrank those of the repository, which may name programs as hooks and as MCP servers.
SETTINGS = {
    "general": {"enableAutoUpdate": False},
    "hooksConfig": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}},
}
CODES: dict[int, Fault] = {41: "auth", 42: "input", 44: "input", 52: "input", 53: "budget", 54: "transient"}
_STATUSES: dict[int, Fault] = {401: "auth", 403: "auth", 404: "input", 429: "rate"}
CODES |= {status & 0xFF: fault for status, fault in _STATUSES.items()}
# A session that is gone, or whose file cannot be read (gemini-cli #24808, and played).
LOST = "error resuming session|invalid session identifier|no previous sessions found"
_RETRY = re.compile(r"^Attempt \d+ failed(?: with status (\d{3}))?\.\s+Retrying (.*)")


class Gemini:
    """Its result has the tokens of the attempt, with its subagents; those from the cache are part of input_tokens."""

    name: ClassVar[str] = "gemini"
    program: ClassVar[str] = "gemini"
    package: ClassVar[str] = "@google/gemini-cli"
    takes: ClassVar[tuple[str, ...]] = ("model", "max_tokens", "temperature")
    by_model: ClassVar[tuple[str, ...]] = ("max_tokens", "temperature")
    asks_at: ClassVar[Mapping[str, str]] = {"": "generativelanguage.googleapis.com"}
    address: ClassVar[str] = "GOOGLE_GEMINI_BASE_URL"
    recorded: ClassVar[str] = "gemini 0.61.0, played against a scripted model"
    counting: ClassVar[Counting] = "sum"
    resumes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._memory = Memory(LOST)

    def start(self, errand: Errand) -> Start:
        """The prompt goes to stdin. It needs GEMINI_API_KEY, and asks at GOOGLE_GEMINI_BASE_URL if that is set."""
        self._memory.resumed = bool(errand.session)
        system = f"{errand.home}/.gemini/system-settings.json"
        argv = [*(errand.command or (self.program,)), "-o", "stream-json", "--approval-mode", "yolo", "--skip-trust"]
        argv += ["--allowed-mcp-server-names", "none"]
        argv += ["-m", errand.model] if errand.model else []
        argv += ["--resume", errand.session] if errand.session else []
        settings: dict[str, object] = dict(SETTINGS)
        if errand.max_turns is not None:
            settings["model"] = {"maxSessionTurns": errand.max_turns}
        generation = {"maxOutputTokens": errand.max_tokens, "temperature": errand.temperature}
        if errand.model and (said := {name: value for name, value in generation.items() if value is not None}):
            settings["modelConfigs"] = {
                "overrides": [{"match": {"model": errand.model}, "modelConfig": {"generateContentConfig": said}}]
            }
        written = json.dumps(settings, indent=1)
        # system settings are passed over where anybody may write to a folder above them, such as /tmp
        files = {system: written, f"{errand.home}/.gemini/settings.json": written, f"{errand.home}/tmp/.spool": ""}
        # it writes a report of each error into the folder for temporary files
        env = {"HOME": errand.home, "TMPDIR": f"{errand.home}/tmp", "GEMINI_CLI_SYSTEM_SETTINGS_PATH": system}
        return Start((*argv, *errand.args), errand.prompt, env | dict(errand.env), files)

    def read(self, line: str, now: float) -> list[Event]:
        """Events of `stream-json`."""
        self._memory.now = now
        return [event for found in parsing.objects(line) for event in self._event(found, now)]

    def _event(self, found: dict[str, object], now: float) -> list[Event]:
        match found.get("type"):
            case "init":
                return self._memory.session(found.get("session_id"))
            case "message" if found.get("role") == "assistant":
                return self._memory.says(parsing.text(found.get("content")))
            case "tool_use":
                return [Event(tool=parsing.text(found.get("tool_name")))]
            case "tool_result":
                if found.get("status") == "error":
                    error = parsing.inner(found, "error")
                    return self._memory.refused(
                        f"{error.get('type', '')}: {error.get('message', '')} {found.get('output', '')}"
                    )
                self._memory.worked()
            case "error":
                severe = found.get("severity") != "warning"
                return self._memory.erred(
                    error_classes.trouble(parsing.text(found.get("message")), now, final=severe)
                )
            case "result":
                return self._result(found, now)
        return []

    def _result(self, found: dict[str, object], now: float) -> list[Event]:
        stats = parsing.inner(found, "stats")
        cached = parsing.count(stats.get("cached"))
        fresh = max(0, parsing.count(stats.get("input_tokens")) - cached)
        events = [Event(usage=Usage(fresh, parsing.count(stats.get("output_tokens")), cached))]
        if found.get("status") == "success":
            return [*events, *self._memory.done()]
        error = parsing.inner(found, "error")
        text = f"{parsing.text(error.get('type'))} {parsing.text(error.get('message'))}"
        code = re.search(r'"code":\s*(\d{3})', text)
        status = int(code[1]) if code else None
        return [
            *events,
            *self._memory.erred(error_classes.trouble(text.removeprefix("unknown "), now, status=status)),
        ]

    def read_log(self, line: str, now: float) -> list[Event]:
        """Attempts that failed, on stderr: it waits in silence else."""
        self._memory.now = now
        found = _RETRY.match(line)
        if not found:
            return []
        return self._memory.erred(error_classes.retrying(found[2], now, status=int(found[1]) if found[1] else None))

    def ended(self, code: int, errors: str) -> Trouble | None:
        """See CODES."""
        return self._memory.ended(code, errors, CODES)


def make() -> Adapter:
    """Return an adapter for one attempt."""
    return Gemini()
