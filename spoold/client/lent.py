"""What tasks lend while they wait, for `explain`: what one wants back, in words, and who above another one waits.

Law: looks and never touches. That it wants something back is what its loan in control/ says; the figures are those of
the leader's last snapshot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from spoold.client.info import read_content, text_in
from spoold.client.stock import facts_seen
from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.request import Request, Verb
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.task import Task
from spoold.rules.gates.facts import Known
from spoold.rules.gates.limit_gates import told_of_lent
from spoold.store import beats
from spoold.store.locate import Located, locate_many
from spoold.store.regular import Unreadable, readable
from spoold.store.store import Store


def wanted_back(
    store: Store, located: Located, requests: Iterable[Request], picture: Snapshot, now: float
) -> tuple[str, ...]:
    """Return what the task waits for; empty where it wants nothing back, or cannot be read. now: s since 1970."""
    asks = (request.verb is Verb.REGAIN and key(request.target) == key(located.id) for request in requests)
    if any(asks):
        with contextlib.suppress(BadFile, Unreadable, FileNotFoundError), readable(located.path):
            lane = codec.load_task(store.fs.read(located.path), located.path).lane
            facts = facts_seen(Known(now, store.settings, ()), picture).of(lane.encode())
            return tuple(told_of_lent(facts.uses, facts.stock)) or ("the leader's answer",)
    return ()


def waiting_above(store: Store, task: Task) -> tuple[str, ...]:
    """Return the keys of the tasks above a task that locks something whose slots are lent. Errors: OSError."""
    found: dict[str, bool] = {}
    lent = None
    above = task.parent if task.locks.write or task.locks.read else None
    while above and key(above) not in found:
        lent = lent_slots(store) if lent is None else lent
        located = locate_many(store, [above]).get(above)
        if located is None:
            break
        waits = located.state is State.CLAIMED and (key(located.id), located.attempt) in lent
        found[key(located.id)] = waits
        above = text_in(read_content(store, located), "parent")
    return tuple(task_key for task_key, waits in found.items() if waits)


def lent_slots(store: Store) -> set[tuple[str, int]]:
    """Return the attempts whose slot is lent, as their workers say: key and number."""
    return {
        (key(run.id), run.attempt) for beat in beats.read_all(store.fs).values() for run in beat.running if run.lent
    }
