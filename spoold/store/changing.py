"""Publishes a change of settings, which all nodes go by from their next beat on.

Law: nothing is published that a node would refuse, and no number is given twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.change import Change, ChangeName, changed
from spoold.store import absence
from spoold.store.store import Store, make_directory


def publish_change(store: Store, said: Mapping[str, Any], *, by: str = "", reason: str = "") -> ChangeName:
    """Change settings while nodes run; the name of the change. said: as in spool.toml, and only what changes.

    Errors: BadFile that names the field; Unavailable where there are too many changes; OSError, and then the change
    may yet appear.
    """
    settings = dict(said)
    changed(settings, "the change")
    if not absence.listed(store.fs, layout.CHANGES):  # a spool of an earlier release has none
        make_directory(store.fs, layout.CHANGES)
    name = ChangeName(store.revisions.next_number(), store.writer)
    change = Change(by=by or store.writer, at=store.stamp(), reason=reason, settings=settings)
    store.publish(layout.join(layout.CHANGES, name.encode()), codec.dump(change), durable=store.durable)
    store.revisions.look()
    return name
