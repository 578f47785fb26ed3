"""codex: `codex exec --json`. What it needs stands on its command line, but for the place to which its spans go.

Its home must not lie in the folder for temporary files: its sandbox then has no helper program, and no command runs.
So it gets a folder of its own for those. That sandbox keeps `.git` from it, also in a repository that was made for
this attempt alone: there it is told that it may write, or it could resolve no conflict. A time of day in its texts
has no zone, and is in the machine's.

Law: nobody is asked. A repository's settings, rules and MCP servers are not loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import ClassVar

from spoold.agents.adapters import error_classes, parsing
from spoold.agents.adapters.adapter import Adapter, Counting, Errand, Event, Start, Trouble, Usage
from spoold.agents.adapters.parsing import Memory

# `-c` and not the options: the options of a profile may say otherwise, and `resume` does not know them all.
SETTINGS = (
    'approval_policy="never"',
    'sandbox_mode="workspace-write"',
    "sandbox_workspace_write.exclude_slash_tmp=true",
    "features.plugins=false",
)
# It hides how long it waits, up to days, and what its subagents use. These parts of its log, on stderr, say it, and
# nothing else: the second has one line for each answer of the model, whichever agent asked.
LOG = "codex_core::responses_retry=warn,codex_otel.trace_safe[{input_token_count}]=info"
# A session that is gone, or whose file cannot be read (codex #22064, and played).
LOST = "thread/(resume|read) failed|no rollout found|thread not (found|loaded)"
# It knows none of the usual variables but TRACEPARENT.
TRACED = '[otel]\ntrace_exporter = {{otlp-http = {{endpoint = {url}, protocol = "json"}}}}\n'
_RETRY = re.compile(r"retrying sampling request \(\d+/\d+ in ([\d.]+)(ms|s|m|h)\).*?sampling_error=(.*)")
_SPENT = re.compile(r"\bevent\.kind=response\.completed .*input_token_count=")
_COUNT = re.compile(r"\b(input|output|cached)_token_count=(\d{1,15})\b")
_WHOSE = re.compile(r"\bconversation\.id=([\w-]+)")
_NO_TOOLS = ("agent_message", "reasoning", "error", "todo_list")


class Codex:
    """Usage is said on stderr, once per answer of the model to any agent: it is to be summed. What a turn says on
    stdout is the total of its thread, without subagents."""

    name: ClassVar[str] = "codex"
    program: ClassVar[str] = "codex"
    package: ClassVar[str] = "@openai/codex"
    takes: ClassVar[tuple[str, ...]] = ("model",)
    by_model: ClassVar[tuple[str, ...]] = ()
    asks_at: ClassVar[Mapping[str, str]] = {"": "api.openai.com"}
    address: ClassVar[str] = "OPENAI_BASE_URL"
    recorded: ClassVar[str] = "codex 0.169.0, played against a scripted model"
    counting: ClassVar[Counting] = "sum"
    resumes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._memory = Memory(LOST)

    def start(self, errand: Errand) -> Start:
        """The prompt goes to stdin. With OPENAI_BASE_URL the model is asked there, with OPENAI_API_KEY."""
        self._memory.resumed = bool(errand.session)
        argv = [*(errand.command or (self.program,)), "exec"]
        argv += ["resume"] if errand.session else []
        argv += ["--json", "--skip-git-repo-check", "--ignore-rules"]
        settings = list(SETTINGS)
        base = errand.env.get("OPENAI_BASE_URL", "")
        if base:
            provider = {"name": "spool", "base_url": base, "env_key": "OPENAI_API_KEY", "wire_api": "responses"}
            inline = ",".join(f"{key}={json.dumps(value)}" for key, value in provider.items())
            settings += ['model_provider="spool"', f"model_providers.spool={{{inline}}}"]
        if errand.git:
            settings.append(f"sandbox_workspace_write.writable_roots={json.dumps([errand.git])}")
        for setting in settings:
            argv += ["-c", setting]
        argv += ["-m", errand.model] if errand.model else []
        argv += [*errand.args, errand.session, "-"] if errand.session else [*errand.args, "-"]
        files = {f"{errand.home}/.codex/.spool": "", f"{errand.home}/tmp/.spool": ""}
        if errand.trace:  # not on the command line, which every user of the machine may read
            files[f"{errand.home}/.codex/config.toml"] = TRACED.format(url=json.dumps(f"{errand.trace}/v1/traces"))
        env = {"HOME": errand.home, "CODEX_HOME": f"{errand.home}/.codex", "TMPDIR": f"{errand.home}/tmp"}
        more = errand.env.get("RUST_LOG")
        env |= {**errand.env, "RUST_LOG": f"{more},{LOG}" if more else LOG}
        return Start(tuple(argv), errand.prompt, env, files)

    def read(self, line: str, now: float) -> list[Event]:
        """Events of `--json`."""
        self._memory.now = now
        return [event for found in parsing.objects(line) for event in self._event(found, now)]

    def _event(self, found: dict[str, object], now: float) -> list[Event]:
        match found.get("type"):
            case "thread.started":
                return self._memory.session(found.get("thread_id"))
            case "item.completed":
                return self._item(parsing.inner(found, "item"))
            case "turn.completed":
                usage = parsing.inner(found, "usage")
                cached = parsing.count(usage.get("cached_input_tokens"))
                fresh = max(0, parsing.count(usage.get("input_tokens")) - cached)
                # In a thread that was resumed it is also what was used before.
                spent = Usage(fresh, parsing.count(usage.get("output_tokens")), cached)
                return [*([] if self._memory.resumed else [Event(least=spent)]), *self._memory.done()]
            case "turn.failed":
                return self._memory.erred(
                    error_classes.trouble(parsing.text(parsing.inner(found, "error").get("message")), now)
                )
            case "error":  # the same words come again in turn.failed, unless it tries again
                message = parsing.text(found.get("message"))
                return (
                    self._memory.erred(error_classes.retrying(message, now))
                    if message.startswith("Reconnecting")
                    else []
                )
        return []

    def _item(self, item: dict[str, object]) -> list[Event]:
        kind = parsing.text(item.get("type"))
        if kind == "agent_message":
            return self._memory.says(parsing.text(item.get("text")))
        if not kind or kind in _NO_TOOLS:
            return []
        event = Event(tool=parsing.text(item.get("tool")) or kind)
        if kind == "collab_tool_call" and item.get("tool") == "spawn_agent":
            started = item.get("receiver_thread_ids")
            self._memory.worked()
            return [
                event,
                *(Event(helper=parsing.text(one)) for one in (started if isinstance(started, list) else ())),
            ]
        if item.get("status") == "declined":
            return [event, *self._memory.refused("permission denied: the command was declined")]
        output = parsing.text(item.get("aggregated_output"))
        if item.get("status") == "failed" and re.search(
            r"permission denied|read-only file system", output, re.IGNORECASE
        ):
            return [event, *self._memory.refused(f"permission denied by the sandbox: {output}")]
        if item.get("status") != "failed":
            self._memory.worked()
        return [event]

    def read_log(self, line: str, now: float) -> list[Event]:
        """Waits before it tries again, and what an answer of the model used, on stderr."""
        self._memory.now = now
        if _SPENT.search(line):
            count = {name: int(number) for name, number in _COUNT.findall(line)}
            cached, whose = count.get("cached", 0), _WHOSE.search(line)
            spent = Usage(max(0, count.get("input", 0) - cached), count.get("output", 0), cached)
            return [Event(usage=spent, by=whose[1] if whose else "")]
        found = _RETRY.search(line)
        if not found:
            return []
        again = error_classes.said(f"in {found[1]}{found[2]}", now)
        return self._memory.erred(error_classes.retrying(found[3], now, again=again))

    def ended(self, code: int, errors: str) -> Trouble | None:
        """It ends with 1 after every error, with 2 for arguments that it does not know, and with 0 when the model
        refused: it prints no refusal, so that nothing was said and nothing done."""
        said = "\n".join(line for line in errors.splitlines() if not _SPENT.search(line))
        return self._memory.ended(code, said, {2: "input"})


def make() -> Adapter:
    """Return an adapter for one attempt."""
    return Codex()
