"""How four providers write the same answer: chat completions, responses, messages, and generateContent.

Law: pure. The fields are those that the command lines read; others are left out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

TOKENS_IN, TOKENS_CACHED, TOKENS_OUT = 1200, 200, 34  # in: all of the prompt, with what was cached


@dataclass(frozen=True)
class Reply:
    """An answer: words, or the call of a tool as (name, arguments), or an error."""

    text: str = ""
    call: tuple[str, dict[str, Any]] | None = None
    status: int = 200
    code: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    refuses: bool = False
    resets: int | None = None


class Dialect(Protocol):
    """A provider's way to ask and answer."""

    def serves(self, path: str) -> bool: ...
    def tools(self, body: dict[str, Any]) -> dict[str, set[str]]: ...
    def told(self, body: dict[str, Any]) -> str: ...
    def is_after_tool(self, body: dict[str, Any]) -> bool: ...
    def error(self, reply: Reply) -> dict[str, Any]: ...
    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]: ...
    def stream(self, reply: Reply, body: dict[str, Any]) -> str: ...


def _sse(events: list[tuple[str, dict[str, Any]]], end: str = "") -> str:
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
    return "".join(lines) + end


def _plain(content: object) -> str:
    """The words of a message, without calls of tools and their results."""
    parts: list[dict[str, Any]] = content if isinstance(content, list) else [{"text": content}]
    return " ".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _properties(schema: object) -> set[str]:
    return set(schema.get("properties") or {}) if isinstance(schema, dict) else set()


class Chat:
    """OpenAI's chat completions, which most servers speak."""

    def serves(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def tools(self, body: dict[str, Any]) -> dict[str, set[str]]:
        found = [tool["function"] for tool in body.get("tools") or () if "function" in tool]
        return {tool["name"]: _properties(tool.get("parameters")) for tool in found}

    def told(self, body: dict[str, Any]) -> str:
        return " ".join(_plain(one.get("content")) for one in body["messages"] if one.get("role") == "user")

    def is_after_tool(self, body: dict[str, Any]) -> bool:
        roles = [str(message.get("role")) for message in body["messages"]]
        while roles and roles[-1] == "assistant":  # a client may put words into the model's mouth
            roles.pop()
        return roles[-1:] == ["tool"]

    def error(self, reply: Reply) -> dict[str, Any]:
        return {"error": {"message": reply.message, "type": reply.code, "code": reply.code, "param": None}}

    def _usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": TOKENS_IN,
            "completion_tokens": TOKENS_OUT,
            "total_tokens": TOKENS_IN + TOKENS_OUT,
            "prompt_tokens_details": {"cached_tokens": TOKENS_CACHED},
        }

    def _message(self, reply: Reply) -> tuple[dict[str, Any], str]:
        if reply.call:
            name, arguments = reply.call
            function = {"name": name, "arguments": json.dumps(arguments)}
            one = {"index": 0, "id": "call_1", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [one]}, "tool_calls"
        return {"role": "assistant", "content": reply.text}, "content_filter" if reply.refuses else "stop"

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        message, finish = self._message(reply)
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return self._frame(body, "chat.completion", [choice]) | {"usage": self._usage()}

    def stream(self, reply: Reply, body: dict[str, Any]) -> str:
        message, finish = self._message(reply)
        kind = "chat.completion.chunk"
        said = self._frame(body, kind, [{"index": 0, "delta": message, "finish_reason": None}])
        ended = self._frame(body, kind, [{"index": 0, "delta": {}, "finish_reason": finish}])
        spent = self._frame(body, kind, []) | {"usage": self._usage()}
        return _sse([("", said), ("", ended), ("", spent)], "data: [DONE]\n\n")

    def _frame(self, body: dict[str, Any], kind: str, choices: list[Any]) -> dict[str, Any]:
        model = body.get("model", "")
        return {"id": "chatcmpl-1", "object": kind, "created": 1700000000, "model": model, "choices": choices}


