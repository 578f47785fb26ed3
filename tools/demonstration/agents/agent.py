"""A very small coding agent, for machines on which no real one can be installed: python agent.py URL

It reads its prompt on standard input, asks a model over HTTP what to do, does it with a shell, and says so in the
line protocol of the adapter `generic`. Law: it uses nothing but Python's own library. Touches: the network,
processes, the terminal.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

TURNS = 10
TOOL = {
    "type": "function",
    "function": {"name": "bash", "parameters": {"properties": {"command": {"type": "string"}}}},
}


def main(url: str) -> int:
    """Work until the model calls no tool any more; returns the exit status."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": sys.stdin.read()}]
    for _ in range(TURNS):
        try:
            answer = ask(url, messages)
        except urllib.error.HTTPError as error:
            wait = error.headers.get("retry-after")
            fault = {"reason": json.load(error)["error"]["message"], "fault": "quota" if wait else "transient"}
            say("FAILED", fault | ({"retry_after_s": int(wait)} if wait else {}))
            return 1
        used = answer["usage"]
        cached = used["prompt_tokens_details"]["cached_tokens"]
        counts = {"tokens_in": used["prompt_tokens"] - cached, "tokens_out": used["completion_tokens"]}
        say("USAGE", counts | {"tokens_cached": cached})
        message = answer["choices"][0]["message"]
        if not message.get("tool_calls"):
            say("COMPLETED", {"text": message["content"]})
            return 0
        messages.append(message)
        for call in message["tool_calls"]:
            line = json.loads(call["function"]["arguments"])["command"]
            words, nothing = ["sh", "-c", line], subprocess.DEVNULL
            ran = subprocess.run(words, stdin=nothing, capture_output=True, text=True, check=False)
            said = f"exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    say("FAILED", {"reason": f"not done after {TURNS} turns"})
    return 1


def ask(url: str, messages: list[dict[str, Any]]) -> Any:
    """What the model says to a conversation. Errors: HTTPError."""
    body = json.dumps({"model": "scripted", "messages": messages, "tools": [TOOL]}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def say(verb: str, said: dict[str, Any]) -> None:
    """A line for the adapter."""
    print(f"SPOOL:{verb} {json.dumps(said)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
