"""The configuration to paste into a client, so that it starts this server, or calls it over HTTP.

Law: a token is never printed: each client gets it from the environment variable TOKEN_VARIABLE. It is told to wait a
minute for a call, which every call of this server fits into.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.protocol.errors import SpoolError

TOKEN_VARIABLE = "SPOOL_MCP_TOKEN"
CALL_S = 60
NAME = "spool"


@dataclass(frozen=True, slots=True)
class Server:
    """How a client reaches the server: by a command, or by a URL where that is not ''."""

    command: Sequence[str]
    url: str = ""


def configuration(client: str, server: Server) -> tuple[str, str]:
    """Return the file that it goes into, and the text. Errors: SpoolError for an unknown client."""
    if client not in CLIENTS:
        raise SpoolError(f"--print-config: {client!r} is no client that is known. Fix: use {', '.join(CLIENTS)}.")
    return CLIENTS[client](server)


def _claude(server: Server) -> tuple[str, str]:
    entry: dict[str, Any] = {"type": "stdio", "command": server.command[0], "args": [*server.command[1:]]}
    if server.url:
        headers = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
        entry = {"type": "http", "url": server.url, "headers": headers}
    return ".mcp.json in the project", _json({"mcpServers": {NAME: entry}})


def _codex(server: Server) -> tuple[str, str]:
    values: dict[str, Any] = {"command": server.command[0], "args": [*server.command[1:]]}
    if server.url:
        values = {"url": server.url, "bearer_token_env_var": TOKEN_VARIABLE}
    values["tool_timeout_sec"] = CALL_S
    # A string or a list of strings is the same in JSON and TOML, apart from characters that no path should have.
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    return "~/.codex/config.toml", "\n".join([f"[mcp_servers.{NAME}]", *lines])


def _opencode(server: Server) -> tuple[str, str]:
    entry: dict[str, Any] = {"type": "local", "command": [*server.command]}
    if server.url:
        headers = {"Authorization": f"Bearer {{env:{TOKEN_VARIABLE}}}"}
        entry = {"type": "remote", "url": server.url, "headers": headers}
    more = {"enabled": True, "timeout": CALL_S * 1000}
    return "opencode.json in the project", _json(
        {"$schema": "https://opencode.ai/config.json", "mcp": {NAME: {**entry, **more}}}
    )


def _like_gemini(folder: str) -> Callable[[Server], tuple[str, str]]:
    def made(server: Server) -> tuple[str, str]:
        entry: dict[str, Any] = {"command": server.command[0], "args": [*server.command[1:]]}
        if server.url:
            entry = {"httpUrl": server.url, "headers": {"Authorization": f"Bearer ${TOKEN_VARIABLE}"}}
        return f"{folder}/settings.json", _json({"mcpServers": {NAME: {**entry, "timeout": CALL_S * 1000}}})

    return made


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


CLIENTS: dict[str, Callable[[Server], tuple[str, str]]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "qwen": _like_gemini("~/.qwen"),
    "gemini": _like_gemini("~/.gemini"),
}
