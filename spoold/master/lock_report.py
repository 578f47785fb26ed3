"""Who holds locks and who waits for them, for the snapshot: `gates.locks`.

Law: it is for people, and decides nothing. However many there are, only the first SHOWN of each kind are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from spoold.master.desk import Desk
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lifecycle import State
from spoold.protocol.name_parts import key_in
from spoold.protocol.names import key, parse_task
from spoold.rules.locks.seen import LONG

SHOWN = 200


def gates(desk: Desk, beats: Mapping[str, Heartbeat]) -> dict[str, Any]:
    """Return the part `gates` of the snapshot: nothing of a gate that concerns no task."""
    book = desk.backlog.locks.book
    if not (book.held or len(book.line)):
        return {}
    holders = [_holder(desk, key, beats) for key in islice(sorted(book.held), SHOWN)]
    aside = desk.backlog.locks.aside()
    firm = desk.backlog.locks.firm()
    waiting = sum(count for _, _, count in (*aside, *firm))
    rows = [_waiter(desk, *row) for row in sorted([*aside, *firm], key=lambda row: row[0])[:SHOWN]]
    return {"locks": {"held": len(book.held), "waiting": waiting, "holders": holders, "waiters": rows}}


def _holder(desk: Desk, holder: str, beats: Mapping[str, Heartbeat]) -> dict[str, Any]:
    book, place = desk.backlog.locks.book, desk.view.where.get(holder)
    reserved = book.reserved.get(holder)
    demand = book.held[holder] if reserved is None else reserved.demand
    row: dict[str, Any] = {"key": holder, "known": demand is not None}
    if demand is not None:
        row |= {"write": demand.write, "read": demand.read}
    if holder.startswith("+"):
        row["reservation"] = holder[1:]
    if reserved is not None:
        against = None if reserved.granted else book.against(holder)
        row |= {"granted": reserved.granted, "until": reserved.until, "by": reserved.by, "since": reserved.at}
        row |= {"reason": reserved.reason, "task": reserved.task, "behind": against.key if against else ""}
        return row
    name = parse_task(place.name) if place is not None else None
    if place is not None and name is not None:
        row |= {"task": name.id, "attempt": name.attempt, "state": place.state.value}
        if place.state is State.CLAIMED:
            worker = place.directory.partition("/")[2]
            runs = beats[worker].running if worker in beats else ()
            since = next((run.since for run in runs if (key(run.id), run.attempt) == (holder, name.attempt)), "")
            row |= {"worker": worker, "since": since}
        if holder in book.parents:
            row["waits"] = LONG if holder in book.idle else "now"
    return row


def _waiter(desk: Desk, file: str, keeper: str, count: int) -> dict[str, Any]:
    waiter = desk.backlog.locks.book.line.get(key_in(file))
    name = parse_task(file)
    assert name is not None
    row: dict[str, Any] = {"task": name.id, "file": file, "behind": keeper, "tasks": count}
    if waiter is not None:
        row |= {"write": waiter.demand.write, "read": waiter.demand.read, "lane": waiter.lane}
        row["position"] = desk.backlog.locks.book.line.position(waiter.turn) + 1
    return row
