"""qwen: `qwen -o stream-json`, with its settings and its sessions in the private home.

qwen hides a spent quota: it waits for as long as the provider says, and prints nothing. Its debug log, which is
switched on for that, has a line for each wait. QWEN_CODE_UNATTENDED_RETRY makes it wait for ever: it is never set.

Law: nobody is asked. A repository's hooks and MCP servers are not started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import ClassVar

from spoold.agents.adapters import error_classes
from spoold.agents.adapters.adapter import Adapter, Counting, Errand, Event, Start, Trouble
from spoold.agents.adapters.claude import Stream
from spoold.agents.adapters.parsing import STALE_S, Memory

# As system settings they outrank those of the repository, which may name programs as hooks and as MCP servers.
SETTINGS = {
    "disableAllHooks": True,
    "general": {"enableAutoUpdate": False},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False, "enableAutoSkill": False},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "openai"}},
    # With a terminal of its own, a command that asks there waits for an answer that nobody gives.
    "tools": {"approvalMode": "yolo", "shell": {"enableInteractiveShell": False}},
}
# A session that is gone, or whose file cannot be read (played).
LOST = "no saved session found"
_LINE = re.compile(
    r"^(\S+Z) \[(?:WARN|ERROR|INFO)\] \[(RETRY|OPENAI_ERROR|[A-Z_]*ERROR)\](?: \[trace_id=[^\]]*\])? (.*)"
)
_DELAY = re.compile(r"explicit delay of (\d{1,12})ms|backoff in (\d{1,12})s")
_STATUS = re.compile(r"\bstatus (\d{3})\b|API Error: (\d{3})\b")


class Qwen:
    """Its result has the tokens of the session, with its subagents; those from the cache are part of input_tokens."""

    name: ClassVar[str] = "qwen"
    program: ClassVar[str] = "qwen"
    package: ClassVar[str] = "@qwen-code/qwen-code"
    takes: ClassVar[tuple[str, ...]] = ("model", "max_tokens", "temperature")
    by_model: ClassVar[tuple[str, ...]] = ()
    asks_at: ClassVar[Mapping[str, str]] = {"": "api.openai.com"}
    address: ClassVar[str] = "OPENAI_BASE_URL"
    recorded: ClassVar[str] = "qwen 0.24.4, played against a scripted model"
    counting: ClassVar[Counting] = "last"
    resumes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._memory = Memory(LOST)
        self._stream = Stream(self._memory, by_model=False)
        self._error = ""

    def start(self, errand: Errand) -> Start:
        """The prompt goes to stdin. The model is asked at OPENAI_BASE_URL, with OPENAI_API_KEY."""
        self._memory.resumed = bool(errand.session)
        home = f"{errand.home}/.qwen"
        system = f"{home}/system-settings.json"
        argv = [*(errand.command or (self.program,)), "-o", "stream-json", "--allowed-mcp-server-names", "none"]
        argv += ["-m", errand.model] if errand.model else []
        argv += ["--max-session-turns", str(errand.max_turns)] if errand.max_turns is not None else []
        argv += ["--resume", errand.session] if errand.session else []
        env = {
            "HOME": errand.home,
            "QWEN_HOME": home,
            "QWEN_CODE_SYSTEM_SETTINGS_PATH": system,
            "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
            "QWEN_DEBUG_LOG_FILE": "1",
        }
        sampling = {"max_tokens": errand.max_tokens, "temperature": errand.temperature}
        settings: dict[str, object] = dict(SETTINGS)
        if said := {name: value for name, value in sampling.items() if value is not None}:
            settings["model"] = {"generationConfig": {"samplingParams": said}}
        files = {system: json.dumps(settings, indent=1)}
        return Start((*argv, *errand.args), errand.prompt, env | dict(errand.env), files, (f"{home}/debug/latest",))

    def read(self, line: str, now: float) -> list[Event]:
        """Events of `stream-json`."""
        return self._stream.read(line, now)

    def read_log(self, line: str, now: float) -> list[Event]:
        """Errors and waits in its debug log: the error stands in the line before its wait."""
        found = _LINE.match(line)
        stamped = error_classes.stamp(found[1]) if found else None
        if not found or stamped is None or now - stamped > STALE_S:
            return []
        if found[2] != "RETRY":
            self._error = found[3].rstrip(" {")
            return []
        delay = _DELAY.search(found[3])
        status = _STATUS.search(found[3])
        if not delay:
            return []
        wait = int(delay[1]) / 1000 if delay[1] else float(delay[2])
        text, self._error = self._error or found[3], ""
        code = int(status[1] or status[2]) if status else None
        return self._memory.erred(error_classes.retrying(text, now, status=code, again=stamped + wait))

    def ended(self, code: int, errors: str) -> Trouble | None:
        """53 is the end of its turns, 55 of its other budgets; 52 is a wrong setting, 41 a missing key."""
        return self._memory.ended(code, errors, {41: "auth", 42: "input", 52: "input", 53: "budget", 55: "budget"})


def make() -> Adapter:
    """Return an adapter for one attempt."""
    return Qwen()
