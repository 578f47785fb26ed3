"""What the command lines printed, read into the normal form: one recording for each of them and each script."""

import json
from pathlib import Path

import pytest

from spoold.agents.adapters.adapter import Errand, Event, Trouble
from tests.agents import playing
from tests.agents.expected import OUTCOMES, complaints, outcome, verdict
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


@pytest.mark.parametrize(("cli", "script"), ALL)
def test_a_recording_reads_as_its_script(cli: str, script: str) -> None:
    played, now = recording(cli, script)
    events, reader = playing.again(cli, played, now)
    made = played.made
    assert not complaints(outcome(cli, script), reader, events, played.code, played.err, made, now)
    if script in ("text", "write"):
        assert len([event for event in events if event.session]) == 1


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
    whole, _ = playing.again(cli, played, now)
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


def test_the_cost_of_a_resumed_session_is_not_counted_twice() -> None:
    played, now = recording("claude", "text")
    costs = []
    for session in ("", "s-1"):
        reader = playing.adapter("claude")
        reader.start(Errand("go on", "/w", "/h", session=session))
        (spent,) = [
            event.usage for line in played.out.splitlines() for event in reader.read(line, now) if event.usage
        ]
        costs.append((spent.cost, spent.cost_usd > 0, spent.tokens_in))
    assert costs == [("estimated", True, 1000), ("unknown", False, 1000)]


def test_opencode_tells_the_session_of_an_attempt_that_only_waited() -> None:
    played, now = recording("opencode", "retry_after")
    reader = playing.adapter("opencode")
    assert not [event for line in played.out.splitlines() for event in reader.read(line, now) if event.session]
    events = [event for _ in range(2) for line in played.log.splitlines() for event in reader.read_log(line, now)]
    assert [event.session[:4] for event in events if event.session] == ["ses_"]
