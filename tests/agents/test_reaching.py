"""A sandbox that keeps an agent from its model is named before the first task and in each error; no other is."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.adapters import known_agents
from spoold.agents.configuration.profiles import expand
from spoold.agents.process.confinement import Seen, host_of, may_pass, network_hint, unreached
from spoold.agents.sandbox.sandbox_policy import entry
from spoold.client.spool.capabilities import untested
from tests.agents.attempts import Desk

LOCAL = {"OPENAI_BASE_URL": "http://localhost:8377/v1"}


def proxy(*hosts: str) -> dict[str, Any]:
    return {"kind": "bwrap", "network": "proxy", "hosts": hosts}


@pytest.mark.parametrize("cli", [name for name in known_agents.names() if name != "generic"])
def test_each_known_agent_needs_a_network_and_the_fix_names_its_host(cli: str) -> None:
    """G26: `sandbox = "bwrap"` alone was ok for doctor and worker, and each task failed as "Connection error"."""
    found = unreached(cli, "", "bwrap", {})
    assert found is not None
    assert found.sure
    assert found.problem == f"{cli} asks its model over the network, and the sandbox bwrap has none"
    host = known_agents.make(cli).asks_at.get("") or "HOST OF ITS MODEL"
    assert found.fix == f'sandbox = {{kind = "bwrap", network = "proxy", hosts = ["{host}"]}} in the profile'
    for known in known_agents.make(cli).asks_at.values():
        assert entry(known).port == 443


def test_it_is_no_fault_where_the_agent_can_ask_or_nobody_knows_where() -> None:
    assert unreached("claude", "", "none", {}) is None
    assert unreached("claude", "", {"kind": "bwrap", "network": "host"}, {}) is None
    assert unreached("claude", "", proxy("*.anthropic.com"), {}) is None
    assert unreached("opencode", "acme/big", proxy("models.acme.example"), {}) is None
    assert unreached("generic", "", "bwrap", {}) is None, "it may need none"
    assert unreached("qwen", "", proxy("localhost:8377"), LOCAL) is None


def test_what_an_owner_has_said_is_doubted_and_not_refused() -> None:
    said = unreached("claude", "", {"kind": "bwrap", "network": "none"}, {})
    assert said is not None
    assert not said.sure
    lacks = unreached("opencode", "anthropic/claude-sonnet-5", proxy("api.openai.com", "github.com"), {})
    assert lacks is not None
    assert (lacks.sure, lacks.fix) == (False, 'add "api.anthropic.com" to hosts of the sandbox')
    assert lacks.problem.endswith(
        "at api.anthropic.com, and the sandbox lets it reach only api.openai.com, github.com"
    )
    local = unreached("qwen", "", "bwrap", LOCAL)
    assert local is not None
    assert 'hosts = ["localhost:8377"]' in local.fix, "a sandbox without a network has no localhost of the machine"
    image = unreached("codex", "", {"kind": "podman", "image": "x"}, {})
    assert image is not None
    assert image.fix == 'set network = "host" in the sandbox of the profile'


@pytest.mark.parametrize(
    ("cli", "model", "env", "host"),
    [
        ("claude", "", {"ANTHROPIC_BASE_URL": "https://gate.example"}, "gate.example"),
        ("codex", "gpt-5", {"OPENAI_BASE_URL": "http://10.0.0.1/v1"}, "10.0.0.1:80"),
        ("codex", "", {"OPENAI_BASE_URL": "http://[::1]:99/v1"}, "[::1]:99"),
        ("codex", "", {"OPENAI_BASE_URL": "http://x:nonsense/"}, ""),
        ("codex", "", {"OPENAI_BASE_URL": "nonsense"}, ""),
        ("codex", "", {"OPENAI_BASE_URL": "https://b\u00fccher.example/v1"}, ""),
        ("codex", "", {"OPENAI_BASE_URL": "https://a..example/v1"}, ""),
        ("codex", "", {"ANTHROPIC_BASE_URL": "https://gate.example"}, "api.openai.com"),
        ("gemini", "g", {}, "generativelanguage.googleapis.com"),
        ("opencode", "openai/gpt-5", {}, "api.openai.com"),
        ("opencode", "", {}, ""),
        ("generic", "x", {}, ""),
    ],
)
def test_where_an_agent_asks_is_what_its_variables_say_or_its_own(
    cli: str, model: str, env: dict[str, str], host: str
) -> None:
    assert host_of(cli, model, env) == host


def test_an_error_names_the_sandbox_where_it_may_be_to_blame() -> None:
    """G26."""
    assert "the sandbox bwrap has none; fix: sandbox = {" in network_hint("claude", "", "bwrap", {}, "it fell silent")
    said = "TypeError: fetch failed"
    assert "lets it reach only a.example" in network_hint("opencode", "x/y", proxy("a.example"), {}, said)
    assert "has no network; if it needs one: sandbox = {" in network_hint("generic", "", "bwrap", {}, said)
    assert network_hint("generic", "", "bwrap", {}, "1 test failed") == ""
    assert network_hint("claude", "", "none", {}, said) == ""


def test_a_worker_says_so_when_it_starts_and_to_everybody_who_asks(caplog: pytest.LogCaptureFixture) -> None:
    """G26."""
    with caplog.at_level(logging.WARNING, "spoold"):
        made = expand({"agents": {"coder": {"cli": "claude", "sandbox": "bwrap"}}}, "w.toml", {})
    words = unreached("claude", "", "bwrap", {})
    assert words is not None
    assert made["handlers"]["coder"]["about"]["warning"] == words.words
    assert f"the agent coder cannot ask its model: {words.words}" in caplog.text
    caplog.clear()
    made = expand({"agents": {"coder": {"cli": "claude", "sandbox": proxy("api.anthropic.com")}}}, "w.toml", {})
    assert "warning" not in made["handlers"]["coder"]["about"]
    assert caplog.text == ""


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("agent", "profile", "told"),
    [
        ("echo 'stream error: Connection error.' >&2; exit 1", {}, True),
        ("sleep 60", {"start_timeout": 0.5}, True),
        ("echo 'stream error: Connection error.' >&2; exit 1", {"sandbox": "none"}, False),
    ],
)
def test_an_attempt_that_got_no_answer_names_its_sandbox(
    tmp_path: Path, agent: str, profile: dict[str, Any], told: bool
) -> None:
    """G26: it said "Connection error", or hung until its first word was due, and nothing named the sandbox."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "codex").write_text(f"#!/bin/sh\n{agent}\n")
    (tools / "codex").chmod(0o755)
    said = {"cli": "codex", "command": [], "sandbox": "bwrap", "env": {"PATH": f"{tools}:/usr/bin:/bin"}}
    made = Desk(tmp_path, "", {**said, **profile})
    ended = made.run(prompt="x")
    assert ended.result["outcome"] == ("failed" if told else "later"), ended.said
    (reason,) = ended.result["reasons"]
    assert ('hosts = ["api.openai.com"]' in reason) is told
    assert ("the sandbox bwrap has none" in reason) is told


