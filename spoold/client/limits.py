"""The limits of a spool with their figures, and the requests that close and open them.

Law: the time of the pool decides whether a limit is closed, and never the clock of this machine. The figures are
those of the leader's last snapshot, and empty while no node leads. A limit that spool.toml does not name is listed
while a request closes it, and can be opened: the request may have outlived it. It cannot be closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spoold.store.store import Store

# The `per` of a limit that a request closes and spool.toml does not name.
NOT_NAMED = "-"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit. max: units that may be in use at once; used, doubtful: units in use, and perhaps in use; None where
    each worker counts its own. rate: count, per_s and used, the units started within the window; None for no rate.

    lent: units that tasks have lent while they wait for others, which are not in use; back: those of them that are
    wanted back.

    closed: whether nothing that uses it may start; until: when it opens by itself (RFC 3339), '' for never; why: who
    closed it, when and why; trying: after a quota, the task that tries whether it is open again; closed_on: workers
    whose own quota is used up, each with the words for it.
    """

    name: str
    per: str
    max: int | None
    used: int | None
    doubtful: int | None
    rate: Mapping[str, Any] | None
    lent: int = 0
    back: int = 0
    closed: bool = False
    until: str = ""
    why: str = ""
    trying: str | None = None
    closed_on: Mapping[str, str] = field(default_factory=dict)


def list_limits(store: Store) -> list[Limit]:
    """Return all limits by name. Errors: OSError."""
    from spoold.client.pauses import told
    from spoold.client.status import judged_at
    from spoold.protocol.request import Verb
    from spoold.rules.gates.standing_requests import closed_by
    from spoold.rules.workers.matching import LIMIT
    from spoold.store import beats, control, snapshots
    from spoold.store.store import stamp

    latest = snapshots.latest(store.fs)
    gates: Mapping[str, Mapping[str, Any]] = latest[1].gates if latest is not None else {}
    requests = control.list_requests(store.fs)
    nodes = beats.read_all(store.fs)
    shut = closed_by(requests, control.ends_of(store.fs, requests), judged_at(store, store.clock, nodes))
    words = told(store, requests)
    can = {beat.node: beat.capabilities for beat in nodes.values() if beat.capabilities}
    found = []
    for name in sorted(store.settings.limits.keys() | shut.keys()):
        own = store.settings.limits.get(name)
        row, rate = gates.get("limit", {}).get(name, {}), gates.get("rate", {}).get(name, {})
        there = shut.get(name)
        verb = Verb.QUOTA if there is not None and there.quota else Verb.CLOSE
        found.append(
            Limit(
                name,
                NOT_NAMED if own is None else own.per,
                None if own is None else own.max,
                row.get("used"),
                row.get("doubtful"),
                None if own is None or own.rate is None else {**own.rate.model_dump(), "used": rate.get("used")},
                row.get("lent", 0),
                row.get("back", 0),
                there is not None,
                stamp(there.until) if there is not None and there.until is not None else "",
                words.get((verb, name), "") if there is not None else "",
                gates.get("quota", {}).get(name, {}).get("trying"),
                {node: c.shuns[key] for node, c in sorted(can.items()) if (key := f"{LIMIT}{name}") in c.shuns},
            )
        )
    return found
