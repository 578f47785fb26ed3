"""A scripted model on loopback: it speaks as four providers do, and says what a script says, errors included.

    python -m tests.agents.fakemodel SCRIPT [PORT]     serves until it is stopped; prints its address

Touches: the network (loopback only).
"""

import json
import re
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.agents.fakemodel_dialects import DIALECTS, Dialect, Reply

HANG_S = 600.0
SHELLS = ("exec_command", "shell", "shell_command", "bash", "run_shell_command", "Bash")
# The tools that start a subagent, with what a call of them says besides the prompt; and what the subagent is told.
SPAWNERS: dict[str, dict[str, Any]] = {
    "Agent": {"description": "a part of it", "subagent_type": "general-purpose", "run_in_background": False},
    "task": {"description": "a part of it", "subagent_type": "general"},
    "agent": {"description": "a part of it", "subagent_type": "general-purpose", "run_in_background": False},
    "invoke_agent": {"agent_name": "generalist"},
    "multi_agent_v1.spawn_agent": {},
}
_BEHIND = ("run_in_background",)
WAITER = "multi_agent_v1.wait_agent"
_STARTED = re.compile(r"agent_id\W+([0-9a-f-]{36})")
PART = "Make that file on behalf of another agent."
USAGE_LIMIT = "You've hit your usage limit. Upgrade to Pro, or try again at 12:16 PM."


@dataclass(frozen=True)
class Script:
    """What the model does. call: the tool that it calls first: write, outside (a file outside of the workspace),
    shell, or terminal (a command that asks at the terminal); agents: how many subagents it starts before, one after
    another, each of which does the same; background: without waiting for them; slow_s: how long each answer takes;
    line: what the shell is to run, '' for the making of a file; status: of an error, which is given `times` times
    (0: for ever); code, message: what the error says; resets_in: s until a quota opens, as some providers say it in a
    field.
    """

    text: str = "All of it is done."
    call: str = ""
    agents: int = 0
    background: bool = False
    slow_s: float = 0.0
    line: str = ""
    status: int = 200
    code: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 0
    resets_in: float | None = None
    hangs: bool = False
    refuses: bool = False


