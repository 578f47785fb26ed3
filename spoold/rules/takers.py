"""Which workers could take a task, and what keeps them from it: the part of `explain` that looks at machines.

Law: `matching` decides, as it does for the workers themselves; workers for which the same is true are named together.
"""

from __future__ import annotations

from spoold.protocol.lanes import Lane
from spoold.rules.case import Case, Reason, Seen
from spoold.rules.matching import fits, free, unfit

NAMED = 5


def suitable(case: Case) -> tuple[list[Seen], list[Reason]]:
    """The workers that can run the task at all, and what stands in the way where there is none."""
    if case.lane is None:
        return [], []
    alive = [worker for worker in case.workers if worker.alive and not worker.asleep]
    dozing = [w for w in case.workers if w.alive and w.asleep and unfit(case.lane, w.capabilities) is None]
    if not alive and not dozing:
        return [], [Reason("workers", "no worker is alive", f"start one that can run {_demand(case.lane)}")]
    why_not: dict[str, list[str]] = {}
    able = []
    for worker in alive:
        why = unfit(case.lane, worker.capabilities)
        if why is None:
            able.append(worker)
        else:
            why_not.setdefault(why, []).append(worker.node)
    if able:
        return able, []
    if dozing:
        since = some([f"{worker.node} since {worker.asleep}" for worker in dozing])
        return [], [
            Reason("asleep", f"every worker that can run it is asleep: {since}", "wake one, or start another")
        ]
    each = "; ".join(f"{some(nodes)}: {why}" for why, nodes in sorted(why_not.items()))
    change = f"start a worker that can run {_demand(case.lane)}, or change what the task requires"
    return [], [Reason("capability", f"no worker alive can run it: {each}", change)]


def room_now(case: Case, able: list[Seen]) -> list[Reason]:
    """What keeps the workers that could run it from taking it now."""
    assert case.lane is not None
    awake = [worker for worker in able if not worker.draining]
    if not awake:
        nodes = some([worker.node for worker in able])
        return [Reason("drain", f"every worker that can run it is draining: {nodes}", "start another worker")]
    if case.disk.full:
        return [Reason("disk", f"{case.disk.value}, so workers start nothing", case.disk.mend)]
    idle = [worker for worker in awake if worker.running < worker.slots]
    if not idle:
        each = some([f"{w.node} ({w.running} of {w.slots} slots)" for w in awake])
        text = f"every worker that can run it is busy: {each}{_queue(case)}"
        return [Reason("busy", text, "it goes on when a slot is free; more workers or slots make it faster")]
    roomy = [w for w in idle if fits(case.lane, free(w.capabilities, list(w.lanes)))]
    if not roomy:
        nodes = some([worker.node for worker in idle])
        text = f"no worker has {_demand(case.lane)} free just now: {nodes}{_queue(case)}"
        return [Reason("room", text, "it goes on when what runs there ends")]
    notes = sorted({note for worker in roomy for note in worker.notes})
    if notes:
        return [Reason("notes", f"its workers say: {some(notes)}", "see `spool workers`")]
    if case.ahead:
        text = f"{case.ahead} more urgent or older tasks stand before it in its lane"
        return [Reason("queue", text, "a higher priority puts a task before them")]
    return []


def _queue(case: Case) -> str:
    return f"; {case.ahead} tasks stand before it" if case.ahead else ""


def _demand(lane: Lane) -> str:
    """What the task requires, as the name of its lane says it."""
    return lane.encode().replace(",", " ")


def some(words: list[str]) -> str:
    """The first few of many words."""
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return f"{', '.join(words[:NAMED])}{more}"
