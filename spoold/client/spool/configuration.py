"""The settings that hold now: where each comes from, which nodes go by them, how to change one, and whether all are
right.

Law: spool.toml is read here anew, and by a node when it starts; the changes in settings/ are the same for all. A node
goes by a change once its own beat says so. A check looks and never touches: every fault is named at once, each with
its file, its field and the fix. Changes are judged over what is right in the file: a fault in one section hides
nothing in another.

Touches: the clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.client.spool.living_nodes import LOOK_EVERY_S, Sleep
from spoold.client.spool.spool_status import present
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.settings import Settings
from spoold.protocol.settings_change import (
    Change,
    ChangeName,
    Path,
    Table,
    dotted,
    leaves,
    overlaid,
    parse_change,
    path_of,
    restored,
    spelled,
    table_of,
    within,
)
from spoold.protocol.toml_file import TOML_BYTES, toml_table
from spoold.protocol.validation_errors import faults_of
from spoold.rules.cluster.node_status import ASLEEP
from spoold.rules.entry.references import UnknownName, unknown_names
from spoold.store import existence, heartbeats
from spoold.store.existence import regular
from spoold.store.own_heartbeat import SAY_AGAIN
from spoold.store.path_conflicts import obstacle
from spoold.store.settings_change import changed, publish_change
from spoold.store.settings_revisions import Revisions
from spoold.store.store import Store, open_store
from spoold.system.clock import Clock, SystemClock
from spoold.system.filesystem import FileSystem
from spoold.system.host import Host
from spoold.system.posix import PosixFileSystem

DEFAULT = "default"
DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that holds. source: `default`, `spool.toml`, or the revision of the change that set it last.

    by, at, reason: of that change.
    """

    key: str
    value: Any
    source: str
    by: str = ""
    at: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """A node and the revision it goes by, '' for spool.toml alone. state: dead, asleep, or '' for one that lives."""

    node: str
    role: str
    revision: str
    state: str = ""

    def holds(self, revision: str) -> bool:
        """Return whether it goes by this change. One that says a later revision has seen all before it."""
        mine, wanted = parse_change(f"{self.revision}.json"), parse_change(f"{revision}.json")
        return wanted is None or (mine is not None and mine >= wanted)


def list_settings(store: Store, key: str | None = None) -> list[Setting]:
    """Return what holds now, in the order of spool.toml; key: only this setting, or those below it.

    A setting of a type, or of a table like it, comes only where it is set. Errors: BadFile for an unknown key;
    OSError.
    """
    wanted = () if key is None else _known(path_of(key))
    store.revisions.look()
    origins, written = _origins(store), {path for path, _ in leaves(table_of(store.revisions.base))}
    found = []
    for path, value in leaves(store.settings.model_dump(mode="json")):
        if not within(path, wanted):
            continue
        name, change = origins.get(path, (None, Change()))
        source = name.revision if name is not None else layout.SETTINGS if path in written else DEFAULT
        if source != DEFAULT or value not in (None, "", [], {}):
            found.append(Setting(dotted(path), value, source, change.by, change.at, change.reason))
    return found


def _origins(store: Store) -> dict[Path, tuple[ChangeName, Change]]:
    """Return the change that each setting has its value from, if it has it from one."""
    found: dict[Path, tuple[ChangeName, Change]] = {}
    for name, change in store.revisions.changes:
        given = [path for path, _ in leaves(change.settings)]
        for gone in [*(spelled(path) or path for path in change.paths), *given]:
            found = {path: origin for path, origin in found.items() if not within(path, gone)}
        found |= dict.fromkeys(given, (name, change))
    return found


def _known(path: Path) -> Path:
    """Return the place as settings spell it. Errors: BadFile for one that there cannot be, with the nearest name."""
    found = spelled(path)
    if found is None:
        said: Any = 0
        for name in reversed(path):
            said = {name: said}
        try:
            codec.check_settings(said, dotted(path))
        except BadFile as error:
            field = "" if error.field == dotted(path) else error.field  # else it names one place twice
            raise BadFile(dotted(path), field, error.problem, error.mend) from error
        raise BadFile(dotted(path), "", "is no setting.", "`spool config show` lists all.")
    return found


def parse_pairs(words: Sequence[str]) -> dict[str, Any]:
    """Return `KEY VALUE` and `KEY=VALUE` words as values by key. A value is TOML; what is none is text.

    Errors: BadFile for a word that is no key, a key without a value, and two words for one setting.
    """
    found: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        key, equals, after = word.partition("=")
        text = after if equals else next(left, None)
        if text is None:
            raise BadFile(word, "", "has no value.", f"write {word} VALUE, or {word}=VALUE.")
        path = path_of(key)
        for other in found:
            if within(path_of(other), path) or within(path, path_of(other)):
                raise BadFile(key, "", "is given twice.", "keep one of them.")
        found[dotted(path)] = _value(text, key)
    return found


def _value(text: str, key: str) -> Any:
    """Return a word as the value that TOML sees in it, else as text. Errors: BadFile for a number that JSON lacks."""
    if "\n" in text:
        return text
    try:
        value = toml_table(f"value = {text}".encode(), key)["value"]
    except BadFile:
        return text
    try:
        # Dates become text, as they do in the file.
        return codec.load_text(json.dumps(value, default=str), key)
    except BadFile:
        raise BadFile(key, "", f"{text} is no number that a setting can have.", "write a finite number.") from None


