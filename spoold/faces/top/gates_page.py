"""What keeps tasks from starting: limits, budgets, locks, pauses.

Law: figures of the leader's last snapshot. A field that another release adds or leaves out is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spoold.faces.top.page import Page
from spoold.faces.top.source import Room, Source
from spoold.faces.top.text_layout import LIMIT, TASK, TYPE, Behind, Cells, Column, Picture, Word, bar, text_of, word
from spoold.protocol.amount import amount

_BAR = 10
_LIMITS = (
    Column("LIMIT", 12, 40),
    Column("KIND", 6, 8, rank=2),
    Column("USED", 6, 16, right=True),
    Column("", _BAR, _BAR, rank=1),
    Column("STATE", 10, 120),
)
_BUDGETS = (
    Column("BUDGET", 10, 40),
    Column("PERIOD", 8, 30, rank=2),
    Column("OF", 6, 12),
    Column("SPENT", 8, 14, right=True),
    Column("HELD", 6, 14, rank=3, right=True),
    Column("LEFT", 8, 14, right=True),
    Column("", _BAR, _BAR, rank=4),
    Column("WAITS", 5, 40, rank=5),
)
_LOCKS = (
    Column("", 6, 6),
    Column("WHO", 16, 60),
    Column("LOCKS", 20, 100),
    Column("TASKS", 5, 7, rank=1, right=True),
)
_NOTHING: Mapping[str, Any] = {}


def _gates(source: Source) -> Mapping[str, Mapping[str, Any]]:
    picture = source.view.picture
    return picture.gates if picture is not None else {}


def _rows(source: Source, gate: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    said = _gates(source).get(gate, _NOTHING)
    yield from ((name, one) for name, one in sorted(said.items()) if isinstance(one, dict))


class Limits(Page):
    """Limits, rates, classes, closed quotas, open breakers and pauses."""

    name = "limits"
    about = "limits, rates, classes, breakers, pauses"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return all of them, with what is used."""
        cells = [*_paused(source), *_used(source), *_breakers(source)]
        return self.tabled("limits", _LIMITS, cells, room)


def _used(source: Source) -> Iterator[Cells]:
    closed = dict(_rows(source, "quota"))
    for gate, most in (("limit", "max"), ("rate", "count"), ("class", "slots")):
        for name, said in _rows(source, gate):
            used, there = _number(said.get("used")), said.get(most)
            state = _closed(closed.pop(name)) if gate == "limit" and name in closed else Word("open", "mute")
            lent = f", {said['lent']} lent" if said.get("lent") else ""
            doubt = f" +{said['doubtful']}?" if said.get("doubtful") else ""
            figures = Word(f"{used:g}{doubt}/{'-' if there is None else there}{lent}")
            if there is not None and used >= _number(there) > 0 and state.text == "open":
                state = Word(f"full{_until(said, 'opens')}", "low")
            shown = Word(text_of(bar(used, _number(there), _BAR)), "bar")
            yield Cells(
                (word(name), Word(gate, "mute"), figures, shown, state), f"{gate} {name}", Behind(LIMIT, name)
            )
    for name, said in closed.items():
        words = (word(name), Word("quota", "mute"), Word("-"), Word(""), _closed(said))
        yield Cells(words, f"quota {name}", Behind(LIMIT, name))


def _closed(said: Mapping[str, Any]) -> Word:
    if "trying" in said:
        return word(f"closed, tried by {said['trying'] or 'the next task'}", "alert")
    return word(f"closed{_until(said, 'until')}", "alert")


def _until(said: Mapping[str, Any], field: str) -> str:
    return f" until {said[field]}" if said.get(field) else ""


def _breakers(source: Source) -> Iterator[Cells]:
    for kind, said in _rows(source, "breaker"):
        if said.get("until") or "trying" in said:
            until = f"until {said['until']}, and then one task tries it"
            now = f"tried by {said['trying'] or 'the next task'}" if "trying" in said else until
            text = f"open, {now}: {said.get('failures', 0)} in a row failed, the last: {said.get('last', '')}"
            words = (word(kind), Word("breaker", "mute"), Word("-"), Word(""), word(text, "alert"))
            yield Cells(words, f"breaker {kind}", Behind(TYPE, kind))


def _paused(source: Source) -> Iterator[Cells]:
    picture = source.view.picture
    if picture is None:
        return
    told = {str(one.get("target")): one for one in getattr(picture, "pauses", ()) if isinstance(one, dict)}
    if picture.halted:
        words = (Word("everything"), Word("halt", "mute"), Word("-"), Word(""), Word("halted", "alert"))
        yield Cells(words, "halt", Behind(TYPE, ""))
    for kind in picture.paused:
        said = told.get(kind, _NOTHING)
        name = "everything" if kind == "+all" else kind
        state = word(f"paused{_until(said, 'until')}: {said.get('told', 'see the journal')}", "alert")
        words = (word(name), Word("pause", "mute"), Word("-"), Word(""), state)
        yield Cells(words, f"pause {kind}", Behind(TYPE, "" if kind == "+all" else kind))


class Budgets(Page):
    """What is spent, held for running tasks, and left."""

    name = "budgets"
    about = "budgets: spent, held, left"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return a row for each limit of each period."""
        return self.tabled("budgets", _BUDGETS, list(_budgets(source)), room)


def _budgets(source: Source) -> Iterator[Cells]:
    for name, said in _rows(source, "budget"):
        limits = said.get("limits") if isinstance(said.get("limits"), dict) else {}
        for period in said.get("periods") or ():
            if not isinstance(period, dict):
                continue
            spent, held = period.get("spent") or {}, period.get("reserved") or {}
            for of, limit in (limits or {}).items():
                used, kept = _number(spent.get(of)), _number(held.get(of))
                most = _number(limit)
                left = most - used - kept
                words = (
                    word(name),
                    word(str(period.get("period", "")).replace(":", " ", 1)),
                    word(of, "mute"),
                    Word(f"{used:.6g}"),
                    Word(f"{kept:.6g}", "mute"),
                    Word(f"{left:.6g}", "alert" if left <= 0 else ""),
                    Word(text_of(bar(used + kept, most, _BAR)), "bar"),
                    word(period.get("waits") or said.get("closed") or "", "low"),
                )
                yield Cells(words, f"{name} {period.get('period')} {of}")


class Locks(Page):
    """Who holds locks, and who waits for them."""

    name = "locks"
    about = "who holds locks, and who waits for them"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return holders, then those that wait; of many the leader names the first."""
        said = _gates(source).get("locks", _NOTHING)
        cells = []
        for part, told in (("holders", "holds"), ("waiters", "waits")):
            for number, one in enumerate(said.get(part) or ()):
                if not isinstance(one, dict):
                    continue
                task = str(one.get("task") or "")
                who = f"{task} behind {one.get('told', '')}" if part == "waiters" else one.get("told", task)
                words = (
                    Word(told, "mute" if part == "holders" else "low"),
                    word(who),
                    word(one.get("locks", "")),
                    word(one.get("tasks", "")),
                )
                cells.append(Cells(words, f"{part} {number}", Behind(TASK, task) if task else None))
        held, waits = (int(_number(said.get(name))) for name in ("held", "waiting"))
        return self.tabled("locks", _LOCKS, cells, room, note=f"{held} held, {amount(waits, 'task')} waiting")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
