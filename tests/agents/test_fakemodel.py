"""The scripted model answers in all four dialects, whole and as a stream."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.agents.fakemodel import SCRIPTS, FakeModel

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/m:generateContent")
WRITE: dict[str, Any] = {"properties": {"file_path": {}, "content": {}}}


def body(path: str, *, after_tool: bool = False) -> dict[str, Any]:
    """A request with a tool that writes, in the dialect of a path."""
    function = {"name": "write_file", "parameters": WRITE}
    match path.rsplit("/", 1)[-1]:
        case "completions":
            last = {"role": "tool", "content": "ok"} if after_tool else {"role": "user", "content": "go"}
            return {"model": "m", "messages": [last], "tools": [{"type": "function", "function": function}]}
        case "responses":
            item = {"type": "function_call_output", "output": "ok"} if after_tool else {"type": "message"}
            return {"model": "m", "input": [item], "tools": [{"type": "function", **function}]}
        case "messages":
            part: dict[str, Any] = {"type": "tool_result" if after_tool else "text"}
            tool = {"name": "write_file", "input_schema": WRITE}
            return {"model": "m", "messages": [{"role": "user", "content": [part]}], "tools": [tool]}
    told: dict[str, Any] = {"functionResponse": {}} if after_tool else {"text": "go"}
    return {"contents": [{"parts": [told]}], "tools": [{"functionDeclarations": [function]}]}


def ask(url: str, asked: dict[str, Any]) -> tuple[int, dict[str, str], str]:
    """POST: the status, the headers and the text."""
    request = urllib.request.Request(url, json.dumps(asked).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


@pytest.mark.parametrize("path", PATHS)
def test_it_calls_a_tool_and_then_answers(path: str) -> None:
    with FakeModel(SCRIPTS["write"], "/w") as model:
        _, _, first = ask(model.url + path, body(path))
        _, _, second = ask(model.url + path, body(path, after_tool=True))
        _, _, beside = ask(model.url + path, body(path) | {"tools": []})
    assert "/w/made.txt" in first
    assert "All of it is done." in second
    assert "A title" in beside
    assert [asked for asked, _ in model.asked] == [path] * 3


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_is_server_sent_events_with_the_same_words(path: str) -> None:
    streamed = path.replace(":generateContent", ":streamGenerateContent")
    with FakeModel(SCRIPTS["text"]) as model:
        _, headers, text = ask(model.url + streamed, body(path) | {"stream": True})
    assert headers["content-type"] == "text/event-stream"
    data = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    assert any("All of it is done." in one for one in data)
    assert all(json.loads(one) for one in data)


@pytest.mark.parametrize("path", PATHS)
def test_an_error_has_its_status_its_words_and_its_headers(path: str) -> None:
    with FakeModel(SCRIPTS["retry_after"]) as model:
        status, headers, text = ask(model.url + path, body(path))
    assert (status, headers["retry-after"]) == (429, "3600")
    assert "Rate limit reached." in text


def test_an_error_may_come_only_so_often() -> None:
    with FakeModel(SCRIPTS["overloaded"]) as model:
        assert [ask(model.url + PATHS[0], body(PATHS[0]))[0] for _ in range(2)] == [503, 200]


def test_it_is_found_on_loopback_only_and_knows_no_other_path() -> None:
    with FakeModel(SCRIPTS["text"]) as model:
        assert model.url.startswith("http://127.0.0.1:")
        assert ask(model.url + "/elsewhere", {})[0] == 404
