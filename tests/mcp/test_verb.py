"""`spool mcp`: what to paste, and what it says when it cannot serve."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from spoold.faces.mcp.clients import CLIENTS
from tests.e2e.pool import Pool
from tests.house.sources import CHECKOUT


def printed(pool: Pool, client: str, *options: str) -> Any:
    """What is to be pasted, as the client reads it."""
    text = pool.cli("mcp", "--print-config", client, *options)
    return tomllib.loads(text) if client == "codex" else json.loads(text)


def entry(client: str, found: Any) -> Any:
    """The server in a client's configuration."""
    outer = {"codex": "mcp_servers", "opencode": "mcp"}.get(client, "mcpServers")
    return found[outer]["spool"]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_printed_starts_the_server(pool: Pool, client: str) -> None:
    server = entry(client, printed(pool, client))
    command = server["command"] if client == "opencode" else [server["command"], *server["args"]]
    assert command[1:] == ["--spool", str(pool.root), "mcp"]
    assert os.access(command[0], os.X_OK)
    done = subprocess.run([*command, "--role", "nobody"], capture_output=True, text=True, check=False)
    assert (done.returncode, "'nobody' is no role. Fix: use agent or operator" in done.stderr) == (2, True)
    assert "60" in json.dumps(server) or client == "claude", "a call may take a minute"


@pytest.mark.parametrize("client", CLIENTS)
def test_over_http_the_token_stays_in_the_environment(pool: Pool, client: str) -> None:
    server = entry(client, printed(pool, client, "--http", "--port", "8400"))
    assert "http://127.0.0.1:8400/mcp" in server.values()
    assert "SPOOL_MCP_TOKEN" in json.dumps(server)
    assert "command" not in server


def test_an_operator_is_pasted_as_one(pool: Pool) -> None:
    server = entry("claude", printed(pool, "claude", "--role", "operator"))
    assert server["args"][-2:] == ["--role", "operator"]


def test_an_unknown_client_is_told_which_are_known(pool: Pool) -> None:
    done = pool.run("mcp", "--print-config", "emacs")
    assert (done.returncode, "use claude, codex, opencode, qwen, gemini" in done.stderr) == (2, True)


def test_without_the_extra_it_names_the_command_that_installs_it(pool: Pool, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['anyio'] = sys.modules['mcp'] = None;"
        f"sys.argv = ['spool', '--spool', {str(pool.root)!r}, 'mcp']; from spoold.faces.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith(f"Fix: {sys.executable} -m pip install 'spoold[mcp]'\n")
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    assert project["project"]["optional-dependencies"]["mcp"] == ["mcp>=2.3,<3"]


def test_a_spool_that_is_away_is_said_on_stderr(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "spoold", "--spool", str(tmp_path / "none"), "mcp"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (69, "")


def test_it_ends_when_its_client_is_gone(pool: Pool) -> None:
    done = pool.run("mcp")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("words", [("status",), ("submit", "--", "true"), ("mcp", "--print-config", "claude")])
def test_nothing_but_a_server_loads_the_sdk(pool: Pool, words: tuple[str, ...]) -> None:
    code = (
        "import sys, atexit; from spoold.faces.cli import main;"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        f"sys.argv = ['spool', *{words!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=pool.env)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "spoold.faces.cli.app" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in ("mcp", "mcp_types", "uvicorn", "starlette")}
