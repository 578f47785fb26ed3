"""The alerts that stand: which rise now, and which fall.

Law: one per rise. What stood on a predecessor's board stands on this one, and does not rise again. An alert keeps the
figures of its rise, and the id of its task is made of what it is about and when it rose: so two leaders that tell of
one rise make the same task.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.names import slug
from spoold.protocol.order import base36
from spoold.protocol.snapshot import Alert
from spoold.rules.alerts.reading import Reading

# So many alerts of one name stand at once: a rack that dies is told of, and not a hundred times more.
MOST = 100
Key = tuple[str, str]


@dataclass(slots=True)
class Changes:
    """What one look has changed."""

    raised: list[Alert] = field(default_factory=list)
    cleared: list[Alert] = field(default_factory=list)


def task_id(alert: Alert) -> str:
    """The id of the task that tells of this rise: the same for every leader that saw it rise then."""
    what = f"{alert.name}/{alert.subject}/{alert.since}"
    digest = int.from_bytes(hashlib.blake2b(what.encode(), digest_size=5).digest())
    return f"alert-{slug(f'{alert.name}-{alert.subject}', 60)}-{base36(digest, 8)}"


def notice(alert: Alert, kind: str) -> dict[str, Any]:
    """The task that tells of an alert, as a drop: two leaders that tell of one rise write the same."""
    told = alert.model_dump(exclude={"task"})
    return {"id": task_id(alert), "type": kind, "name": f"alert: {alert.text}"[:200], "input": told}


class Board:
    """The alerts that stand, as one leader knows them. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._standing: dict[Key, Alert] = {}
        self._seen: dict[Key, float] = {}
        self._over: dict[Key, float] = {}

    @property
    def standing(self) -> tuple[Alert, ...]:
        """The alerts, by name and subject."""
        return tuple(alert for _, alert in sorted(self._standing.items()))

    def begin(self, alerts: Iterable[Alert]) -> None:
        """Go on with the alerts of a predecessor."""
        self._standing = {(alert.name, alert.subject): alert for alert in alerts}

    def look(
        self, readings: Iterable[Reading], now: float, stamp: str, *, unsure: Collection[str] = (), dead_s: float = 0
    ) -> Changes:
        """Take in one look at everything. stamp: now, as people read it.

        unsure: names of which not all readings are there. dead_s: how long the alert of a dead node stands.
        """
        found = {reading.key: reading for reading in readings}
        changes = Changes()
        for key, alert in sorted(self._standing.items()):
            reading, seen = found.get(key), self._seen.setdefault(key, now)
            lasts = alert.name in unsure or (alert.name == "node_dead" and now - seen < dead_s)
            if reading.over is False if reading is not None else not lasts:
                del self._standing[key], self._seen[key]
                changes.cleared.append(alert)
        self._rise(found, now, stamp, changes)
        return changes

    def _rise(self, found: dict[Key, Reading], now: float, stamp: str, changes: Changes) -> None:
        many = Counter(name for name, _ in self._standing)
        self._over = {
            key: self._over.get(key, now)
            for key, reading in found.items()
            if reading.over or (reading.over is None and key in self._over)
        }
        for key, reading in sorted(found.items()):
            lasted_s = now - self._over.get(key, now)
            if key in self._standing or not reading.over or lasted_s < reading.after_s or many[key[0]] >= MOST:
                continue
            alert = Alert(
                name=reading.name,
                subject=reading.subject,
                since=reading.since or stamp,
                value=reading.value,
                threshold=reading.threshold,
                text=reading.text,
            )
            many[key[0]] += 1
            self._standing[key], self._seen[key] = alert, now
            changes.raised.append(alert)

    def told(self, alert: Alert, by: str) -> None:
        """Note that the task of this id tells of the alert."""
        key = (alert.name, alert.subject)
        if (standing := self._standing.get(key)) is not None and standing.since == alert.since:
            self._standing[key] = standing.model_copy(update={"task": by})
