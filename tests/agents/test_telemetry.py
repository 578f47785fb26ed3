"""What an agent tells of itself in spans comes into the result, short and masked, and no post hurts the attempt."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.adapters.adapter import Errand
from spoold.agents.attempt import agent_telemetry
from spoold.agents.attempt.agent_telemetry import (
    BYTES_MAX,
    ENDPOINT,
    POST_MAX,
    SPANS_MAX,
    TEXT_MAX,
    Kept,
    Receiver,
    listening,
)
from spoold.agents.configuration.profiles import Profile
from spoold.agents.process.interfaces import Bare
from spoold.agents.process.turns import Scene
from tests.agents import playing
from tests.agents.attempts import Desk

JSON = {"Content-Type": "application/json"}
SECRET = "tr0ub4dor-and-3-horses"
POSTS = """
import json, os, sys, urllib.request
sys.stdin.read()
url = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
span = {"traceId": "f" * 32, "spanId": "00000000000000a1", "name": "llm", "kind": 3, "startTimeUnixNano": "5",
        "endTimeUnixNano": "9", "attributes": [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}}]}
post = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
if url:
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(url + "/v1/traces", json.dumps(post).encode(), kind)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        assert answer.status == 200
open("out.md", "w").write(url)
print("done with it", os.environ.get("TRACEPARENT"), os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL"))
"""

ERRAND = Errand("x", "/w", "/h")
SCENE = Scene(Bare(), "/w", "/h", {}, lambda: False, lambda: None)


def span(span_id: str = "a1" * 8, **more: Any) -> dict[str, Any]:
    made = {"traceId": "f" * 32, "spanId": span_id, "name": "x", "kind": 1, "startTimeUnixNano": "5"}
    return {**made, "endTimeUnixNano": "9", **more}


def post(*spans: Any, service: str = "claude-code") -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def told(*spans: Any, clean: Any = str) -> dict[str, Any]:
    kept = Kept(clean)
    kept.take(post(*spans))
    field: dict[str, Any] = kept.field().get("trace", {})
    return field


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    if made.socket.fileno() != -1:
        made.close()


def ask(receiver: Receiver, verb: str, path: str, body: Any = b"", headers: Any = JSON, **more: Any) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", receiver.server_port, timeout=20)
    try:
        connection.request(verb, path, body, headers, **more)
        return connection.getresponse().status
    finally:
        connection.close()


def kept(receiver: Receiver) -> list[str]:
    return [one["span_id"] for one in receiver.close().get("trace", {}).get("spans", [])]


# What is kept.


def test_a_span_is_kept_in_plain_words() -> None:
    attributes = [
        {"key": "a", "value": {"stringValue": "x"}},
        {"key": "b", "value": {"intValue": "12"}},
        {"key": "c", "value": {"boolValue": True}},
        {"key": "d", "value": {"doubleValue": 1}},
        {"key": "e", "value": {"arrayValue": {}}},
        {"key": "thread.id", "value": {"intValue": 1}},
    ]
    first = span(attributes=attributes, kind="SPAN_KIND_CLIENT", status={"code": 2, "message": "no"})
    second = span("B2" * 8, parentSpanId="a1" * 8, startTimeUnixNano=6)
    assert told(first, second) == {
        "spans": [
            {
                "span_id": "a1" * 8,
                "name": "x",
                "kind": 3,
                "start": 5,
                "end": 9,
                "attributes": {"a": "x", "b": 12, "c": True, "d": 1.0},
                "error": "no",
                "service": "claude-code",
            },
            {
                "span_id": "b2" * 8,
                "name": "x",
                "kind": 1,
                "start": 6,
                "end": 9,
                "service": "claude-code",
                "parent": "a1" * 8,
            },
        ]
    }


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        {},
        {"resourceSpans": 7},
        {"resourceSpans": [7, {"scopeSpans": [{"spans": [7, {}]}, 8]}]},
        post(span("x" * 16), span(7), span(endTimeUnixNano=None)),  # type: ignore[arg-type]
        post(span(startTimeUnixNano="1" * 30), span(startTimeUnixNano=1 << 80), span(startTimeUnixNano=True)),
    ],
    ids=str,
)
def test_what_is_no_span_is_passed_over(bad: Any) -> None:
    made = Kept()
    made.take(bad)
    made.take(post(span(attributes=[7, {"key": 7}, {"key": "k", "value": 7}], status=7, kind="nothing", name=7)))
    assert made.field() == {
        "trace": {
            "spans": [
                {"span_id": "a1" * 8, "name": "", "kind": 1, "start": 5, "end": 9, "service": "claude-code"},
            ]
        }
    }


def test_answers_of_a_model_and_long_spans_are_kept_first_and_the_tree_stays_one() -> None:
    noise = [span(f"{n:016x}", parentSpanId="e" * 16) for n in range(1, 2 * SPANS_MAX)]
    long = span("e" * 16, parentSpanId="d" * 16, endTimeUnixNano="99")
    usage = [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}}]
    answer = span("f" * 16, parentSpanId="c" * 16, endTimeUnixNano="5", attributes=usage)
    short = span("c" * 16, parentSpanId="e" * 16, endTimeUnixNano="6")
    field = told(answer, short, *noise, long, answer)
    ids = {one["span_id"]: one for one in field["spans"]}
    assert (len(ids), field["dropped"]) == (SPANS_MAX, SPANS_MAX + 2)
    assert ids["f" * 16]["parent"] == "e" * 16, "what was between them is not kept"
    assert "parent" not in ids["e" * 16], "and above it there is only the attempt"
    assert "c" * 16 not in ids


def test_parents_that_go_round_are_none() -> None:
    noise = [span(f"{n:016x}", endTimeUnixNano="900") for n in range(1, SPANS_MAX)]
    round_ = [span("a" * 16, parentSpanId="b" * 16), span("b" * 16, parentSpanId="a" * 16)]
    below = span("c" * 16, parentSpanId="a" * 16, endTimeUnixNano="999")
    [found] = [one for one in told(*round_, *noise, below)["spans"] if one["span_id"] == "c" * 16]
    assert "parent" not in found


def test_the_bytes_are_bounded() -> None:
    attributes = [{"key": f"k{n}", "value": {"stringValue": "é" * 10_000}} for n in range(1000)]
    field = told(*(span(f"{n:016x}", attributes=attributes, name="n" * 10_000) for n in range(1, 100)))
    assert 10 < len(field["spans"]) < 99
    assert len(json.dumps(field, ensure_ascii=False).encode()) < 2 * BYTES_MAX
    assert len(field["spans"][0]["name"]) == TEXT_MAX


def test_nothing_of_a_secret_stays_where_a_text_is_cut() -> None:
    text = "x" * (TEXT_MAX - 5) + SECRET
    attributes = [{"key": "prompt", "value": {"stringValue": text}}]
    field = told(span(attributes=attributes), clean=lambda text: text.replace(SECRET, "[redacted:KEY]"))
    assert SECRET[:4] not in json.dumps(field)


# Who may post, and what.


def test_a_post_is_taken_whole_or_in_chunks(receiver: Receiver) -> None:
    assert ask(receiver, "POST", f"{receiver.path}/v1/traces", json.dumps(post(span()))) == 200
    pieces = iter([json.dumps(post(span("b2" * 8)))[:20].encode(), json.dumps(post(span("b2" * 8)))[20:].encode()])
    chunked = {**JSON, "Transfer-Encoding": "chunked"}
    assert ask(receiver, "POST", f"{receiver.path}/v1/traces", pieces, chunked, encode_chunked=True) == 200
    assert ask(receiver, "POST", f"{receiver.path}/v1/metrics", json.dumps(post(span("c3" * 8)))) == 200
    assert kept(receiver) == ["a1" * 8, "b2" * 8], "figures and logs are not taken, and nobody is told so"


def test_the_path_is_a_secret(receiver: Receiver) -> None:
    body = json.dumps(post(span()))
    for path in ("/v1/traces", "/", receiver.path, f"{receiver.path}x/v1/traces", f"{receiver.path[:-1]}/v1/traces"):
        assert ask(receiver, "POST", path, body) == 404, path
    assert len(receiver.path) > 30
    with Receiver() as other:
        assert receiver.path != other.path
        other.close()
    assert receiver.server_address[0] == "127.0.0.1"
    assert kept(receiver) == []


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", JSON, 400),
        (b"not json", JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b"{}", {"Content-Type": "application/x-protobuf"}, 415),
        (b"{}", {**JSON, "Content-Encoding": "gzip"}, 415),
        (b"", {**JSON, "Content-Length": str(POST_MAX + 1)}, 413),
        (b"", {**JSON, "Content-Length": "-1"}, 411),
        (b"", {**JSON, "Content-Length": "9" * 99}, 411),
        (b"ffffffff\r\n", {**JSON, "Transfer-Encoding": "chunked"}, 413),
        (b"x\r\n", {**JSON, "Transfer-Encoding": "chunked"}, 400),
        (b"1\r\nxx\r\n", {**JSON, "Transfer-Encoding": "chunked"}, 400),
    ],
    ids=str,
)
def test_what_is_no_post_is_refused(receiver: Receiver, body: bytes, headers: dict[str, str], status: int) -> None:
    assert ask(receiver, "POST", f"{receiver.path}/v1/traces", body, headers) == status
    assert ask(receiver, "POST", f"{receiver.path}/v1/traces", json.dumps(post(span()))) == 200, "and it goes on"
    assert kept(receiver) == ["a1" * 8]


@pytest.mark.parametrize("verb", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "CONNECT", "NONSENSE"])
def test_only_posts_are_answered(receiver: Receiver, verb: str) -> None:
    assert ask(receiver, verb, f"{receiver.path}/v1/traces") == 501


def test_all_posts_together_are_bounded(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(post(span()))
    receiver.spend(agent_telemetry.ALL_MAX - len(body))
    assert ask(receiver, "POST", f"{receiver.path}/v1/traces", body) == 200
    assert ask(receiver, "POST", f"{receiver.path}/v1/traces", body) == 413


def test_a_client_that_is_slow_is_cut_off(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_telemetry, "POST_S", 0.5)
    head = f"POST {receiver.path}/v1/traces HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
    began, cut = time.monotonic(), threading.Event()
    with socket.create_connection(("127.0.0.1", receiver.server_port), timeout=20) as slow:
        slow.sendall(head.encode())

        def drip() -> None:
            while not cut.is_set():
                try:
                    slow.sendall(b" ")
                except OSError:
                    return
                cut.wait(0.05)

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            slow.recv(1000)
        except ConnectionError:
            pass
        finally:
            cut.set()
            thread.join()
    assert time.monotonic() - began < 10


def test_many_that_say_nothing_keep_nobody_waiting_at_the_end(receiver: Receiver) -> None:
    silent = [
        socket.create_connection(("127.0.0.1", receiver.server_port), timeout=20)
        for _ in range(2 * agent_telemetry.AT_ONCE)
    ]
    try:
        began = time.monotonic()
        assert kept(receiver) == []
        assert time.monotonic() - began < 2
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", receiver.server_port), timeout=5)
    finally:
        for one in silent:
            one.close()


def test_garbage_and_endless_headers_are_no_fault(receiver: Receiver, capfd: pytest.CaptureFixture[str]) -> None:
    for data in (b"\x00\xff\n\n", b"POST\r\n\r\n", b"A" * 100_000 + b"\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", receiver.server_port), timeout=20) as one:
            try:
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)
                one.recv(1000)
            except OSError:
                continue
    assert ask(receiver, "POST", f"{receiver.path}/v1/traces", json.dumps(post(span()))) == 200
    assert kept(receiver) == ["a1" * 8]
    assert capfd.readouterr() == ("", ""), "the log of an attempt is the agent's"


# Around an attempt.


def test_only_a_profile_that_wants_it_has_it(tmp_path: Path) -> None:
    ended = Desk(tmp_path, POSTS).run(prompt="Go.")
    assert (ended.code, "trace" in ended.result) == (0, False), ended.said
    assert (tmp_path / "attempt" / "work" / "out.md").read_text() == ""


def test_the_spans_are_in_the_result(tmp_path: Path) -> None:
    desk = Desk(tmp_path, POSTS, {"trace": True}, env={"TRACEPARENT": "00-1-2-3"})
    ended = desk.run(prompt="Go.")
    assert (ended.code, ended.result["outcome"]) == (0, "done"), ended.said
    assert ended.result["text"] == "done with it 00-1-2-3 http/json"
    [found] = ended.result["trace"]["spans"]
    assert (found["span_id"], found["attributes"]) == ("00000000000000a1", {"gen_ai.usage.input_tokens": 7})


def test_where_the_owner_has_them_sent_elsewhere_they_are_left_alone(tmp_path: Path) -> None:
    said = {"trace": True, "env": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}}
    ended = Desk(tmp_path, POSTS, said).run(prompt="Go.")
    assert (ended.code, "trace" in ended.result) == (0, False)
    assert "its spans are not taken: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT has them sent elsewhere" in ended.said


@pytest.mark.parametrize("sandbox", ["bwrap", {"kind": "bwrap", "network": "proxy", "hosts": ["h"]}])
def test_a_sandbox_without_this_machines_network_has_none(sandbox: Any) -> None:
    result, words = dict[str, Any](), list[str]()
    profile = Profile(cli="codex", trace=True, sandbox=sandbox)
    with listening(profile, ERRAND, SCENE, result, words.append) as found:
        assert found == (ERRAND, SCENE)
    assert result == {}
    assert words == [
        'its spans are not taken: its sandbox does not reach this machine (trace needs network = "host")'
    ]


def test_a_sandbox_with_this_machines_network_reaches_it(tmp_path: Path, bubblewrap: None) -> None:
    command = ["/usr/bin/python3", "-c", POSTS]
    said = {"trace": True, "sandbox": {"kind": "bwrap", "network": "host"}, "command": command}
    ended = Desk(tmp_path, "", said, env={"TRACEPARENT": "00-1-2-3"}).run(prompt="Go.")
    assert (ended.code, ended.result["text"]) == (0, "done with it 00-1-2-3 http/json"), ended.said
    assert len(ended.result["trace"]["spans"]) == 1


def test_without_a_port_the_attempt_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(24, os.strerror(24))

    monkeypatch.setattr(agent_telemetry.Receiver, "__init__", full)
    words = list[str]()
    with listening(Profile(cli="codex", trace=True), ERRAND, SCENE, {}, words.append) as found:
        assert found == (ERRAND, SCENE)
    assert words == ["its spans are not taken: there is no port for them (Too many open files)"]


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_the_real_command_lines_tell_what_they_used(
    cli: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if playing.program(cli) is None:
        pytest.skip(f"{cli} is not installed")
    result = dict[str, Any]()
    profile = Profile(cli=cli, trace=True)

    def errand(*args: Any, **more: Any) -> Errand:
        return stack.enter_context(listening(profile, Errand(*args, **more), SCENE, result, print))[0]

    with ExitStack() as stack:
        monkeypatch.setattr(playing, "Errand", errand)
        played = playing.play(cli, "shell", tmp_path)
    assert (played.code, played.made) == (0, ["made.txt"])
    names = {name for one in result["trace"]["spans"] for name in one.get("attributes", ())}
    assert cli == "opencode" or any("input_tokens" in name for name in names), names
    assert ENDPOINT not in json.dumps(result)
