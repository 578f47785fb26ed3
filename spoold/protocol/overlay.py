"""Tables of settings: one laid over another, and each single setting with its key.

Law: the model says what is a table of settings and what is one value. Of a table only what is given changes; a value
is replaced as a whole, also one that is a list or names with numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from spoold.protocol.settings import Settings

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