@pytest.mark.parametrize(
    ("version", "recorded", "old"),
    [
        ("0.15.10", "qwen 0.24.4, played", True),
        ("0.24.3", "qwen 0.24.4, played", True),
        ("0.24.4", "qwen 0.24.4, played", False),
        ("0.100.0", "qwen 0.24.4, played", False),
        ("1.0", "qwen 0.24.4, played", False),
        ("nightly", "qwen 0.24.4, played", False),
        ("", "", False),
        ("1.2.3", "its own line protocol", False),
    ],
)
def test_a_version_older_than_the_recorded_one_is_untested(version: str, recorded: str, old: bool) -> None:
    """G37: doctor said ok to qwen 0.15.10, whose quota went unseen."""
    said = untested("qwen", version, recorded)
    assert bool(said) is old
    if old:
        assert said.startswith(f"qwen {version} is older than 0.24.4, of which its output is known")
        assert "a spent quota" in said


AWAY = 'echo \'{"type":"turn.failed","error":{"message":"%s"}}\'; exit 1'


@pytest.mark.parametrize(
    ("words", "later"),
    [
        ("Reconnecting... waiting for network (Connection failed: error sending request)", True),
        ("unexpected status 503 Service Unavailable: upstream connect error", True),
        ("stream disconnected before completion", True),
        ("exceeded retry limit, last status: 500", True),
        ("unexpected status 401 Unauthorized: no such key", False),
        ("Missing environment variable: `OPENAI_API_KEY`.", False),
        ("The model `gpt-9` does not exist or you do not have access to it.", False),
        ("something nobody knows", False),
    ],
)
def test_an_attempt_whose_model_never_answered_costs_nothing_while_that_may_pass(
    tmp_path: Path, words: str, later: bool
) -> None:
    """An outage of more than 12 minutes failed every task: three minutes each, and three retries."""
    made = codex(tmp_path, AWAY % words)
    ended = made.run(prompt="x")
    assert (ended.result["outcome"] == "later", ended.code == 75) == (later, later), ended.said
    if later:
        assert ended.result["reasons"] == [f"away: its model did not answer: {words}"]
        assert ended.result["retry_after_s"] == 15
        made.previous = {"attempt": 1, "output": ended.result}
        assert made.run(prompt="x").result["retry_after_s"] == 30, "and it rests for longer each time"


