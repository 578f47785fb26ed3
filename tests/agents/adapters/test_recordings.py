"""What the command lines printed, read into the normal form: one recording for each of them and each script."""

import json
import re
from pathlib import Path

import pytest

from spoold.agents.adapters.adapter import Adapter, Errand, Event, Trouble, Usage
from spoold.agents.process.transcript import Transcript
from tests.agents import playing
from tests.agents.expected import ASK, OUTCOMES, complaints, outcome, tokens, usage, verdict
from tests.agents.playing import Played

FIXTURES = Path(__file__).parents[1] / "fixtures"
ALL = [(cli, script) for cli in playing.CLIS for script in OUTCOMES]


def text(cli: str, name: str) -> str:
    """A file of a recording; '' if the program wrote nothing there."""
    path = FIXTURES / cli / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def recording(cli: str, script: str) -> tuple[Played, float]:
    """What was recorded, and when, epoch s."""
    known = json.loads(text(cli, f"{script}.json"))
    out, err, log = (text(cli, f"{script}.{ending}") for ending in ("out", "err", "log"))
    played = Played(known["code"], known["stopped"], known["seconds"], out, err, log, known["made"])
    return played, known["recorded_at"]


def heard(reader: Adapter, events: list[Event]) -> Transcript:
    """What an attempt makes of events."""
    found = Transcript(reader.counting)
    for event in events:
        found.take(event)
    return found


@pytest.mark.parametrize(("cli", "script"), ALL)
def test_a_recording_reads_as_its_script(cli: str, script: str) -> None:
    played, now = recording(cli, script)
    events, reader = playing.again(cli, played, now)
    made = played.made
    assert not complaints(outcome(cli, script), reader, events, played.code, played.err, made, now)
    if script in ("text", "write"):
        assert len([event for event in events if event.session]) == 1


@pytest.mark.parametrize("cli", playing.CLIS)
@pytest.mark.parametrize("script", ["write", "subagent", "subagents", "background"])
def test_what_it_used_is_what_the_model_counted(cli: str, script: str) -> None:
    """G12: claude's subagents doubled its cost and lacked their tokens; those of opencode and codex were missing."""
    played, now = recording(cli, script)
    events, reader = playing.again(cli, played, now)
    asked = json.loads(text(cli, f"{script}.json"))["requests"]
    assert asked > 3 or script == "write"
    lost = [(-1, -1, -1)] if (cli, script) == ("codex", "background") else []  # it ended before its subagents
    assert usage(reader, events) in (tokens(asked), *lost)
    spent = heard(reader, events).usage
    assert spent is not None
    assert spent.cost_usd == pytest.approx(asked * 0.00357 if cli == "claude" else 0.0)


@pytest.mark.parametrize("cli", playing.CLIS)
def test_the_adapter_names_the_version_that_was_recorded(cli: str) -> None:
    versions = {json.loads(text(cli, f"{script}.json"))["version"] for script in OUTCOMES}
    (version,) = versions
    number = next(word for word in version.split() if word[0].isdigit())
    assert number in playing.adapter(cli).recorded


