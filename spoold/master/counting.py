"""What ready and claimed tasks use, and what has started: the facts behind `limit`, `rate`, `quota` and
`breaker`.

Law: counted anew from the listings in every step. A start that they show counts from the moment after them: the look
may have taken long, and the step began before it. A new leader is never more generous than the one before: it counts
each claim as a start of now, and each attempt whose record is in results/ as a start of the moment at which the
record was written, since it began no later. Without rates no record is looked at; only those of a window are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from spoold.master import breakers, trials
from spoold.master.desk import Desk
from spoold.master.learning import unread
from spoold.master.place import Place
from spoold.master.starts import Attempt, Past, Start
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key, parse_ended
from spoold.protocol.result import Status
from spoold.rules.scheduling.resources import RATE, Capacity
from spoold.store.absence import names_in
from spoold.store.records import read_record
from spoold.system.filesystem import DamagedError

UNREAD = (
    "{} cannot be read, so it counts for every type that has a max_concurrent and for every limit, and may hold any "
    "lock; let the user that the master runs as read it (chmod, chown)"
)


def count_active(desk: Desk) -> None:
    """Count what the ready and the claimed tasks use; moves of this step are then counted as they are made.

    Uses that are in doubt are counted apart: while the doubt lasts, nothing new may become ready in their place.
    Errors: OSError.
    """
    usage, resources = desk.usage, desk.resources
    capacity, used = _count_starts(desk)
    usage.begin({**resources.capacity, **capacity}, (resources.uses(lane) for _, lane in adrift(desk)))
    for lane, names in desk.view.ready.items():
        usage.take(resources.uses(lane), len(names))
    desk.units.see(desk.view.requests)
    for node, names in desk.view.claimed.items():
        lent = desk.units.of(node, (task.id for task in names.values()))
        for task in names.values():
            uses = resources.running(desk.learned.lanes.get(key(task.id), ""))
            if lent and key(task.id) in lent:
                usage.lend(uses)
            else:
                usage.take(uses)
    usage.take(used)
    if usage.stock.capacity or len(desk.backlog.locks.book.line):
        locks = len(desk.backlog.locks.book.line) > 0
        desk.report.notice(*map(UNREAD.format, unread(desk, conditions=locks)))


def adrift(desk: Desk) -> Iterator[tuple[Place, str]]:
    """Yield tasks that were ready or claimed, or about to be, and that were seen nowhere since: their last place, and
    their lane, '' if that is unknown; of one that was to go to ready/, the lane that it was to go to. A task may come
    twice.

    A listing can miss a claim while its worker gives it another name, so such a task may not have ended.
    """
    missing = ((task_key, desk.view.where.get(task_key)) for task_key in desk.missing.keys)
    for task_key, place in (*desk.view.on_the_way.items(), *missing):
        if place is not None and place.state is State.WAITING:
            yield place, desk.learned.lanes.get(task_key, place.directory.partition("/")[2])
        elif place is not None and place.state is State.READY:
            yield place, place.directory.partition("/")[2]
        elif place is not None and place.state is State.CLAIMED:
            yield place, desk.learned.lanes.get(task_key, "")


def _count_starts(desk: Desk) -> tuple[dict[str, Capacity], dict[str, int]]:
    """Notice what has started since the last step; return the capacity and the use of what counts starts."""
    starts, resources, now = desk.starts, desk.resources, desk.step.now
    opens: dict[str, float] = {}
    starts.see_rates(resources.rates, partial(_recorded, desk))
    starts.forget_before(now.monotonic)
    if not resources.limited and not starts.standing and not starts.shut:
        return {}, {}
    standing = trials.begin(desk)
    first = not starts.looked
    for lane, task in _begun(desk):
        for resource, units in resources.starts(lane).items():
            if resource.startswith(RATE):
                name, moment = resource.removeprefix(RATE), desk.store.clock.monotonic()
                starts.count(name, key(task.id), moment, units)
            elif not first and (trial := starts.trial_of(resource)) is not None:
                trial.started(task)
    capacity, used = trials.look(desk, standing, opens)
    of_breakers, tried = breakers.look(desk)
    capacity, used = {**capacity, **of_breakers}, {**used, **tried}
    for name, window in starts.windows.items():
        used[f"{RATE}{name}"] = window.used(now.monotonic)
        room = window.opens(now.monotonic)
        if room is not None:
            opens[f"{RATE}{name}"] = now.wall + room - now.monotonic
    starts.look_again(opens)
    return capacity, used


def _begun(desk: Desk) -> list[Start]:
    uses, lanes = desk.resources.starts, desk.learned.lanes
    ready = [(lane, t) for lane, names in desk.view.ready.items() if uses(lane) for t in names.values()]
    running = [task for names in desk.view.claimed.values() for task in names.values()]
    claimed = [(lane, task) for task in running if uses(lane := lanes.get(key(task.id), ""))]

    def waits(attempt: Attempt) -> bool:
        entry = desk.backlog.get(attempt[0])
        return entry is not None and entry.name.attempt == attempt[1]

    return desk.starts.begun(ready, claimed, waits, desk.missing.keys)


def _recorded(desk: Desk, within_s: float) -> Iterator[Past]:
    """Yield the attempts whose records were written within so long, the oldest first. Errors: OSError."""
    found: list[tuple[float, str]] = []
    for name in names_in(desk.store.fs, layout.RESULTS, desk.view.blocked):
        desk.breathe()
        path = layout.join(layout.RESULTS, name)
        try:
            written = desk.store.fs.stat(path).mtime_ns / 1e9
        except FileNotFoundError:
            continue
        # While the server's time is unknown, every record counts as one of now.
        server, now = desk.store.common.server(), desk.store.clock.monotonic()
        age_s = 0.0 if server is None else max(0.0, server - written)
        if age_s < within_s:
            found.append((now - age_s, path))
    for moment, path in sorted(found):
        desk.breathe()
        ended = parse_ended(path.rpartition("/")[2])
        yield moment, "" if ended is None else key(ended.id), _used_in(desk, path)


def _used_in(desk: Desk, path: str) -> Mapping[str, int] | None:
    """Return what an attempt used of each limit, by its record; None if that cannot be known. Errors: OSError."""
    try:
        with desk.reading(path):
            result = read_record(desk.store.fs, path)
    except DamagedError:
        return None
    # Of an attempt whose worker died a leader of an earlier release may not have known the lane.
    if result is None or (result.uses is None and result.status == Status.WORKER_DIED):
        return None
    return result.uses or {}
