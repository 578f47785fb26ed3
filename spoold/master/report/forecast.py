"""The tasks that are left, by type and by lane, and the workers for them: the part of the status that looks ahead.

It stands apart from `status_report`, its only user, which is long enough.

Law: it is for people, and decides nothing. However many lanes there are, only the first LANES_JUDGED are compared
with the workers.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from spoold.master.listing import batch_members
from spoold.master.state.leader_state import Desk
from spoold.master.tasks.scheduler import is_halted
from spoold.protocol.amount import amount, some
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lanes import kind_in, parse_lane
from spoold.protocol.names import order_micros, parse_task
from spoold.protocol.request import EVERYTHING
from spoold.protocol.snapshot import TaskCounts, no_tasks
from spoold.rules.cluster.node_status import bounded
from spoold.rules.cluster.throughput import Left
from spoold.rules.gates import breaker_gate, budget_gate
from spoold.rules.gates.budget_gate import picture_of
from spoold.rules.gates.limit_gates import closed_limit
from spoold.rules.gates.resources import CLASS, DEFAULT, LIMIT, RATE, TYPE, kind_counted, shares_of
from spoold.rules.gates.standing_requests import closed_by
from spoold.rules.workers.matching import LEAVING
from spoold.store.store import stamp

LANES_JUDGED = 50
# Of so many resources, and for so many tasks of each, it is told what is kept back.
KEPT_SHOWN = 20
# Of so many resources it is told who wants them first.
WANTED_SHOWN = 200
# So many of those that no worker can serve are warned of one by one.
LANES_NAMED = 10


def awake(workers: list[Heartbeat]) -> list[Heartbeat]:
    """Return the workers that may take something new, at the latest when a halt of the spool is over."""
    return [worker for worker in workers if worker.status not in LEAVING]


def types(desk: Desk) -> dict[str, dict[str, int]]:
    """Return how many tasks of each type are waiting, ready and running."""
    found: dict[str, dict[str, int]] = {}
    for lane, count in desk.backlog.per_lane().items():
        found.setdefault(kind_in(lane), no_tasks())["waiting"] += count
    for lane, tasks in desk.view.ready.items():
        if tasks:
            found.setdefault(kind_in(lane), no_tasks())["ready"] += len(tasks)
    for name, active in desk.usage.in_use():
        counted = kind_counted(name)
        if counted is None:
            continue  # a resource that is no type
        kind = found.setdefault(counted, no_tasks())
        kind["active"] = active
    for name, lent in desk.usage.lent.items():
        counted = kind_counted(name)
        if counted is not None:
            found.setdefault(counted, no_tasks())["lent"] = lent
    for kind in found.values():
        # A claim may be listed a step before it is counted.
        kind["running"] = max(0, kind["active"] + kind.get("lent", 0) - kind["ready"])
    for name, asked in desk.usage.asked.items():
        if name.startswith(TYPE):
            found[name.removeprefix(TYPE)] |= {"back": asked, "due": desk.usage.stock.due.get(name, 0)}
    return dict(sorted(found.items()))


def gates(desk: Desk) -> dict[str, dict[str, Any]]:
    """Return what the gates count: by gate, by name of the limit or the batch."""
    stock, opens = desk.usage.stock, desk.starts.opens
    closed = closed_by(desk.view.requests, desk.request_ends, desk.step.now.wall)
    found: dict[str, dict[str, Any]] = {
        "limit": {},
        "rate": {},
        "quota": {},
        "class": {},
        "breaker": breaker_gate.picture_of(desk.breakers),
        "after_batch": batch_members.numbers(desk),
        **people(desk),
        "fair": desk.backlog.turns.picture(),
        "kept": {name: _kept(rows) for name, rows in sorted(desk.usage.kept.items())[:KEPT_SHOWN]},
        "wanted": {
            name: {"file": file, "units": units}
            for name, (file, units) in sorted(desk.usage.wanted.items())[:WANTED_SHOWN]
        },
    }
    for name, own in sorted(desk.store.settings.limits.items()):
        if (there := stock.capacity.get(f"{LIMIT}{name}")) is not None:
            used, doubt = stock.used.get(f"{LIMIT}{name}", 0), stock.doubtful.get(f"{LIMIT}{name}", 0)
            found["limit"][name] = {
                "max": there.units,
                "used": used,
                "doubtful": doubt,
                **_lent(desk, f"{LIMIT}{name}"),
            }
        if (there := stock.capacity.get(f"{RATE}{name}")) is not None and own.rate is not None:
            used, doubt = stock.used.get(f"{RATE}{name}", 0), stock.doubtful.get(f"{RATE}{name}", 0)
            found["rate"][name] = {"count": there.units, "per_s": own.rate.per_s, "used": used, "doubtful": doubt}
            if (moment := opens.get(f"{RATE}{name}")) is not None:
                found["rate"][name]["opens"] = stamp(moment)
    shares = shares_of(desk.store.settings, desk.usage.slots)
    if shares is not None:
        taken = stock.slots_used()
        for name in sorted({*shares.slots, DEFAULT}):
            borrow = name in shares.borrow
            row = {"slots": shares.of(name), "borrow": borrow, "used": taken.get(name, 0)}
            found["class"][name] = {**row, **_lent(desk, f"{CLASS}{name}")}
    for name, task_id in desk.starts.trying().items():
        found["quota"][name] = {"trying": task_id}
    for name, shut in closed.items():
        until = stamp(shut.until) if shut.until is not None else None
        found["quota"][name] = {"until": until, "by": "quota" if shut.quota else "request"}
    found = {gate: numbers for gate, numbers in found.items() if numbers}
    purse = desk.backlog.gathered.get(budget_gate.NAME)
    return found if purse is None else {**found, budget_gate.NAME: picture_of(purse)}


def _kept(rows: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return for which tasks units of a resource are kept back, the most urgent first."""
    return [{"file": file, "units": units} for file, units in rows[:KEPT_SHOWN]]