SCRIPTS: dict[str, Script] = {
    "text": Script(),
    "write": Script(call="write"),
    "outside": Script(call="outside"),
    "shell": Script(call="shell"),
    "terminal": Script(call="terminal"),
    "subagent": Script(call="write", agents=1),
    "subagents": Script(call="write", agents=2),
    "slow": Script(call="write", agents=1, slow_s=4.0),
    "background": Script(call="write", agents=2, background=True),
    "merge": Script(call="shell", line="git merge -q side; git add -A && git commit -q --no-edit && touch made.txt"),
    "retry_after": Script(
        status=429, code="rate_limit_exceeded", message="Rate limit reached.", headers={"retry-after": "3600"}
    ),
    "rate": Script(
        status=429, code="rate_limit_exceeded", message="Rate limit reached.", headers={"retry-after": "1"}, times=1
    ),
    "usage_limit": Script(status=429, code="usage_limit_reached", message=USAGE_LIMIT, resets_in=5 * 3600),
    "insufficient_quota": Script(
        status=429,
        code="insufficient_quota",
        message="You exceeded your current quota, please check your plan and billing details.",
    ),
    "auth": Script(status=401, code="invalid_api_key", message="Incorrect API key provided."),
    "context": Script(
        status=400,
        code="context_length_exceeded",
        message="This model's maximum context length is 128000 tokens. Your messages have 200000 tokens.",
    ),
    "overloaded": Script(status=503, code="overloaded_error", message="The model is overloaded.", times=1),
    "hang": Script(hangs=True),
    "refusal": Script(text="I can't help with that.", refuses=True),
}


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is killed cuts its connection: that is no news. Everything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class FakeModel:
    """The server of one script, while its `with` lasts. asked: each request that it got, as (path, body); host: the
    address at which it listens."""

    def __init__(self, script: Script, workspace: str = "/", port: int = 0, host: str = "127.0.0.1") -> None:
        self.script, self.workspace = script, workspace
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.refused, self.started = 0, 0
        self.released = threading.Event()
        self._server = _Server((host, port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Its address without a path."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def prompts(self) -> str:
        """All that it was asked, as one text: a test looks for its prompt here."""
        return "\n".join(json.dumps(body, ensure_ascii=False) for _, body in self.asked)

    def answer(self, dialect: Dialect, body: dict[str, Any]) -> Reply:
        """What the script says to a request."""
        script = self.script
        if script.status != 200 and (not script.times or self.refused < script.times):
            self.refused += 1
            resets = int(time.time() + script.resets_in) if script.resets_in else None
            return Reply(
                status=script.status, code=script.code, message=script.message, headers=script.headers, resets=resets
            )
        if script.slow_s:
            self.released.wait(script.slow_s)
        if script.hangs:
            self.released.wait(HANG_S)
        tools = dialect.tools(body)
        if not tools:  # a request beside the work: a title, a summary
            return Reply(text="A title")
        started = _STARTED.search(json.dumps(body["input"][-1])) if WAITER in tools else None
        if started and not script.background:
            return Reply(call=(WAITER, {"targets": [started[1]]}))
        spawner = next((name for name in SPAWNERS if name in tools), "")
        if spawner and self.started < script.agents and PART not in dialect.told(body):
            self.started += 1
            said = _of_part(tools[spawner], spawner)
            return Reply(call=(spawner, said | {name: script.background for name in said if name in _BEHIND}))
        if script.call and not dialect.is_after_tool(body):
            line = script.line
            chosen = call_of_shell(line, "works", tools) if line else call(script.call, tools, self.workspace)
            return Reply(call=chosen) if chosen else Reply(text="I have no tool for that.")
        return Reply(text=script.text, refuses=script.refuses)


def _of_part(tools: set[str], spawner: str) -> dict[str, Any]:
    """What a call of a tool that starts a subagent says."""
    said = {name: value for name, value in SPAWNERS[spawner].items() if name in tools}
    return {**said, "message" if "message" in tools else "prompt": PART}


def call(kind: str, tools: dict[str, set[str]], workspace: str) -> tuple[str, dict[str, Any]] | None:
    """A call of one of the tools that were offered (name → its parameters), as a model would choose it; None where
    none of them can write."""
    if kind == "terminal":
        return call_of_shell("printf 'Go on? ' && read answer </dev/tty", "asks at the terminal", tools)
    path = f"{workspace}-outside/made.txt" if kind == "outside" else f"{workspace}/made.txt"
    writers = [name for name in ("write", "write_file", "Write") if name in tools and kind != "shell"]
    if writers:
        offered = tools[writers[0]]
        key = next(key for key in ("filePath", "file_path", "path") if key in offered)
        return writers[0], {key: path, "content": "made by the model\n"}
    return call_of_shell(f"echo made by the model > {path}", "makes a file", tools)


def call_of_shell(line: str, why: str, tools: dict[str, set[str]]) -> tuple[str, dict[str, Any]] | None:
    """A call of the tool that runs a line; None where none is offered. why: what the line does."""
    shell = next((name for name in SHELLS if name in tools), "")
    if not shell:
        return None
    if "cmd" in tools[shell]:
        return shell, {"cmd": line}
    arguments: dict[str, Any] = {"command": ["sh", "-c", line] if shell == "shell" else line}
    if "description" in tools[shell]:
        arguments["description"] = why
    if "is_background" in tools[shell]:
        arguments["is_background"] = False
    return shell, arguments


def _handler(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base's
            pass

        def do_GET(self) -> None:
            self._send(200, "application/json", {}, json.dumps({"object": "list", "data": []}).encode())

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            try:
                body: dict[str, Any] = json.loads(raw or b"{}")
            except ValueError:
                body = {}
            path = self.path.partition("?")[0]
            dialect = next((one for one in DIALECTS if one.serves(path)), None)
            if dialect is None:
                self._send(404, "application/json", {}, b'{"error": {"message": "no such path"}}')
                return
            model.asked.append((path, body))
            reply = model.answer(dialect, body)
            try:
                if reply.status != 200:
                    self._send(
                        reply.status, "application/json", reply.headers, json.dumps(dialect.error(reply)).encode()
                    )
                elif body.get("stream") or "stream" in path:
                    self._send(200, "text/event-stream", {}, dialect.stream(reply, body).encode())
                else:
                    self._send(200, "application/json", {}, json.dumps(dialect.whole(reply, body)).encode())
            except OSError:
                pass  # the client is gone

        def _send(self, status: int, kind: str, headers: Mapping[str, str], data: bytes) -> None:
            self.send_response(status)
            for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler


def main(script: str, port: str = "0") -> None:
    """Serve a script until the process is stopped."""
    with FakeModel(SCRIPTS[script], port=int(port)) as model:
        print(model.url, flush=True)
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
