"""What each script of the model must come to, in the normal form, whichever command line played it.

Law: one table for what was recorded and for what is played now; the exceptions are those that the guide names.
"""

from dataclasses import dataclass, replace

from spoold.agents.adapters.adapter import Adapter, Event, Fault, Trouble, Usage
from spoold.agents.process.transcript import Transcript

HOUR_S = 3600.0


@dataclass(frozen=True)
class Outcome:
    """fault: of the attempt, None for a good end; opens: s from the recording to the reset time, None for any; tool:
    that one was called; made: that the file is there; words: in what the agent said; seen: of an error that is
    survived; maybe: a good end is right, too; tokens: in, out and cached."""

    fault: Fault | None = None
    opens: tuple[float, float] | None = None
    tool: bool = False
    made: bool = False
    words: str = ""
    seen: Fault | None = None
    maybe: bool = False
    tokens: tuple[int, int, int] | None = None


ASK = (1000, 34, 200)  # what one question to the model uses


def tokens(asks: int) -> tuple[int, int, int]:
    """What so many questions to the model use."""
    return asks * ASK[0], asks * ASK[1], asks * ASK[2]


DONE = Outcome(words="All of it is done.", tokens=ASK)
OUTCOMES: dict[str, Outcome] = {
    "text": DONE,
    "write": replace(DONE, tool=True, made=True, tokens=tokens(2)),
    # how often a subagent asks differs: what the model counted is in the recording
    "subagent": replace(DONE, tool=True, made=True, tokens=None),
    "subagents": replace(DONE, tool=True, made=True, tokens=None),
    "background": replace(DONE, tool=True, made=True, tokens=None),
    "outside": Outcome("permission", tool=True),
    "retry_after": Outcome("quota", opens=(HOUR_S - 120, HOUR_S + 120)),
    "usage_limit": Outcome("quota", opens=(-HOUR_S, 24 * HOUR_S)),
    "insufficient_quota": Outcome("quota"),
    "auth": Outcome("auth"),
    "context": Outcome("context"),
    "refusal": Outcome("refusal"),
    "rate": DONE,
    "overloaded": DONE,
}
REFUSED_IN_WORDS = Outcome(words="I can't help with that.")
EXCEPTIONS: dict[tuple[str, str], Outcome] = {
    # its sandbox says no to the command; it does not always print an event for a command that ends at once
    ("codex", "outside"): Outcome("permission", maybe=True),
    ("codex", "write"): replace(DONE, made=True, tokens=(2000, 68, 400)),
    # it lets its tools write everywhere: only the sandbox of a profile holds it
    ("qwen", "outside"): replace(DONE, tool=True, tokens=(2000, 68, 400)),
    # a model that refuses is a model that answers, for them
    ("qwen", "refusal"): REFUSED_IN_WORDS,
    ("gemini", "refusal"): REFUSED_IN_WORDS,
    # with an API key it knows no quota, only rates; it tries ten times, and says so each time
    ("claude", "retry_after"): Outcome("rate"),
    ("claude", "usage_limit"): Outcome(seen="rate"),
    ("claude", "insufficient_quota"): Outcome(seen="rate"),
    ("claude", "rate"): replace(DONE, seen="rate"),
    ("claude", "overloaded"): replace(DONE, seen="transient"),
    # it ends with its last word, and its subagents with it
    ("codex", "background"): replace(DONE, tool=True, tokens=None),
    ("codex", "rate"): replace(DONE, seen="rate"),
    ("gemini", "overloaded"): replace(DONE, seen="transient"),
}


def outcome(cli: str, script: str) -> Outcome:
    """What is expected."""
    return EXCEPTIONS.get((cli, script), OUTCOMES[script])


def verdict(reader: Adapter, events: list[Event], code: int, errors: str) -> Trouble | None:
    """The error of an attempt: the first final one, else what its end says. A killed attempt has no other."""
    final = [event.trouble for event in events if event.trouble is not None and event.trouble.final]
    return final[0] if final else None if code < 0 else reader.ended(code, errors)


def usage(reader: Adapter, events: list[Event], base: Usage | None = None) -> tuple[int, int, int]:
    """The tokens of an attempt, as they come into its result; base: what its session had used before."""
    heard = Transcript(reader.counting, base=base)
    for event in events:
        heard.take(event)
    spent = heard.usage or Usage()
    return (spent.tokens_in, spent.tokens_out, spent.tokens_cached) if spent.sure else (-1, -1, -1)


def complaints(
    expected: Outcome, reader: Adapter, events: list[Event], code: int, errors: str, made: list[str], now: float
) -> list[str]:
    """What is not as expected, in words."""
    found = verdict(reader, events, code, errors)
    fault = found.fault if found else None
    wrong = []
    if fault != expected.fault and not (fault is None and expected.maybe):
        wrong.append(f"its error is {found}, and not of the class {expected.fault}")
    if expected.opens and found:
        low, high = expected.opens
        if found.until is None or not now + low <= found.until <= now + high:
            wrong.append(f"it opens at {found.until}, now is {now}")
    if expected.words not in "\n".join(event.text for event in events):
        wrong.append(f"it did not say {expected.words!r}")
    if expected.tool and not any(event.tool for event in events):
        wrong.append("it called no tool")
    if expected.made and "made.txt" not in made:
        wrong.append("the file is not there")
    if expected.seen and not any(one.trouble and one.trouble.fault == expected.seen for one in events):
        wrong.append(f"no error of the class {expected.seen} was told")
    if expected.tokens and usage(reader, events) != expected.tokens:
        wrong.append(f"it used {usage(reader, events)} tokens, and not {expected.tokens}")
    if not expected.fault and expected.words and not any(event.done for event in events):
        wrong.append("it did not say that it is done")
    return wrong
