"""Budgets: what is spent, reserved and left, as the leader last said, and a raise of one.

Law: a raise is a change of settings that says only what is added, so two raises at one moment both count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spoold.client.connection import Connection
from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.settings import Settings
from spoold.rules.answers.selection import suggestion
from spoold.rules.gates.budget_usage import amounts, micros
from spoold.store import snapshots
from spoold.store.changing import publish_change
from spoold.store.store import Store


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
