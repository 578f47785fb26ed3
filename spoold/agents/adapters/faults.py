"""Which class an error has: from its words and its HTTP status, for all command lines alike.

Law: pure. What is said decides before the status, since providers give 400 and 429 for many things. What nothing is
known about is transient: another attempt costs little, and a wrong "never again" costs the task.
"""

from __future__ import annotations

import re

from spoold.agents.adapters import resets
from spoold.agents.adapters.adapter import Fault, Trouble

# A wait longer than this is not slept through in an attempt: a rate that opens later is a quota.
LONG_S = 120.0
MESSAGE_LIMIT = 500
_WORDS: tuple[tuple[Fault, tuple[str, ...]], ...] = (
    (
        "context",
        (
            r"context[ _-]?(length|window)",
            "contextoverflow",
            "maximum context",
            "prompt is too long",
            "input (token count|is too long)",
            "exceeds? the (maximum|limit).{0,40}tokens",
            "reduce the length",
        ),
    ),
    (
        "quota",
        (
            "usage[ _]?limit",
            "insufficient[_ ](quota|balance|credit|funds)",
            "quota (is |was |has been )?(exceeded|exhausted|reached)",
            "exceeded your (current )?quota",
            "(session|weekly|hourly|daily|monthly|[0-9]-hour) limit",
            "(hit|reached) your limit",
            "limit reached.{0,40}resets",
            "out of credits",
            "credit balance",
            "terminalquotaerror",
            "billing details",
            "payment required",
            "free tier limit",
            "spend(ing)? limit",
            "exhausted your (capacity|daily quota)",
            "使用上限|限额",
        ),
    ),
    (
        "budget",
        (r"max(imum)?[ _-]?(number of )?(session[ _-]?)?turns", "max[ _-]?budget", "turn limit", "maximum steps"),
    ),
    (
        "rate",
        ("rate[ _-]?limit", "too many requests", "resource[_ ]exhausted", "throttl", "(tokens|requests) per min"),
    ),
    (
        "auth",
        (
            "api[ _]?key",
            "unauthori[sz]ed",
            "authenticat",
            "invalid (auth|token|credentials)",
            "not logged in",
            "please (log ?in|run /login)",
            "oauth token",
            "login required",
        ),
    ),
    (
        "refusal",
        ("content[ _-]?filter", "content policy", "usage polic", r"\brefus(al|ed to|es to)\b", "prohibited_content"),
    ),
    (
        "permission",
        (
            "permission[ _](denied|rejected|to use)",
            "rejected permission",
            "rejected the tool",
            "user denied",
            "denied by",
            "requires? (approval|permission|confirmation)",
            "(not|n't) (granted|allowed to)",
            "prevents? you from using",
            "not in workspace|outside (of )?the (allowed )?workspace",
        ),
    ),
    (
        "transient",
        (
            "overload",
            "unavailable",
            "timed? ?out",
            "econn|enotfound|eai_again",
            "socket|connection|network|fetch failed",
            "stream (error|disconnected)",
            "internal (server )?error",
            "bad gateway",
            "reconnecting",
        ),
    ),
    (
        "input",
        (
            "model.{0,60}(not (found|exist|supported)|does not exist)",
            "no such model|providermodelnotfound",
            "(unknown|unexpected|invalid)[_ ](model|option|argument|request)",
            "bad request",
        ),
    ),
)
# How providers refuse a history that is not whole, since the program was killed between a call and its answer:
# claude-code #1894, #8484; codex #19661; opencode #5750; goose #2951; the others from the providers' references.
_TORN_WORDS = (
    "tool_use.{0,20}ids? (was|were) found without.{0,20}tool_result",
    "unexpected.{0,5}tool_use_id.{0,5}found in.{0,5}tool_result",
    "tool_calls.{0,5} must be followed by tool messages",
    "role.{0,8}tool.{0,5} must be a response to",
    "tool_call_ids? did not have response",
    "no tool (output|call) found for function call",
    "encrypted_content",
    "without its required (following|preceding) item",
    "signature.{0,5} in.{0,5}thinking",
    "function (call turn|response parts)",
    "roles must alternate",
)
_TORN = re.compile("|".join(_TORN_WORDS), re.IGNORECASE)
_FAULTS = tuple((fault, re.compile("|".join(words), re.IGNORECASE)) for fault, words in _WORDS)
_TRANSIENT = dict(_FAULTS)["transient"]
_STATUSES: dict[int, Fault] = {400: "input", 401: "auth", 402: "quota", 403: "auth", 404: "input", 413: "context"}
_STATUSES |= {422: "input", 429: "rate"}
_STATED = re.compile(r"\b(?:status(?: code)?:?|error:?|code\"?:)\s*(4\d\d|5\d\d)\b", re.IGNORECASE)


def classify(text: str, status: int | None = None) -> Fault:
    """Return the class of an error. status: its HTTP status, where it is known; else it is looked for in the text."""
    for fault, words in _FAULTS:
        if words.search(text):
            return fault
    if status is None:
        found = _STATED.search(text)
        status = int(found[1]) if found else None
    return _STATUSES.get(status or 0, "transient")


def passes(text: str) -> bool:
    """Whether an error is one of the network or of a server by its own words, and so may pass by itself."""
    stated = _STATED.search(text)
    return classify(text) == "transient" and bool(_TRANSIENT.search(text) or (stated and stated[1].startswith("5")))


def torn(text: str) -> bool:
    """Whether an error is about a history that is not whole."""
    return bool(_TORN.search(text))


def trouble(
    text: str, now: float, *, status: int | None = None, until: float | None = None, final: bool = True
) -> Trouble:
    """Return an error, classed, with the time at which it is over: `until`, else what its text says."""
    fault = classify(text, status)
    if fault in ("quota", "rate"):
        until = until if until is not None else resets.said(text, now)
        if fault == "rate" and until is not None and until - now > LONG_S:
            fault = "quota"
    else:
        until = None
    return Trouble(fault, " ".join(text.split())[:MESSAGE_LIMIT], until, final)


def retrying(text: str, now: float, *, status: int | None = None, again: float | None = None) -> Trouble:
    """Return an error after which the program tries again by itself, at `again`, epoch s. It is final where that is
    in vain: a spent quota, or a key or request that stays wrong. A short pause does not say when a quota opens."""
    found = trouble(text, now, status=status, final=False)
    until = found.until
    if until is None and found.fault in ("quota", "rate") and again is not None:
        long = again - now > LONG_S
        until = again if long or found.fault == "rate" else None
    fault: Fault = "quota" if found.fault == "rate" and until is not None and until - now > LONG_S else found.fault
    vain = fault in ("quota", "auth", "input", "context", "budget")
    return Trouble(fault, found.message, until, final=vain)
