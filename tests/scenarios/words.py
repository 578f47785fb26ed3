"""How a scenario words what it sees, without what differs from run to run."""

from __future__ import annotations

import re

from spoold.protocol.event import Event
from tests.support.tokens import Token

# Names hold the moment of admission; a suffix made from it stands in ids that nobody chose.
_ORDER = re.compile(r"(?<=[./])[0-9a-z]{10}-[0-9a-z]{1,6}\.")
_MADE = re.compile(r"-[0-9a-z]{8}(?=[-.])")
# What of the detail of an event is worth a word.
TOLD = ("drop", "code", "node", "name", "subject")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def normalised(text: str) -> str:
    """Without what holds the moment at which something was admitted."""
    return _MADE.sub("-*", _ORDER.sub("*.", text))


def described(token: Token) -> str:
    """A task in one line: `a completed attempt=2 by=w1`; for a failed one with the code."""
    words = [token.id, token.state, f"attempt={token.name.attempt}"]
    counts = ("failures", "crashes")
    words += [f"{count}={getattr(token.name, count)}" for count in counts if getattr(token.name, count, 0)]
    if token.branch and token.state == "claimed":
        words.append(f"by={token.branch}")
    if token.branch == "archive":
        words.append("archived")
    if token.result is not None:
        words.append(f"by={token.result['worker_id']}")
        error = token.result["error"]
        words += [f"code={error['code']}"] if error else []
    return " ".join(words)


def told(event: Event) -> str:
    """`w1 FAILED a.1 EXIT_NONZERO`."""
    words = [event.writer, event.event]
    if event.task is not None:
        words.append(event.task if event.attempt is None else f"{event.task}.{event.attempt}")
    detail = event.detail if isinstance(event.detail, dict) else {}
    return normalised(" ".join([*words, *(str(detail[key]) for key in TOLD if key in detail)]) + " ").strip()


def seconds(text: str) -> float:
    """A length of time as scenarios write it: `15s`, `2h`, `+3h`."""
    match = re.fullmatch(r"([+-]?[0-9.]+)([a-z]+)", text.strip())
    assert match is not None, f"not a length of time: {text}"
    return float(match[1]) * _UNITS[match[2]]
