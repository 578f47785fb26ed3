"""Any command as an agent: it reads its prompt on standard input, and says what it wants known in lines of its own.

    SPOOL:COMPLETED {"text": "what was done"}
    SPOOL:FAILED {"reason": "the tests do not start", "fault": "transient"}
    SPOOL:BLOCKED {"reason": "the ticket names no branch"}
    SPOOL:QUESTION {"text": "Which branch?", "choices": ["main", "next"]}
    SPOOL:PROGRESS {"text": "3 of 12 files"}
    SPOOL:USAGE {"tokens_in": 1200, "tokens_out": 80, "tokens_cached": 0, "cost_usd": 0.01}
    SPOOL:SESSION {"id": "a1b2"}

Every other line is the agent's own words. In its command {model}, {max_tokens}, {temperature}, {session},
{workspace} and {home} are filled in.

Law: as of all adapters. A line that begins as one of these and holds no JSON object is taken for words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from spoold.agents.adapters.adapter import Counting, Errand, Event, Fault, Start, Trouble, Usage
from spoold.protocol import codec
from spoold.protocol.amount import is_amount

PREFIX = "SPOOL:"
VERBS = ("COMPLETED", "FAILED", "BLOCKED", "QUESTION", "PROGRESS", "USAGE", "SESSION")
_FIELD = re.compile(r"\{(?:model|max_tokens|temperature|session|workspace|home)\}")
_FAULTS: tuple[Fault, ...] = get_args(Fault)


class Generic:
    """The adapter of a command that nobody knows but its owner."""

    name: ClassVar[str] = "generic"
    program: ClassVar[str] = ""
    package: ClassVar[str] = ""
    takes: ClassVar[tuple[str, ...]] = ()
    by_model: ClassVar[tuple[str, ...]] = ()
    asks_at: ClassVar[Mapping[str, str]] = {}
    address: ClassVar[str] = ""
    recorded: ClassVar[str] = "its own line protocol"
    counting: ClassVar[Counting] = "sum"
    resumes: ClassVar[bool] = True

    def start(self, errand: Errand) -> Start:
        """Return the command of the profile, with the prompt on its standard input."""
        values = {
            "{model}": errand.model,
            "{max_tokens}": "" if errand.max_tokens is None else str(errand.max_tokens),
            "{temperature}": "" if errand.temperature is None else f"{errand.temperature:g}",
            "{session}": errand.session,
            "{workspace}": errand.workspace,
            "{home}": errand.home,
        }
        words = tuple(_filled(word, values) for word in (*errand.command, *errand.args))
        return Start(words, stdin=errand.prompt)

    def read(self, line: str, now: float) -> list[Event]:
        """Return what a line says."""
        verb, said = _parsed(line)
        if said is None:
            return [Event(text=line)] if line.strip() else []
        text = str(said.get("text") or said.get("reason") or "")
        if verb == "USAGE":
            return [Event(verb=verb, said=said, usage=_usage(said))]
        if verb == "SESSION":
            return [Event(verb=verb, said=said, session=str(said.get("id") or ""))]
        if verb == "FAILED":
            return [Event(verb=verb, said=said, trouble=_trouble(said, text, now))]
        if verb == "BLOCKED":
            return [Event(verb=verb, said=said, trouble=Trouble("refusal", text or "it says that it is blocked"))]
        return [Event(verb=verb, said=said, text=text, done=verb == "COMPLETED")]

    def read_log(self, line: str, now: float) -> list[Event]:
        """Return what a line of its stderr says: nothing that is known."""
        return []

    def ended(self, code: int, errors: str) -> Trouble | None:
        """Return what its end says: the exit codes of a handler mean the same here."""
        if code == 75:
            return Trouble("rate", f"exit code 75{_last(errors)}")
        return Trouble("transient", f"exit code {code}{_last(errors)}") if code else None


def make() -> Generic:
    """Return one for a new attempt."""
    return Generic()


def _filled(word: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda found: values[found[0]], word)


def _parsed(line: str) -> tuple[str, Mapping[str, Any] | None]:
    if not line.startswith(PREFIX):
        return "", None
    verb, _, rest = line[len(PREFIX) :].strip().partition(" ")
    if verb not in VERBS:
        return "", None
    if not rest.strip():
        return verb, {}
    said, end = codec.load_next(rest, 0) or (None, 0)
    return (verb, said) if isinstance(said, dict) and not rest[end:].strip() else ("", None)


def _usage(said: Mapping[str, Any]) -> Usage:
    cost = said.get("cost_usd")
    known = is_amount(cost)
    counts = [said.get(name) for name in ("tokens_in", "tokens_out", "tokens_cached")]
    tokens_in, tokens_out, cached = (int(count) if count is not None and is_amount(count) else 0 for count in counts)
    return Usage(
        tokens_in,
        tokens_out,
        cached,
        cost_usd=float(cost) if known and cost is not None else 0.0,
        cost="reported" if known else "unknown",
    )


def _trouble(said: Mapping[str, Any], text: str, now: float) -> Trouble:
    fault: Fault = next((one for one in _FAULTS if one == said.get("fault")), "transient")
    after = said.get("retry_after_s")
    until = now + float(after) if is_amount(after) and after is not None else None
    return Trouble(fault, text or "it says that it failed", until)


def _last(errors: str) -> str:
    lines = errors.strip().splitlines()
    return f": {lines[-1].strip()[:300]}" if lines else ""
