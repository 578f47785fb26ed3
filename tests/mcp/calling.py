"""A client of the protocol as a test has it: the SDK's own, called without `await`.

Law: the server is always a process of its own, started as a client starts it; it ends with its caller.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.pool import PATIENCE_S, Pool


class Caller:
    """One client. progress: what the calls so far reported."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self.client = client
        self.progress: list[tuple[float, float | None, str | None]] = []

    def answer(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool; returns the SDK's result, an error or not."""

        async def note(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append((progress, total, message))

        async def call() -> Any:
            return await self.client.call_tool(name, dict(arguments), progress_callback=note)

        return self._portal.call(call)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must answer well; returns its structured content."""
        found = self.answer(name, arguments)
        assert not found.is_error, f"{name}: {found.content[0].text}"
        content: dict[str, Any] = found.structured_content
        return content

    def refused(self, name: str, **arguments: Any) -> str:
        """Call a tool that must refuse; returns its words."""
        found = self.answer(name, arguments)
        assert found.is_error, f"{name} answered {found.structured_content}"
        words: str = found.content[0].text
        assert "Traceback" not in words
        return words

    def begin(self, name: str, **arguments: Any) -> Future[Any]:
        """Begin a call of a tool, to cancel it."""
        return self._portal.start_task_soon(self.client.call_tool, name, arguments)

    def read(self, uri: str) -> str:
        """Return the text of a resource. Errors: MCPError."""

        async def read() -> Any:
            return await self.client.read_resource(uri)

        text: str = self._portal.call(read).contents[0].text
        return text

    def ask(self, method: str) -> Any:
        """Return what a method of the client without arguments returns."""
        return self._portal.call(getattr(self.client, method))


@contextmanager
def over_stdio(pool: Pool, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Caller]:
    """A caller of a server that it starts itself; the SDK passes on little of the environment."""
    words = ["-m", "spoold", "--spool", str(pool.root), "mcp", *options]
    server = StdioServerParameters(
        command=sys.executable, args=words, env={"HOME": str(pool.desk), **(env or {})}, cwd=pool.desk
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        yield Caller(portal, client)


class Served:
    """A server over HTTP, and what it said."""

    def __init__(self, url: str, token: Path, pid: int) -> None:
        self.url = url
        self.token_file = token
        self.pid = pid

    @property
    def token(self) -> str:
        """The token that callers need."""
        return self.token_file.read_text().strip()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2].partition("/")[0])


@contextmanager
def serving(pool: Pool, *options: str) -> Iterator[Served]:
    """A server over HTTP on a free port."""
    token = pool.path("http.token")
    words = ["-m", "spoold", "mcp", "--http", "--port", "0", "--token-file", str(token), *options]
    with pool.path("http.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, stderr=log, env=pool.env, start_new_session=True
        )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url, pool.path("http.log").read_text()
        yield Served(url, token, process.pid)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


@contextmanager
def over_http(served: Served, mode: Literal["auto", "legacy"] = "auto") -> Iterator[Caller]:
    """A caller of a server over HTTP. mode: legacy begins a session, as clients of earlier versions do."""
    headers = {"Authorization": f"Bearer {served.token}"}
    with start_blocking_portal() as portal:
        http = httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S)
        client = Client(streamable_http_client(served.url, http_client=http), mode=mode)
        with portal.wrap_async_context_manager(client) as entered:
            yield Caller(portal, entered)
        portal.call(http.aclose)
