"""Settings that are changed while the spool runs: `settings/NUMBER.NODE.json`, merged over spool.toml by number.

Law: a file says only what it changes, and is never replaced: a later change has a higher number. What all nodes must
agree on at one moment is not changeable, since nodes see a new file at different times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from spoold.protocol.codec import as_object, check, check_settings, load_sent_model
from spoold.protocol.errors import BadFile
from spoold.protocol.names import NODE, number, sure
from spoold.protocol.overlay import Path, Table, dotted, leaves, overlaid, restored, table_of
from spoold.protocol.settings import Amounts, Settings
from spoold.protocol.toml_file import toml_table

_CHANGE = re.compile(rf"{number(9)}\.({NODE})\.json")
# What an error calls a change that nobody has published.
THE_CHANGE = "the change"
# The sections of spool.toml that can be changed while nodes run, each with all that is in it.
CHANGEABLE = ("timeout", "types", "limits", "classes", "budgets", "retry", "retention", "ready", "alerts")


@dataclass(frozen=True, slots=True, order=True)
class ChangeName:
    """`NUMBER.NODE.json` in settings/. Sorts by number, then by who made it: the later one wins."""

    number: int
    node: str

    @property
    def revision(self) -> str:
        """What a node says that goes by this change and all before it."""
        return f"{self.number}.{self.node}"

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        return sure(self, f"{self.revision}.json", parse_change)


def parse_change(name: str) -> ChangeName | None:
    """A name in settings/, or None."""
    match = _CHANGE.fullmatch(name)
    return ChangeName(int(match[1]), match[2]) if match else None


class Change(BaseModel):
    """One change. settings: as in spool.toml, and only what changes. by, at (RFC 3339), reason: for people.

    unset: keys, such as types.review.timeout, that are again as in spool.toml; before `settings` is laid over.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    by: str = ""
    at: str = ""
    reason: str = ""
    settings: dict[str, Any] = {}
    unset: tuple[str, ...] = ()

    @property
    def paths(self) -> list[Path]:
        """The places of `unset`. Errors: BadFile, with the key as its file."""
        return [path_of(key) for key in self.unset]


def load_change(data: bytes, file: str) -> Change:
    """A change that says nothing of what cannot be changed. Errors: BadFile that names the field."""
    change = load_sent_model(Change, data, file)
    for name, value in change.settings.items():
        path, given = next(leaves({name: value}), ((name,), None))
        _insist(path, file, "" if given is None else f" Given: {given!r}.")
    for key in change.unset:
        _insist(path_of(key, file), file, "")
    return change


def _insist(path: Path, file: str, given: str) -> None:
    if path[0] in Settings.model_fields and path[0] not in CHANGEABLE:
        fix = f"write it into spool.toml and restart every node; only {', '.join(CHANGEABLE)} can."
        raise BadFile(file, dotted(path), f"cannot be changed while nodes run.{given}", fix)


def path_of(key: str, file: str = "") -> Path:
    """The place that a dotted key names, by the rules of TOML. Errors: BadFile."""
    try:
        table: Any = {} if "\n" in key else toml_table(f"{key} = 0".encode(), key)
    except BadFile:
        table = {}
    path: list[str] = []
    while isinstance(table, dict) and len(table) == 1:
        [(name, table)] = table.items()
        path.append(name)
    if not path or table != 0:
        mend = "write names with dots between them, such as types.review.timeout; quote a name with other signs."
        raise BadFile(file or key, "unset" if file else "", f"{key!r} is no key.", mend)
    return tuple(path)


def merged(base: Settings, now: Settings, change: Change, file: str) -> Settings:
    """The settings with a change. base: those of spool.toml alone. Errors: BadFile where the result is none."""
    table, first = table_of(now), table_of(base)
    for path in change.paths:
        table = restored(table, first, path)
    said, added = _parted(change.settings)
    return check_settings(_raised(overlaid(table, said), added, file), file)


def _parted(said: Table) -> tuple[Table, Table]:
    """What a change says, without what it adds to budgets; and that, by budget in lower case."""
    budgets = said.get("budgets")
    named = {name: own for name, own in budgets.items() if isinstance(own, dict)} if isinstance(budgets, dict) else {}
    added = {name.strip().lower(): own["add"] for name, own in named.items() if "add" in own}
    if not added:
        return said, {}
    rest = {name: {key: value for key, value in own.items() if key != "add"} for name, own in named.items()}
    return {**said, "budgets": {**said["budgets"], **rest}}, added


def _raised(table: Table, added: Table, file: str) -> Table:
    """A table in which the limits of budgets are raised; a limit that is not there stays so. Errors: BadFile."""
    budgets = dict(table.get("budgets", {}))
    for name, add in added.items():
        where = f"budgets.{name}.add"
        try:
            more = check(Amounts, as_object(add, file), file).given
        except BadFile as error:
            raise BadFile(file, ".".join(filter(None, (where, error.field))), error.problem, error.mend) from error
        own = budgets[name]  # it is a table: what else the change says of the budget was laid over it
        sums = {key: round(own[key] + more[key], 6) for key in more if isinstance(own.get(key), int | float)}
        budgets[name] = own | sums
    return table | {"budgets": budgets} if added else table
