"""Publishes a change of settings, which all nodes go by from their next beat on.

Law: nothing is published that a node would refuse, and no number is given twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, Unavailable
from spoold.protocol.settings import Settings
from spoold.protocol.settings_change import THE_CHANGE, ChangeName, load_change
from spoold.store import existence
from spoold.store.path_conflicts import obstacle
from spoold.store.settings_revisions import BYTES_MAX, with_change
from spoold.store.store import Store, make_directory


def changed(store: Store, said: Mapping[str, Any], unset: Iterable[str] = ()) -> Settings:
    """The settings as this writer knows them, with a change that nobody has published. Errors: BadFile."""
    change = load_change(codec.dump({"settings": dict(said), "unset": list(unset)}), THE_CHANGE)
    return with_change(store.revisions.base, store.settings, change, THE_CHANGE)


def publish_change(
    store: Store, said: Mapping[str, Any], *, unset: Iterable[str] = (), by: str = "", reason: str = ""
) -> ChangeName:
    """Change settings while nodes run; the name of the change. said: as in spool.toml, and only what changes.

    unset: keys that are again as in spool.toml. Errors: BadFile that names the field, with nothing published unless
    its file is in settings/; Unavailable where there are too many changes; OSError, and then the change may yet come.
    """
    given = {"by": by or store.writer, "at": store.stamp(), "reason": reason, "settings": dict(said)}
    kept = tuple(unset)
    # Without `unset` the content is what releases that do not know that field have always read.
    data = codec.dump(given | {"unset": kept} if kept else given)
    if len(data) > BYTES_MAX:
        raise BadFile(THE_CHANGE, "", f"is larger than {BYTES_MAX >> 10} KiB.", "make several changes of it.")
    if not existence.listed(store.fs, layout.CHANGES):  # a spool of an earlier release has none
        make_directory(store.fs, layout.CHANGES)
    elif (told := obstacle(store.fs, layout.CHANGES)) is not None:
        raise Unavailable(told)
    name = ChangeName(store.revisions.next_number(), store.writer)
    changed(store, said, kept)
    path = layout.join(layout.CHANGES, name.encode())
    staged = store.publish(path, data, durable=store.durable)
    if store.durable:
        store.settle(layout.CHANGES, {staged: path})
    store.revisions.look()
    for fault in store.revisions.faults:
        if fault.file == path:  # one that was published at the same moment left no room for it
            raise fault
    return name
