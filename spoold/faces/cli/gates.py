"""What keeps tasks waiting, by the numbers of the gates in a picture: a line for each gate that has any.

Law: figures of the picture alone. A gate or a field that another release adds or leaves out is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spoold.protocol.amount import amount, some

# So many names a line.
NAMED = 5


def lines(gates: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines on what is held, asked, closed, full or locked, and the command that says more."""
    if held := _count(gates, "hold", "waiting"):
        yield f"held by people: {amount(held, 'task')}{_oldest(gates, 'hold')}; `spool release ID` lets one go"
    questions, waiting = _count(gates, "approval", "questions"), _count(gates, "approval", "waiting")
    if questions or waiting:
        for_it = f"{amount(waiting, 'task')} wait{'s' if waiting == 1 else ''} for an approval"
        oldest = _oldest(gates, "approval")
        yield f"{amount(questions, 'question')} to people, {for_it}{oldest}; `spool asks` lists them"
    if closed := [_closed(name, said) for name, said in _rows(gates, "quota")]:
        yield f"closed: limit {some(closed, NAMED)}; `spool limits` says why"
    if full := [f"{name} ({used} of {most})" for name, used, most in _full(gates, "limit", "max")]:
        yield f"at its max: limit {some(full, NAMED)}; `spool limits` shows all"
    rates = gates.get("rate", {})
    if spent := [
        f"{name}{_until(rates[name], 'opens')} ({used} of {most})"
        for name, used, most in _full(gates, "rate", "count")
    ]:
        yield f"at its rate: limit {some(spent, NAMED)}; `spool limits` shows all"
    if full := [f"{name} ({used} of {most})" for name, used, most in _full(gates, "class", "slots")]:
        yield f"all own slots in use: class {some(full, NAMED)}"
    if short := [name for name, said in _rows(gates, "budget") if said.get("closed") or _awaited(said)]:
        yield f"too little left: budget {some(short, NAMED)}; `spool budget` shows all"
    if locked := _count(gates, "locks", "waiting"):
        holders = amount(_count(gates, "locks", "held"), "holder")
        yield f"locked out: {amount(locked, 'task')}, by {holders}; `spool locks` shows who waits for whom"
    batches = [(name, _whole(said.get("open"))) for name, said in _rows(gates, "after_batch")]
    if awaited := [f"{name} ({amount(left, 'task')})" for name, left in batches if left]:
        yield f"awaited to end: batch {some(awaited, NAMED)}"


def _rows(gates: Mapping[str, Mapping[str, Any]], gate: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, said) for name, said in gates.get(gate, {}).items() if isinstance(said, dict)]


def _count(gates: Mapping[str, Mapping[str, Any]], gate: str, field: str) -> int:
    return _whole(gates.get(gate, {}).get(field))


def _oldest(gates: Mapping[str, Mapping[str, Any]], gate: str) -> str:
    oldest = gates.get(gate, {}).get("oldest")
    return f", the oldest is {oldest['id']}" if isinstance(oldest, dict) and oldest.get("id") else ""


def _closed(name: str, said: Mapping[str, Any]) -> str:
    if "trying" in said:
        return f"{name} (tried by {said['trying'] or 'the next task'})"
    return f"{name}{_until(said, 'until')}"


def _until(said: Mapping[str, Any], field: str) -> str:
    return f" until {said[field]}" if said.get(field) else ""


def _full(gates: Mapping[str, Mapping[str, Any]], gate: str, most: str) -> Iterator[tuple[str, int, int]]:
    """Yield each name of which all units are in use, its use, and how much there is."""
    for name, said in _rows(gates, gate):
        used, there = _whole(said.get("used")) + _whole(said.get("doubtful")), _whole(said.get(most))
        if used and used >= there:
            yield name, used, there


def _awaited(said: Mapping[str, Any]) -> bool:
    periods = said.get("periods")
    return any(isinstance(one, dict) and one.get("waits") for one in (periods if isinstance(periods, list) else ()))


def _whole(value: Any) -> int:
    return value if type(value) is int else 0