@pytest.mark.parametrize(
    "worked",
    [
        '{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"ls","exit_code":0}}',
        '{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":0,"output_tokens":7}}',
    ],
)
def test_one_that_was_answered_before_is_charged(tmp_path: Path, worked: str) -> None:
    ended = codex(tmp_path, f"echo '{worked}'; {AWAY % 'stream disconnected'}").run(prompt="x")
    assert (ended.result["outcome"], ended.code) == ("failed", 1)


def test_what_a_sandbox_keeps_from_its_model_does_not_pass_by_itself() -> None:
    away = Seen(
        "Connection failed",
        ('api.x.ai is not in the list. Fix: add "api.x.ai" to hosts in the sandbox of the profile',),
    )
    assert may_pass("codex", "", "none", {}, Seen("Connection failed"))
    assert not may_pass("codex", "", {"kind": "bwrap", "network": "none"}, {}, Seen("Connection failed"))
    assert may_pass("codex", "", proxy("api.openai.com"), {}, away), "its model's host is listed: that was another"
    assert not may_pass("opencode", "", proxy("api.openai.com"), {}, away), "nobody knows where its model is"
    assert not may_pass("generic", "", "none", {}, Seen("Connection failed")), "nor whether its model answered"


KNOCKS = """
import os, socket, sys
sys.stdin.read()
host, _, port = os.environ["HTTPS_PROXY"].rpartition("/")[2].partition(":")
with socket.create_connection((host, int(port))) as way:
    way.sendall(b"CONNECT %s:443 HTTP/1.1\\r\\n\\r\\n")
    way.recv(1000)
print('{"type":"turn.failed","error":{"message":"%s"}}')
sys.exit(1)
"""


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("asks", "listed", "words", "blocked"),
    [
        ("api.openai.com", "github.com", "Connection failed", True),
        ("api.openai.com", "github.com", "no such model", True),
        ("telemetry.example", "api.openai.com", "something odd", False),
    ],
)
def test_one_whose_own_list_lacks_its_model_begins_with_that_and_is_not_tried_again(
    tmp_path: Path, asks: str, listed: str, words: str, blocked: bool
) -> None:
    """It began with what the program made of it, and was tried three times more."""
    made = codex(tmp_path, "")
    (tmp_path / "tools" / "codex").write_text(f"#!{sys.executable}\n{KNOCKS % (asks, words)}")
    shown = [str(Path(sys.executable).resolve().parents[1])]
    made.profile = {**made.profile, "sandbox": {**proxy(listed), "show": shown}}
    ended = made.run(prompt="x")
    (reason,) = ended.result["reasons"]
    finding = f'{asks}:443 is not in the list of hosts of this sandbox. Fix: add "{asks}" to hosts'
    assert finding in reason
    assert (ended.code == 65, ended.result["outcome"] == "blocked") == (blocked, blocked), ended.said
    assert reason.startswith(f"refusal: {finding}") is blocked
    assert reason.endswith(f"codex said: {words}") is blocked


def codex(path: Path, agent: str) -> Desk:
    """An attempt with a codex that is a line of the shell."""
    tools = path / "tools"
    tools.mkdir()
    (tools / "codex").write_text(f"#!/bin/sh\ncat >/dev/null\n{agent}\n")
    (tools / "codex").chmod(0o755)
    return Desk(path, "", {"cli": "codex", "command": [], "env": {"PATH": f"{tools}:/usr/bin:/bin"}})
