"""What a task that has waited wants back of the limits that it uses, in words for `explain`.

Law: looks and never touches. That it wants something back is what its loan in control/ says; the figures are those of
the leader's last snapshot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from spoold.client.stock import facts_seen
from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.protocol.request import Request, Verb
from spoold.protocol.snapshot import Snapshot
from spoold.rules.gates.facts import Known
from spoold.rules.scheduling.regaining import told
from spoold.store.locate import Located
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
            return tuple(told(facts.uses, facts.stock)) or ("the leader's answer",)
    return ()
