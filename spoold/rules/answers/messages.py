"""What the agent of a task was told: each message, and the attempts that were given it.

Law: a result says what its attempt has had, and what it was given in vain. Of an attempt that runs its report
of progress says it; of one that died without a result nobody knows, and the next attempt gets the message again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.protocol.result import Result
from spoold.protocol.told import JUDGED, Message, names_in, told_in, untold_in
from spoold.rules.gates.requested import Requested, tells


@dataclass(frozen=True, slots=True)
class Told:
    """One message. name: of it; by: who told it; at: RFC 3339, by the sender's clock; attempts: those that were
    given it, or whose conversation had it; none while none was."""

    name: str
    by: str
    at: str
    text: str
    attempts: tuple[int, ...] = ()


def when(progress: Any, *, runs: bool) -> str:
    """Return when the agent of a task that has not ended is given a new message. progress: the last report of the
    attempt that runs."""
    if runs and not (isinstance(progress, dict) and progress.get(JUDGED) is True):
        return "when its next turn begins"
    accepted = ", if its work, which is judged now, is not accepted" if runs else ""
    return f"with the prompt of its next attempt{accepted}"


def messages(
    standing: Sequence[Requested], results: Iterable[Result], running: int | None, progress: Any
) -> list[Told]:
    """Return what the agent of a task was told, the oldest first. running: the attempt that runs, None for none;
    progress: its last report.
    """
    known: dict[str, Message] = {}
    attempts: dict[str, list[int]] = {}
    for result in results:
        for one in told_in(result.output):
            known[one.name] = one
            attempts.setdefault(one.name, []).append(result.attempt)
        for one, given in untold_in(result.output):
            known.setdefault(one.name, one)
            if given:
                attempts.setdefault(one.name, []).append(result.attempt)
    for asked in tells(standing):
        known.setdefault(asked.unique, Message(asked.unique, asked.by, asked.at, asked.tell))
    for name in names_in(progress) if running is not None else ():
        attempts.setdefault(name, []).append(running or 0)
    found = sorted(known.values(), key=lambda one: one.name)
    return [
        Told(one.name, one.by, one.at, one.text, tuple(dict.fromkeys(attempts.get(one.name, ())))) for one in found
    ]
