"""The limits of a spool with their figures, and the requests that close and open them; and its budgets: what is
spent, reserved and left, and a raise of one.

Law: the time of the pool decides whether a limit is closed, and never the clock of this machine. The figures are
those of the leader's last snapshot, and empty while no node leads. A limit that spool.toml does not name is listed
while a request closes it, and can be opened: the request may have outlived it. It cannot be closed. A raise is a
change of settings that says only what is added, so two raises at one moment both count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spoold.client.spool.connection import Connection
from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.settings import Settings
from spoold.rules.answers.selection import suggestion
from spoold.rules.gates.budget_usage import amounts, micros
from spoold.store import snapshots
from spoold.store.settings_change import publish_change
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
    from spoold.client.spool.spool_status import judged_at
    from spoold.client.spool.standing_requests import told
    from spoold.protocol.request import Verb
    from spoold.rules.gates.standing_requests import closed_by
    from spoold.rules.workers.matching import LIMIT
    from spoold.store import control, heartbeats, snapshots
    from spoold.store.store import stamp

    latest = snapshots.latest(store.fs)
    gates: Mapping[str, Mapping[str, Any]] = latest[1].gates if latest is not None else {}
    requests = control.list_requests(store.fs)
    nodes = heartbeats.read_all(store.fs)
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


def list_type_limits(store: Store) -> dict[str, tuple[int | None, int]]:
    """Return each type that has a `max_concurrent`: how many of its tasks are ready or run, None where no leader has
    said it, and how many may be. Errors: OSError.
    """
    most = {kind: own.max_concurrent for kind, own in store.settings.types.items() if own.max_concurrent is not None}
    latest = snapshots.latest(store.fs) if most else None
    said = latest[1].types if latest is not None else None
    found = {}
    for kind, each in sorted(most.items()):
        counts = None if said is None else said.get(kind, {})
        found[kind] = None if counts is None else counts.get("active", 0), each
    return found


# Budgets: what is spent, reserved and left, as the leader last said, and a raise of one.


def list_budgets(store: Store, name: str | None = None) -> dict[str, Any]:
    """Return each budget of the settings, or one: its limits and periods, as in `gates.budget` of the snapshot.

    A budget of which no leader has said anything yet has no periods. Errors: NotFound for an unknown name, OSError.
    """
    store.revisions.look()
    settings = store.settings
    wanted = list(settings.budgets) if name is None else [known(settings, name)]
    latest = snapshots.latest(store.fs) if wanted else None
    told = latest[1].gates.get("budget", {}) if latest is not None else {}
    return {one: _budget(settings, one, told.get(one)) for one in sorted(wanted)}


def _budget(settings: Settings, name: str, told: Any) -> dict[str, Any]:
    own = settings.budgets[name]
    said = {"per": own.per, "over": own.over, "unknown": own.unknown, "limits": own.given}
    found = {"usual": {}, "closed": "", "periods": [], "more": 0, **(told if isinstance(told, dict) else {}), **said}
    return {**found, "periods": [{**period, "left": _left(own.given, period)} for period in found["periods"]]}


def _left(limits: Mapping[str, float], period: Mapping[str, Any]) -> dict[str, float]:
    """What is left of the limits that hold now: the leader's figure may be from before they were raised."""
    used = {of: micros(period["spent"].get(of, 0)) + micros(period["reserved"].get(of, 0)) for of in limits}
    return amounts({of: micros(limit) - used[of] for of, limit in limits.items()})


def raise_budget(spool: Connection, name: str, add: Mapping[str, float], reason: str = "") -> dict[str, float]:
    """Raise limits of a budget by so much, as its caller; return its limits. Errors: as of `raise_as`."""
    return spool.change(lambda by: raise_as(spool.store, name, add, by=by, reason=reason))


def raise_as(store: Store, name: str, add: Mapping[str, float], *, by: str, reason: str) -> dict[str, float]:
    """Raise limits of a budget by so much; return its limits. Errors: NotFound; SpoolError for a limit that it lacks,
    BadFile for no amount, OSError.
    """
    store.revisions.look()
    name = known(store.settings, name)
    before = store.settings.budgets[name].given
    for amount in add:
        if amount not in before:
            limits = " and ".join(before) or "nothing"
            raise SpoolError(f"budget {name} does not limit {amount}: only what it limits can be raised, {limits}.")
    if not any(add.values()):
        raise SpoolError("by how much? Name --cost-usd, --tokens or --task-s, each above 0.")
    publish_change(store, {"budgets": {name: {"add": dict(add)}}}, by=by, reason=reason)
    return store.settings.budgets[name].given


def known(settings: Settings, name: str) -> str:
    """Return the budget's name as the settings have it. Errors: NotFound, with the nearest name."""
    word = name.strip().lower()
    if word not in settings.budgets:
        advice = suggestion(word, sorted(settings.budgets)) if settings.budgets else "name it in spool.toml first."
        raise NotFound(f"no budget {name!r} in the settings: {advice}")
    return word
