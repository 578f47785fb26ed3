"""How the command lines are started: what a prompt goes through, and whose settings count."""

import json
import tomllib

import pytest

from spoold.agents.adapters.adapter import Errand
from tests.agents import playing

PROMPT = "--version\n" + "x" * 1_000_000


def errand(**more: object) -> Errand:
    """An errand with a prompt that no argument could hold."""
    return Errand(PROMPT, "/w", "/h", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("cli", playing.CLIS)
def test_a_prompt_goes_to_stdin_whole(cli: str) -> None:
    start = playing.adapter(cli).start(errand())
    assert start.stdin == PROMPT
    assert not [argument for argument in start.argv if len(argument) > 1000]
    assert start.argv[0] == cli


@pytest.mark.parametrize("cli", playing.CLIS)
def test_all_that_it_writes_is_in_the_private_home(cli: str) -> None:
    start = playing.adapter(cli).start(errand())
    assert start.env["HOME"] == "/h"
    assert all(path.startswith("/h/") for path in (*start.files, *start.logs))
    for path, text in start.files.items():
        if path.endswith(".json"):
            json.loads(text)


@pytest.mark.parametrize("cli", playing.CLIS)
def test_model_session_turns_and_arguments_of_a_profile_are_passed_on(cli: str) -> None:
    given = errand(model="m-1", session="s-1", max_turns=7, args=("--more", "1"), command=("/bin/x", "y"))
    start = playing.adapter(cli).start(given)
    assert start.argv[:2] == ("/bin/x", "y")
    assert "m-1" in start.argv
    assert "s-1" in start.argv
    at = start.argv.index("--more")
    assert start.argv[at + 1] == "1"
    if cli != "codex":
        assert "7" in [
            *start.argv,
            *(str(_steps(text)) for path, text in start.files.items() if path.endswith(".json")),
        ]


def _steps(text: str) -> object:
    settings = json.loads(text)
    agent, model = settings.get("agent", {}), settings.get("model", {})
    return agent.get("build", {}).get("steps") or model.get("maxSessionTurns")


@pytest.mark.parametrize("cli", playing.CLIS)
def test_the_variables_of_a_profile_win(cli: str) -> None:
    start = playing.adapter(cli).start(errand(env={"HOME": "/other", "KEY": "k"}))
    assert start.env["HOME"] == "/other"
    assert start.env["KEY"] == "k"


def test_opencode_asks_where_the_base_url_leads() -> None:
    start = playing.adapter("opencode").start(
        errand(model="a/b", env={"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": "k"})
    )
    assert start.argv[start.argv.index("-m") + 1] == "spool/a/b"
    settings = json.loads(start.files["/h/.config/opencode/opencode.json"])
    assert "a/b" in settings["provider"]["spool"]["models"]
    assert "http://h/v1" not in json.dumps(settings)
    assert "ask" not in settings["permission"].values()
    plain = playing.adapter("opencode").start(errand(model="anthropic/c"))
    assert plain.argv[plain.argv.index("-m") + 1] == "anthropic/c"


def test_codex_gets_settings_that_are_toml() -> None:
    start = playing.adapter("codex").start(errand(env={"OPENAI_BASE_URL": "http://h/v1"}))
    settings = [start.argv[at + 1] for at, argument in enumerate(start.argv) if argument == "-c"]
    read = tomllib.loads("\n".join(settings))
    assert read["model_providers"]["spool"]["base_url"] == "http://h/v1"
    assert read["approval_policy"] == "never"
    assert start.argv[-1] == "-"


def test_codex_may_commit_in_a_repository_of_its_own_and_in_no_other() -> None:
    codex = playing.adapter("codex")
    setting = 'sandbox_workspace_write.writable_roots=["/w/.git"]'
    for session in ("", "s-1"):
        assert setting in codex.start(errand(git="/w/.git", session=session)).argv
    assert not [word for word in codex.start(errand()).argv if "writable_roots" in word]


def test_qwen_is_never_told_to_wait_for_ever() -> None:
    assert "QWEN_CODE_UNATTENDED_RETRY" not in playing.adapter("qwen").start(errand()).env


@pytest.mark.parametrize(
    ("cli", "words"),
    [
        ("opencode", ["-s", "s-1"]),
        ("codex", ["s-1", "-"]),
        ("qwen", ["--resume", "s-1"]),
        ("claude", ["--resume", "s-1"]),
        ("gemini", ["--resume", "s-1"]),
    ],
)
def test_a_session_is_resumed_in_the_words_of_each(cli: str, words: list[str]) -> None:
    argv = playing.adapter(cli).start(errand(session="s-1")).argv
    at = argv.index(words[0])
    assert list(argv[at : at + 2]) == words
    assert (argv[1:3] == ("exec", "resume")) == (cli == "codex")


def test_claude_reads_no_settings_of_the_repository() -> None:
    argv = playing.adapter("claude").start(errand()).argv
    assert argv[argv.index("--setting-sources") + 1] == "user"
    assert "--strict-mcp-config" in argv


@pytest.mark.parametrize("cli", playing.CLIS)
def test_tokens_and_temperature_go_where_each_takes_them(cli: str) -> None:
    start = playing.adapter(cli).start(errand(model="m-1", max_tokens=777, temperature=0.25))
    bare = playing.adapter(cli).start(errand(model="m-1"))
    for value, name in (("777", "max_tokens"), ("0.25", "temperature")):
        places = (*start.argv, *start.files.values(), *start.env.values())
        assert any(value in text for text in places) is (name in playing.adapter(cli).takes), name
        assert not any(value in text for text in (*bare.argv, *bare.files.values(), *bare.env.values()))
    assert "model" in playing.adapter(cli).takes


def test_gemini_knows_them_only_together_with_a_model() -> None:
    start = playing.adapter("gemini").start(errand(max_tokens=777))
    assert not any("777" in text for text in start.files.values())
    assert playing.adapter("gemini").by_model == ("max_tokens", "temperature")


@pytest.mark.parametrize("cli", playing.CLIS)
def test_the_place_of_its_spans_is_a_secret_that_no_argument_holds(cli: str) -> None:
    start = playing.adapter(cli).start(errand(trace="http://127.0.0.1:9/secret"))
    assert not any("secret" in argument for argument in start.argv)
    assert "secret" not in str(playing.adapter(cli).start(errand()))


def test_claude_and_codex_are_told_to_tell_their_spans() -> None:
    traced, bare = (playing.adapter("claude").start(errand(trace=url)).env for url in ("http://h/x", ""))
    assert set(traced) - set(bare) == {"CLAUDE_CODE_ENABLE_TELEMETRY", "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA"}
    start = playing.adapter("codex").start(errand(trace="http://h/x"))
    exporter = tomllib.loads(start.files["/h/.codex/config.toml"])["otel"]["trace_exporter"]
    assert exporter == {"otlp-http": {"endpoint": "http://h/x/v1/traces", "protocol": "json"}}


def test_qwen_gives_its_commands_no_terminal() -> None:
    start = playing.adapter("qwen").start(errand())
    settings = json.loads(start.files[start.env["QWEN_CODE_SYSTEM_SETTINGS_PATH"]])
    assert settings["tools"]["shell"] == {"enableInteractiveShell": False}, "nobody is there to answer"


def test_opencode_asks_no_model_for_a_title() -> None:
    first, later = (playing.adapter("opencode").start(errand(session=session)) for session in ("", "s-1"))
    assert "--title" in first.argv
    assert "--title" not in later.argv


def test_opencode_is_told_that_an_unknown_model_takes_a_temperature() -> None:
    env = {"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": "k"}
    start = playing.adapter("opencode").start(errand(model="a/b", temperature=0.0, env=env))
    settings = json.loads(start.files["/h/.config/opencode/opencode.json"])
    assert settings["provider"]["spool"]["models"]["a/b"] == {"temperature": True}
    assert settings["agent"] == {"build": {"temperature": 0.0}}
