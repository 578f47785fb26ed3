"""opencode: `opencode run --format json`, with its settings and its sessions in the private home.

opencode hides a spent quota: it waits for as long as the provider says, up to days, and prints nothing. It hides what
its subagents do and use, too. A plugin of ours, in the private home, writes each announcement of such a wait into a
log, with the time at which it ends, and what each step of any session used; and it says there that an answer comes.

Law: nobody is asked. A repository's settings and MCP servers are not loaded; its plugins are (see the guide).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from spoold.agents.adapters import error_classes, parsing
from spoold.agents.adapters.adapter import Adapter, Cost, Counting, Errand, Event, Start, Trouble, Usage
from spoold.agents.adapters.parsing import STALE_S, Memory

PLUGIN = """import { appendFileSync } from "node:fs"

let told = 0
const tell = (what) => {
  told = Date.now()
  appendFileSync(process.env.SPOOL_AGENT_LOG, JSON.stringify({ at: told, ...what }) + "\\n")
}

export const SpoolStatus = async () => ({
  event: async ({ event }) => {
    const step = event.type === "message.part.updated" && event.properties.part.type === "step-finish"
    if (step || (event.type === "session.status" && event.properties.status.type === "retry")) tell(event)
    else if (event.type.startsWith("message.part.") && Date.now() - told > 1000) tell({ type: "alive" })
  },
})
"""
# A session that is gone, or whose file cannot be read (opencode #27559, and played).
LOST = "session not found|disk image is malformed|file is not a database"
# opencode installs a package into a folder with plugins before it loads them, unless the lock file there names it.
LOCK = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
# Without a title it asks the model for one, and reports no tokens of that.
TITLE = "a task of spoold"
QUIET = ("AUTOUPDATE", "CLAUDE_CODE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH", "PROJECT_CONFIG", "SHARE")


class OpenCode:
    """Usage is said once per step: it is to be summed. A step of its own it prints, and our plugin notes it, too."""

    name: ClassVar[str] = "opencode"
    program: ClassVar[str] = "opencode"
    package: ClassVar[str] = "opencode-ai"
    takes: ClassVar[tuple[str, ...]] = ("model", "max_tokens", "temperature")
    by_model: ClassVar[tuple[str, ...]] = ()
    asks_at: ClassVar[Mapping[str, str]] = {
        "anthropic": "api.anthropic.com",
        "openai": "api.openai.com",
        "google": "generativelanguage.googleapis.com",
        "openrouter": "openrouter.ai",
    }
    address: ClassVar[str] = "OPENAI_BASE_URL"
    recorded: ClassVar[str] = "opencode 1.18.33, played against a scripted model"
    counting: ClassVar[Counting] = "sum"
    resumes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._memory = Memory(LOST)
        self._steps: set[object] = set()

    def start(self, errand: Errand) -> Start:
        """The prompt goes to stdin. With OPENAI_BASE_URL the model is asked there, whatever its name."""
        self._memory.resumed = bool(errand.session)
        config = f"{errand.home}/.config/opencode"
        log = f"{errand.home}/opencode-status.jsonl"
        base = errand.env.get("OPENAI_BASE_URL", "")
        model = f"spool/{errand.model}" if base and errand.model else errand.model
        files = {
            f"{config}/opencode.json": json.dumps(_settings(errand, base), indent=1),
            f"{config}/plugin/spool-status.js": PLUGIN,
            f"{config}/package-lock.json": json.dumps(LOCK),
            f"{config}/node_modules/.spool": "",
        }
        env = {f"OPENCODE_DISABLE_{name}": "1" for name in QUIET} | {
            "HOME": errand.home,
            "XDG_CONFIG_HOME": f"{errand.home}/.config",
            "XDG_DATA_HOME": f"{errand.home}/.local/share",
            "XDG_STATE_HOME": f"{errand.home}/.local/state",
            "XDG_CACHE_HOME": f"{errand.home}/.cache",
            "SPOOL_AGENT_LOG": log,
        }
        if errand.max_tokens is not None:
            env["OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX"] = str(errand.max_tokens)
        argv = [*(errand.command or (self.program,)), "run", "--format", "json"]
        argv += ["-m", model] if model else []
        argv += ["-s", errand.session] if errand.session else ["--title", TITLE]
        return Start((*argv, *errand.args), errand.prompt, env | dict(errand.env), files, (log,))

    def read(self, line: str, now: float) -> list[Event]:
        """Events of `--format json`."""
        self._memory.now = now
        return [event for found in parsing.objects(line) for event in self._event(found, now)]

    def _event(self, found: dict[str, object], now: float) -> list[Event]:
        events = self._memory.session(found.get("sessionID"))
        part = parsing.inner(found, "part")
        match found.get("type"):
            case "text":
                events += self._memory.says(parsing.text(part.get("text")))
            case "tool_use":
                events.append(Event(tool=parsing.text(part.get("tool"))))
                state = parsing.inner(part, "state")
                if state.get("status") == "error":
                    events += self._memory.refused(parsing.text(state.get("error")))
                else:
                    self._memory.worked()
                helper = parsing.text(parsing.inner(state, "metadata").get("sessionId"))
                events += [Event(helper=helper)] if part.get("tool") == "task" and helper else []
            case "step_finish":
                events += self._step(part)
                if part.get("reason") == "stop":
                    events += self._memory.done()
            case "error":
                events += self._memory.erred(_trouble(parsing.inner(found, "error"), now))
        return events

    def read_log(self, line: str, now: float) -> list[Event]:
        """Waits, and what steps used, as our plugin wrote them down."""
        events: list[Event] = []
        for found in parsing.objects(line):
            if found.get("type") == "message.part.updated":
                events += self._step(parsing.inner(found, "properties", "part"))
            status = parsing.inner(found, "properties", "status")
            at = error_classes.stamp(found.get("at"))
            if status.get("type") == "retry" and at is not None and now - at < STALE_S:
                message = parsing.text(status.get("message"))
                # an attempt that only ever waited has printed no event with its session
                events += self._memory.first(parsing.inner(found, "properties").get("sessionID"))
                again = error_classes.stamp(status.get("next"))
                events += self._memory.erred(error_classes.retrying(message, now, again=again))
        return events

    def _step(self, part: dict[str, object]) -> list[Event]:
        """Return what a step used, once: stdout and the log both have it."""
        name = part.get("id")
        if not isinstance(name, str) or name in self._steps:
            return []
        self._steps.add(name)
        return [Event(usage=_usage(part), by=parsing.text(part.get("sessionID")))]

    def ended(self, code: int, errors: str) -> Trouble | None:
        """It ends with 1 after an error that it printed, and with 0 also after a refused permission."""
        return self._memory.ended(code, errors)


def _settings(errand: Errand, base: str) -> dict[str, object]:
    """Every question is answered with no: nobody is there to be asked. What is no question is allowed."""
    settings: dict[str, object] = {
        "share": "disabled",
        "autoupdate": False,
        "permission": {"external_directory": "deny", "doom_loop": "deny", "question": "deny"},
    }
    build = {"steps": errand.max_turns, "temperature": errand.temperature}
    if said := {name: value for name, value in build.items() if value is not None}:
        settings["agent"] = {"build": said}
    if base and errand.model:
        options = {"baseURL": "{env:OPENAI_BASE_URL}", "apiKey": "{env:OPENAI_API_KEY}"}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "spool",
            "options": options,
            # of a model that it does not know, it believes that it takes no temperature
            "models": {errand.model: {} if errand.temperature is None else {"temperature": True}},
        }
        settings["provider"] = {"spool": provider}
    return settings


def _usage(part: dict[str, object]) -> Usage:
    tokens, cache = parsing.inner(part, "tokens"), parsing.inner(part, "tokens", "cache")
    price = part.get("cost")
    cost = parsing.amount(price)
    kind: Cost = "estimated" if cost else "unknown"  # it is 0 for a model whose price is not known
    return Usage(
        parsing.count(tokens.get("input")) + parsing.count(cache.get("write")),
        parsing.count(tokens.get("output")) + parsing.count(tokens.get("reasoning")),
        parsing.count(cache.get("read")),
        cost,
        kind,
    )


def _trouble(error: dict[str, object], now: float) -> Trouble:
    data = parsing.inner(error, "data")
    status = data.get("statusCode")
    wait = error_classes.headers(parsing.inner(data, "responseHeaders"), now)
    text = f"{parsing.text(error.get('name'))}: {parsing.text(data.get('message'))}"
    return error_classes.trouble(text, now, status=status if isinstance(status, int) else None, until=wait)


def make() -> Adapter:
    """Return an adapter for one attempt."""
    return OpenCode()