def as_table(pairs: Mapping[str, Any]) -> Table:
    """Return values by key as the tables of spool.toml. Errors: BadFile for what is no key."""
    table: Table = {}
    for key, value in pairs.items():
        *above, last = path_of(key)
        inner = table
        for name in above:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return table


def publish(store: Store, said: Mapping[str, Any], unset: Iterable[str], *, by: str, reason: str) -> str:
    """Publish a change, and return its revision. Errors: as of `publish_change`."""
    return publish_change(store, said, unset=unset, by=by, reason=reason).revision


def holds_already(store: Store, said: Mapping[str, Any], unset: Iterable[str]) -> bool:
    """Return whether a change would leave everything as it is. Errors: BadFile for one that is wrong.

    What only spool.toml says does not count, neither for `said` nor for `unset`: nodes that run go by what stood
    there when they started, and it may be edited later.
    """
    gone = [_known(path_of(key)) for key in unset]
    laid: Table = {}
    for _, change in store.revisions.changes:
        for path in change.paths:
            laid = restored(laid, {}, path)
        laid = overlaid(laid, change.settings)
    then = laid
    for path in gone:
        then = restored(then, {}, path)
    return overlaid(then, dict(said)) == laid and table_of(changed(store, said, unset)) == table_of(store.settings)


def list_holders(store: Store, host: Host, clock: Clock, *, sleep: Sleep = time.sleep) -> list[Holder]:
    """Return every node, with the revision that its last beat says. Errors: OSError."""
    nodes, dead = present(store, host, clock, sleep=sleep)
    return [
        Holder(node, beat.role, beat.settings, DEAD if node in dead else ASLEEP if beat.status == ASLEEP else "")
        for node, beat in sorted(nodes.items())
    ]


def take_up_s(store: Store) -> float:
    """Return within how many seconds every node that lives goes by a change, and its beat says so."""
    interval_s = store.settings.heartbeat.interval_s
    return interval_s * (SAY_AGAIN + 1) if store.fs.forgets else interval_s * 2


def wait_for_holders(
    store: Store, host: Host, clock: Clock, revision: str, *, sleep: Sleep = time.sleep
) -> tuple[list[Holder], list[Holder]]:
    """Wait until the nodes that live go by a change; returns those that do, and those that do not in time.

    A node that dies or leaves meanwhile is in neither. Errors: OSError.
    """
    give_up_at = clock.monotonic() + take_up_s(store)
    left = {one.node for one in list_holders(store, host, clock, sleep=sleep) if not one.state}
    while True:
        now = heartbeats.read_all(store.fs)
        live = [Holder(node, now[node].role, now[node].settings) for node in sorted(left & now.keys())]
        late = [one for one in live if not one.holds(revision)]
        if not late or clock.monotonic() >= give_up_at:
            return [one for one in live if one.holds(revision)], late
        sleep(LOOK_EVERY_S)


# `spool config check`: whether spool.toml, or a file that is to take its place, and all changes are right.


@dataclass(frozen=True, slots=True)
class Checked:
    """A check. file: that was read; changes: those that count, None without a spool; warnings: what hides changes."""

    file: str
    faults: tuple[BadFile, ...]
    changes: int | None
    warnings: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        """Return whether anything has to be fixed."""
        return bool(self.faults or self.warnings)


def check_settings(directory: str | None, data: bytes | None = None, file: str = "") -> Checked:
    """Check a spool's settings. data: of a file that is to take the place of spool.toml.

    directory: of the spool; None checks the file alone. Errors: Unavailable where there is no spool, OSError.
    """
    if directory is None:
        return Checked(file, tuple(_faults(data or b"", file)[1]), None)
    fs, own = PosixFileSystem(directory), f"{directory}/{layout.SETTINGS}"
    try:
        open_store(fs, SystemClock(), "cli-check", directory)
    except BadFile as error:
        if error.file != own:
            raise  # of the marker: this is no spool that can be checked
    file = own if data is None else file
    base, faults = _own(fs, own) if data is None else _faults(data, file)
    revisions = Revisions(fs, lambda: base)
    revisions.look()
    said = {f"{fault}" for fault in revisions.faults}
    # A limit whose section of the file is wrong is not known here, and may be right all the same.
    wrong = [fault for fault in revisions.faults if not (faults and isinstance(fault, UnknownName))]
    hidden = [warning for warning in revisions.warnings if warning not in said]
    hidden += filter(None, [obstacle(fs, layout.CHANGES)])
    return Checked(file, (*faults, *wrong), len(revisions.changes), tuple(hidden))


def _own(fs: FileSystem, file: str) -> tuple[Settings, list[BadFile]]:
    """Return the same for the spool's own file, which may be missing. Errors: OSError."""
    try:
        with regular(file):
            return _faults(existence.read(fs, layout.SETTINGS, TOML_BYTES + 1) or b"", file)
    except BadFile as error:
        return Settings(), [error]


def _faults(data: bytes, file: str) -> tuple[Settings, list[BadFile]]:
    """Return the settings that a file sets, as far as they are right, and all that is wrong with it."""
    try:
        table = toml_table(data, file)
    except BadFile as error:
        return Settings(), [error]
    faults = faults_of(Settings, table, file)
    wrong = {fault.field.partition(".")[0] for fault in faults}
    kept = {name: value for name, value in table.items() if name.partition(".")[0] not in wrong}
    settings = codec.check_settings(kept, file)
    return settings, faults or [*unknown_names(settings, file)]
