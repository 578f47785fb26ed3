"""claude: `claude -p --output-format stream-json`, with its settings and its sessions in the private home.

Law: nobody is asked. Of the repository it reads no settings and no MCP servers: both name programs, which it would
start unasked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from spoold.agents.adapters.adapter import Adapter, Counting, Errand, Event, Start, Trouble
from spoold.agents.adapters.memory import Memory
from spoold.agents.adapters.stream import Stream

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