def _lent(desk: Desk, name: str) -> dict[str, int]:
    """Return how many units of a resource are lent, wanted back, and lacking for that; nothing for none."""
    numbers = {"lent": desk.usage.lent.get(name, 0), "back": desk.usage.asked.get(name, 0)}
    due = {"due": desk.usage.stock.due.get(name, 0)} if numbers["back"] else {}
    return {what: units for what, units in numbers.items() if units} | due


def people(desk: Desk) -> dict[str, dict[str, Any]]:
    """Return the numbers of the gates that wait for people: how many tasks, and the oldest of them."""
    parked = desk.backlog.parked
    found: dict[str, dict[str, Any]] = {}
    for gate in ("hold", "approval"):
        file = parked.oldest(gate)
        name = None if file is None else parse_task(file)
        since = None if name is None else stamp(order_micros(name.order) / 1e6)
        oldest = None if name is None else {"id": name.id, "admitted_at": since}
        found[gate] = {"waiting": parked.count(gate), "oldest": oldest}
    found["approval"] |= {"questions": parked.questions, "unasked": parked.unasked}
    return {gate: numbers if any(numbers.values()) else {} for gate, numbers in found.items()}


def unservable(desk: Desk) -> dict[str, int]:
    """Return the lanes, of the first few, that no worker awake can serve, and how many tasks are waiting or ready."""
    counts = Counter(desk.backlog.per_lane())
    counts.update({lane: len(tasks) for lane, tasks in desk.view.ready.items() if tasks})
    return {name: counts[name] for name in sorted(counts)[:LANES_JUDGED] if desk.fleet.unservable(name)}


def left(desk: Desk, counts: TaskCounts, workers: list[Heartbeat], stuck: dict[str, int]) -> Left:
    """Return figures of the tasks that have not ended. workers: those awake; stuck: the result of `unservable`."""
    paused = desk.paused
    held = "the spool is halted" if is_halted(desk) else ""
    if not held and (EVERYTHING in paused or any(kind_in(lane) in paused for lane in desk.backlog.per_lane())):
        held = "tasks are paused"
    if not held and (shut := _closed(desk)):
        held = f"limit {shut} is closed"
    return Left(
        counts.pending + counts.waiting + counts.ready + counts.claimed,
        sum(stuck.values()),
        held,
        sum(worker.slots for worker in workers),
    )


def _closed(desk: Desk) -> str | None:
    """Return a closed limit for which tasks wait; None for none."""
    closed = closed_by(desk.view.requests, desk.request_ends, desk.step.now.wall)
    lanes = desk.backlog.per_lane() if closed else {}
    return next((shut for lane in lanes if (shut := closed_limit(desk.resources.uses(lane), closed))), None)


def warnings(workers: list[Heartbeat], able: list[Heartbeat], stuck: dict[str, int]) -> list[str]:
    """Return warnings of lanes that no worker can run, and the workers' own notes. able: the workers awake."""
    there = amount(len(able), "worker")
    found = [
        f"no worker can run {name} ({there} awake){_lacking(name, able)}; `spool explain ID` says what is missing"
        for name in list(stuck)[:LANES_NAMED]
    ]
    if more := sum(list(stuck.values())[LANES_NAMED:]):
        found.append(f"no worker can run {amount(more, 'task')} in {len(stuck) - LANES_NAMED} more lanes")
    return found + [f"{worker.node}: {note}" for worker in workers for note in bounded(worker.notes)]


def _lacking(lane_name: str, workers: list[Heartbeat]) -> str:
    """Return which workers have a handler for the lane, and what its program lacks there."""
    lane = parse_lane(lane_name)
    told = [(worker.node, worker.capabilities.lacks) for worker in workers if worker.capabilities]
    found = [f"{node}: {lacks[lane.type]}" for node, lacks in told if lane is not None and lane.type in lacks]
    return f"; {some(found)}" if found else ""