class Responses:
    """OpenAI's responses, which codex speaks."""

    def serves(self, path: str) -> bool:
        return path.endswith("/responses")

    def tools(self, body: dict[str, Any]) -> dict[str, set[str]]:
        tools: list[dict[str, Any]] = body.get("tools") or []
        for space in [tool for tool in tools if tool.get("type") == "namespace"]:
            tools = [*tools, *({**tool, "name": f"{space['name']}.{tool['name']}"} for tool in space["tools"])]
        found = [tool for tool in tools if tool.get("type") == "function"]
        return {tool["name"]: _properties(tool.get("parameters")) for tool in found}

    def told(self, body: dict[str, Any]) -> str:
        return " ".join(_plain(one.get("content")) for one in body["input"] if one.get("role") == "user")

    def is_after_tool(self, body: dict[str, Any]) -> bool:
        return str(body["input"][-1].get("type", "")).endswith("_output")

    def error(self, reply: Reply) -> dict[str, Any]:
        error: dict[str, Any] = {"message": reply.message, "type": reply.code, "code": reply.code, "param": None}
        return {"error": error | ({"resets_at": reply.resets} if reply.resets else {})}

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        spent = {
            "input_tokens": TOKENS_IN,
            "input_tokens_details": {"cached_tokens": TOKENS_CACHED},
            "output_tokens": TOKENS_OUT,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": TOKENS_IN + TOKENS_OUT,
        }
        frame = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": body.get("model", "")}
        return frame | {"status": "completed", "output": [self._item(reply)], "usage": spent}

    def _item(self, reply: Reply) -> dict[str, Any]:
        if reply.call:
            space, _, name = reply.call[0].rpartition(".")
            call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed"}
            call |= {"namespace": space} if space else {}
            return call | {"name": name, "arguments": json.dumps(reply.call[1])}
        part = {"type": "refusal", "refusal": reply.text} if reply.refuses else _words(reply.text)
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}

    def stream(self, reply: Reply, body: dict[str, Any]) -> str:
        whole = self.whole(reply, body)
        begun = whole | {"status": "in_progress", "output": [], "usage": None}
        item = whole["output"][0]
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": item | {"status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        return _sse([(event["type"], event | {"sequence_number": number}) for number, event in enumerate(events)])


def _words(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


class Messages:
    """Anthropic's messages."""

    def serves(self, path: str) -> bool:
        return path.endswith("/messages")

    def tools(self, body: dict[str, Any]) -> dict[str, set[str]]:
        return {tool["name"]: _properties(tool.get("input_schema")) for tool in body.get("tools") or ()}

    def told(self, body: dict[str, Any]) -> str:
        return " ".join(_plain(one.get("content")) for one in body["messages"] if one.get("role") == "user")

    def is_after_tool(self, body: dict[str, Any]) -> bool:
        content = body["messages"][-1].get("content")
        return isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)

    def error(self, reply: Reply) -> dict[str, Any]:
        kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
        kind = kinds.get(reply.status, "overloaded_error")
        return {"type": "error", "error": {"type": kind, "message": reply.message}}

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        stop = "tool_use" if reply.call else "refusal" if reply.refuses else "end_turn"
        frame = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "")}
        spent = {"input_tokens": TOKENS_IN - TOKENS_CACHED, "output_tokens": TOKENS_OUT}
        spent |= {"cache_read_input_tokens": TOKENS_CACHED, "cache_creation_input_tokens": 0}
        return frame | {"content": [self._part(reply)], "stop_reason": stop, "stop_sequence": None, "usage": spent}

    def _part(self, reply: Reply) -> dict[str, Any]:
        if reply.call:
            name, arguments = reply.call
            return {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
        return {"type": "text", "text": reply.text}

    def stream(self, reply: Reply, body: dict[str, Any]) -> str:
        whole = self.whole(reply, body)
        part = whole["content"][0]
        if reply.call:
            begun: dict[str, Any] = part | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
        else:
            begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}
        ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ending, "usage": whole["usage"]},
            {"type": "message_stop"},
        ]
        return _sse([(event["type"], event) for event in events])


class Contents:
    """Google's generateContent."""

    def serves(self, path: str) -> bool:
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def tools(self, body: dict[str, Any]) -> dict[str, set[str]]:
        found = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]
        return {one["name"]: _properties(one.get("parametersJsonSchema") or one.get("parameters")) for one in found}

    def told(self, body: dict[str, Any]) -> str:
        return " ".join(_plain(one.get("parts")) for one in body["contents"] if one.get("role") == "user")

    def is_after_tool(self, body: dict[str, Any]) -> bool:
        return any("functionResponse" in part for part in body["contents"][-1].get("parts") or ())

    def error(self, reply: Reply) -> dict[str, Any]:
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}
        error: dict[str, Any] = {"code": reply.status, "message": reply.message}
        error["status"] = names.get(reply.status, "UNAVAILABLE")
        if "retry-after" in reply.headers:
            delay = f"{reply.headers['retry-after']}s"
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
        return {"error": error}

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        part: dict[str, Any] = {"text": reply.text}
        if reply.call:
            part = {"functionCall": {"name": reply.call[0], "args": reply.call[1]}}
        finish = "SAFETY" if reply.refuses else "STOP"
        spent = {"promptTokenCount": TOKENS_IN, "candidatesTokenCount": TOKENS_OUT}
        spent |= {"cachedContentTokenCount": TOKENS_CACHED, "totalTokenCount": TOKENS_IN + TOKENS_OUT}
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": finish}
        return {"candidates": [candidate], "usageMetadata": spent, "modelVersion": "fake", "responseId": "r1"}

    def stream(self, reply: Reply, body: dict[str, Any]) -> str:
        return _sse([("", self.whole(reply, body))])


DIALECTS: tuple[Dialect, ...] = (Chat(), Responses(), Messages(), Contents())
