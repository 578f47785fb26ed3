"""Settings that are changed while the spool runs: `settings/NUMBER.NODE.json`, merged over spool.toml by number; and
how one table of settings is laid over another.

Law: a file says only what it changes, and is never replaced: a later change has a higher number. What all nodes must
agree on at one moment is not changeable, since nodes see a new file at different times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

from spoold.protocol.codec import as_object, check, check_settings, load_sent_model
from spoold.protocol.errors import BadFile
from spoold.protocol.names import NODE, number, sure
from spoold.protocol.settings import Amounts, Settings
from spoold.protocol.toml_file import toml_table

_CHANGE = re.compile(rf"{number(9)}\.({NODE})\.json")
# What an error calls a change that nobody has published.
THE_CHANGE = "the change"
# The sections of spool.toml that can be changed while nodes run, each with all that is in it.
CHANGEABLE = ("timeout", "types", "limits", "classes", "budgets", "retry", "retention", "ready", "fair", "alerts")


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


# Tables of settings: one laid over another, and each single setting with its key.
# Law: the model says what is a table of settings and what is one value. Of a table only what is given changes; a
# value is replaced as a whole, also one that is a list or names with numbers.


Table = dict[str, Any]
# The place of a setting: ("types", "review", "timeout").
Path = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def table_of(settings: Settings) -> Table:
    """What is set, as in spool.toml, without the defaults."""
    return overlaid({}, settings.model_dump(exclude_unset=True))


def overlaid(ours: Table, theirs: Table, shape: Any = Settings) -> Table:
    """A table with what another says laid over it; neither is changed. shape: the type that the model gives both."""
    found, given = dict(ours), set[str]()
    for said, value in theirs.items():
        name, inner = _member(shape, said)
        # The check of the whole refuses names that differ by case alone, so they must reach it as they stand.
        name = said if name in given else name
        given.add(name)
        if _is_table(inner) and isinstance(value, dict):
            mine = found.get(name)
            found[name] = overlaid(mine if isinstance(mine, dict) else {}, value, inner)
        else:
            found[name] = value
    return found


def restored(ours: Table, base: Table, path: Path, shape: Any = Settings) -> Table:
    """A table with one setting, or one table in it, as the base has it; without it where the base has none."""
    name, inner = _member(shape, path[0])
    found, mine, theirs = dict(ours), ours.get(name), base.get(name)
    if len(path) > 1 and isinstance(mine, dict) and _is_table(inner):
        theirs = restored(mine, theirs if isinstance(theirs, dict) else {}, path[1:], inner)
    if theirs or name in base:
        found[name] = theirs
    else:
        found.pop(name, None)
    return found


def leaves(table: Table, shape: Any = Settings, above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Each single setting of a table, with its place."""
    for said, value in table.items():
        name, inner = _member(shape, said)
        if _is_table(inner) and isinstance(value, dict):
            yield from leaves(value, inner, (*above, name))
        else:
            yield (*above, name), value


def spelled(path: Path, shape: Any = Settings) -> Path | None:
    """A place as the model spells it; None where it has no such setting and no such table."""
    found: list[str] = []
    for part in path:
        if not _is_table(shape) or (get_origin(shape) is not dict and part not in _spellings(shape)):
            return None
        name, shape = _member(shape, part)
        found.append(name)
    return tuple(found)


def within(path: Path, above: Path) -> bool:
    """Whether a place is the other, or lies in that table."""
    return path[: len(above)] == above


def dotted(path: Path) -> str:
    """A place as its key in spool.toml: types.review.timeout."""
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part) for part in path)


def _member(shape: Any, name: str) -> tuple[str, Any]:
    """A member of a table: its name as people write it, and its shape. Case does not count in names of types."""
    if get_origin(shape) is dict:
        return name.strip().lower(), _plain(get_args(shape)[1])
    written, annotation = _spellings(shape).get(name, (name, None))
    return written, _plain(annotation)


@cache
def _spellings(model: type[BaseModel]) -> dict[str, tuple[str, Any]]:
    """Each name that a field may have in a file, with the one that people write, and its type."""
    found = {}
    for name, field in model.model_fields.items():
        others = [f"{other}" for other in getattr(field.validation_alias, "choices", ()) if other != name]
        for spelling in (name, *others):
            found[spelling] = ([name, *others][-1], field.annotation)
    return found


def _is_table(shape: Any) -> bool:
    if get_origin(shape) is dict:
        return _is_table(_plain(get_args(shape)[1]))
    return isinstance(shape, type) and issubclass(shape, BaseModel)


def _plain(shape: Any) -> Any:
    """A type without what is said beside it, and without None."""
    if get_origin(shape) is Annotated:
        return _plain(get_args(shape)[0])
    if get_origin(shape) in (Union, UnionType):
        return next((inner for inner in map(_plain, get_args(shape)) if _is_table(inner)), None)
    return shape