@pytest.mark.parametrize("cli", playing.CLIS)
def test_a_line_that_is_cut_or_strange_says_nothing(cli: str) -> None:
    played, now = recording(cli, "write")
    reader = playing.adapter(cli)
    for line in played.out.splitlines():
        for strange in (
            line[: len(line) // 2],
            "[" + line,
            '{"type":["x"]}',
            '{"type":"never seen"}',
            "{}",
            "",
            "\x00{",
        ):
            for event in reader.read(strange, now) + reader.read_log(strange, now):
                assert isinstance(event, Event)
    assert not [event for event in playing.adapter(cli).read('{"type":"result"', now) if event != Event()]


@pytest.mark.parametrize("cli", playing.CLIS)
def test_an_event_in_the_middle_of_a_line_is_read(cli: str) -> None:
    played, now = recording(cli, "text")
    reader = playing.adapter(cli)
    whole = [event for line in played.out.splitlines() for event in reader.read(line, now)]
    glued = "warning: not json {" + " and ".join(played.out.splitlines()) + " the end"
    one = playing.adapter(cli).read(glued, now)
    assert [event for event in one if event.text or event.usage or event.session] == [
        event for event in whole if event.text or event.usage or event.session
    ]


@pytest.mark.parametrize(("cli", "script"), [("opencode", "retry_after"), ("qwen", "retry_after")])
def test_a_log_of_the_attempt_before_says_nothing(cli: str, script: str) -> None:
    played, now = recording(cli, script)
    assert any(
        event.trouble for line in played.log.splitlines() for event in playing.adapter(cli).read_log(line, now)
    )
    reader = playing.adapter(cli)
    assert not [event for line in played.log.splitlines() for event in reader.read_log(line, now + 600)]


@pytest.mark.parametrize(
    ("cli", "script"), [("opencode", "retry_after"), ("qwen", "usage_limit"), ("codex", "retry_after")]
)
def test_what_is_hidden_stands_in_no_output(cli: str, script: str) -> None:
    """Else the log would not be needed, and nobody would see that it is no longer read."""
    played, now = recording(cli, script)
    reader = playing.adapter(cli)
    told = [event.trouble for line in played.out.splitlines() for event in reader.read(line, now) if event.trouble]
    assert not [trouble for trouble in told if trouble.final or trouble.until is not None]


def test_claude_says_when_its_limit_resets() -> None:
    reader, now = playing.adapter("claude"), 1795620000.0
    events = [
        event for line in text("claude", "limit.documented.out").splitlines() for event in reader.read(line, now)
    ]
    told = [event.trouble for event in events if event.trouble]
    assert told[0] == Trouble("quota", "the limit five_hour is reached", 1795629000.0, final=False)
    assert verdict(reader, events, 1, "") == Trouble(
        "quota", "You've hit your session limit · resets 5:50pm (Europe/Berlin)", 1795629000.0
    )


def test_gemini_says_a_spent_quota_on_stderr() -> None:
    found = playing.adapter("gemini").ended(1, text("gemini", "quota.documented.err"))
    assert found is not None
    assert found.fault == "quota"


def test_an_error_in_a_success_is_no_success() -> None:
    line = json.dumps(
        {"type": "result", "subtype": "success", "is_error": False, "result": "[API Error: Connection error.]"}
    )
    for cli in ("qwen", "claude"):
        reader = playing.adapter(cli)
        events = reader.read(line, 0.0)
        assert [event.trouble.fault for event in events if event.trouble] == ["transient"]
        ended = reader.ended(0, "")
        assert ended is not None
        assert ended.fault == "transient"


@pytest.mark.parametrize("cli", playing.CLIS)
def test_an_end_with_nothing_said_and_nothing_done_is_a_refusal(cli: str) -> None:
    ended = playing.adapter(cli).ended(0, "")
    assert ended is not None
    assert ended.fault == "refusal"


@pytest.mark.parametrize(
    ("cli", "code", "fault"),
    [
        ("gemini", 41, "auth"),
        ("gemini", 42, "input"),
        ("gemini", 53, "budget"),
        ("gemini", 173, "rate"),
        ("qwen", 53, "budget"),
        ("codex", 2, "input"),
        ("claude", 1, "transient"),
        ("opencode", 1, "transient"),
    ],
)
def test_an_exit_code_says_what_nothing_else_did(cli: str, code: int, fault: str) -> None:
    ended = playing.adapter(cli).ended(code, "\nsomething\n    at a place in a stack\n")
    assert ended is not None
    assert (ended.fault, ended.message) == (fault, "something")


def test_a_tool_that_worked_makes_good_for_one_that_was_refused() -> None:
    reader = playing.adapter("claude")

    def answer(*, wrong: bool, says: str) -> str:
        part = {"type": "tool_result", "is_error": wrong, "content": [{"type": "text", "text": says}]}
        return json.dumps({"type": "user", "message": {"content": [part]}})

    assert [
        event.trouble.fault
        for event in reader.read(answer(wrong=True, says="you haven't granted it"), 0.0)
        if event.trouble
    ]
    refused = reader.ended(0, "")
    assert refused is not None
    assert refused.fault == "permission"
    assert not reader.read(answer(wrong=True, says="no such file"), 0.0)
    reader.read(answer(wrong=False, says="written"), 0.0)
    assert reader.ended(0, "") is None


def test_codex_says_in_its_output_that_it_tries_again_though_not_for_how_long() -> None:
    played, now = recording("codex", "retry_after")
    reader = playing.adapter("codex")
    told = [event.trouble for line in played.out.splitlines() for event in reader.read(line, now) if event.trouble]
    assert [(trouble.fault, trouble.until, trouble.final) for trouble in told] == [("rate", None, False)]


@pytest.mark.parametrize("cli", ["claude", "qwen"])
def test_a_session_whose_total_has_lost_what_came_before_is_counted_as_it_is(cli: str) -> None:
    """Its file was torn: the parts of its total say that all of it was used now."""
    played, now = recording(cli, "write")
    events, reader = playing.again(cli, played, now)
    for before in (Usage(*ASK), Usage(1999, 1, 1), Usage(9999, 999, 999)):
        assert usage(reader, events, before) == tokens(2)


GONE = {
    "claude": "No conversation found with session ID: 23024321-2bec-4f71-a4cc-32d36fd42e79",
    "codex": "Error: thread/resume: thread/resume failed: no rollout found for thread id 568f (code -32600)",
    "qwen": "No saved session found with ID 7119ab3e. Run `qwen --resume` without an ID to choose.",
    "gemini": 'Error resuming session: Invalid session identifier "47168ba7".\n  Searched for sessions in /h/chats.',
    "opencode": "\x1b[91m\x1b[1mError: \x1b[0mSession not found",
}


@pytest.mark.parametrize("cli", playing.CLIS)
def test_a_session_that_is_gone_is_known_by_its_words_where_one_was_to_be_resumed(cli: str) -> None:
    """G11: as played; those of claude come in its result, too."""
    for session, fault in (("s-1", "session"), ("", {"gemini": "input"}.get(cli, "transient"))):
        for code in (1, 0) if cli == "opencode" and session else (42 if cli == "gemini" else 1,):
            reader = playing.adapter(cli)
            reader.start(Errand("go on", "/w", "/h", session=session))
            ended = reader.ended(code, f"{GONE[cli]}\n  1: <unknown>\n  2: <unknown>")
            assert ended is not None
            assert ended.fault == fault
            if session:
                assert ended.message == re.sub(r"\x1b\[\d+m", "", GONE[cli].splitlines()[0]), "its line alone"
    said = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": [GONE["claude"]]}
    reader = playing.adapter("claude")
    reader.start(Errand("go on", "/w", "/h", session="s-1"))
    told = [event.trouble for event in reader.read(json.dumps(said), 0.0) if event.trouble]
    assert [trouble.fault for trouble in told] == ["session"]


@pytest.mark.parametrize(
    "words",
    [
        "API Error: 400 messages.19: `tool_use` ids were found without `tool_result` blocks immediately after: t_1",
        "API Error: 400 messages.0.content.0: unexpected tool_use_id found in tool_result blocks: toolu_bdrk",
        "Missing required parameter: 'input[4].encrypted_content'",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        "No tool output found for function call call_1.",
    ],
)
def test_a_history_that_is_not_whole_is_a_lost_session(words: str) -> None:
    """G11: sources are in `error_classes`."""
    for session, fault in (("s-1", "session"), ("", "input")):
        reader = playing.adapter("claude")
        reader.start(Errand("go on", "/w", "/h", session=session))
        said = {"type": "result", "is_error": True, "api_error_status": 400, "result": words}
        told = [event.trouble for event in reader.read(json.dumps(said), 0.0) if event.trouble]
        assert [trouble.fault for trouble in told] == [fault]


def test_claude_without_figures_by_model_has_used_at_least_what_it_says() -> None:
    reader = playing.adapter("claude")
    said = {"type": "result", "result": "ok", "usage": {"input_tokens": 7, "output_tokens": 2}}
    spent = heard(reader, reader.read(json.dumps(said), 0.0)).usage
    assert spent == Usage(7, 2, sure=False)


def test_codex_says_on_stdout_what_its_thread_used_and_not_its_subagents() -> None:
    """Where its log does not come, since another version writes another one."""
    played, now = recording("codex", "write")
    reader = playing.adapter("codex")
    events = [event for line in played.out.splitlines() for event in reader.read(line, now)]
    assert usage(reader, events) == tokens(2)
    reader.start(Errand("go on", "/w", "/h", session="s-1"))
    events = [event for line in played.out.splitlines() for event in reader.read(line, now)]
    assert heard(reader, events).usage is None, "it is the total of a thread that was there before"
    played, now = recording("codex", "subagent")
    reader = playing.adapter("codex")
    events = [event for line in played.out.splitlines() for event in reader.read(line, now)]
    assert usage(reader, events) == (-1, -1, -1)


def test_opencode_whose_log_does_not_come_has_used_more_than_is_known() -> None:
    played, now = recording("opencode", "subagent")
    reader = playing.adapter("opencode")
    events = [event for line in played.out.splitlines() for event in reader.read(line, now)]
    assert usage(reader, events) == (-1, -1, -1)
    spent = heard(reader, events).usage
    assert spent is not None
    assert (spent.tokens_in, spent.sure) == (2000, False)


def test_opencode_tells_the_session_of_an_attempt_that_only_waited() -> None:
    played, now = recording("opencode", "retry_after")
    reader = playing.adapter("opencode")
    assert not [event for line in played.out.splitlines() for event in reader.read(line, now) if event.session]
    events = [event for _ in range(2) for line in played.log.splitlines() for event in reader.read_log(line, now)]
    assert [event.session[:4] for event in events if event.session] == ["ses_"]


def test_a_codex_that_waits_for_a_network_says_so_and_has_no_answer() -> None:
    """It tries for ever. One without a key ends at once, and one whose key is wrong within seconds (`auth`)."""
    played, now = recording("codex", "unreached")
    events, reader = playing.again("codex", played, now)
    found = heard(reader, events)
    assert found.trouble is not None
    assert (found.trouble.fault, found.trouble.final, found.answered) == ("transient", False, False)
    assert "waiting for network" in found.trouble.message
    assert played.stopped == "limit"
    missing = '{"type":"turn.failed","error":{"message":"Missing environment variable: `OPENAI_API_KEY`."}}'
    (event,) = playing.adapter("codex").read(missing, now)
    assert event.trouble is not None
    assert (event.trouble.fault, event.trouble.final) == ("auth", True)
