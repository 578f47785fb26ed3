"""Settings that are changed while the spool runs: `settings/NUMBER.NODE.json`, merged over spool.toml by number.

Law: a file says only what it changes, and is never replaced: a later change has a higher number. What all nodes must
agree on at one moment is not changeable, since nodes see a new file at different times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from spoold.protocol.codec import check, load_model
from spoold.protocol.errors import BadFile
from spoold.protocol.names import NODE, number, sure
from spoold.protocol.settings import Settings

_CHANGE = re.compile(rf"{number(9)}\.({NODE})\.json")
# The sections of spool.toml that can be changed while nodes run, each with all that is in it.
CHANGEABLE = ("timeout", "types", "limits", "classes", "retry", "retention", "ready")


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
    """One change. settings: as in spool.toml, and only what changes. by, at (RFC 3339), reason: for people."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    by: str = ""
    at: str = ""
    reason: str = ""
    settings: dict[str, Any] = {}


def load_change(data: bytes, file: str) -> Settings:
    """What a change says, and nothing else set. Errors: BadFile that names the field."""
    return changed(load_model(Change, data, file).settings, file)


def changed(said: dict[str, Any], file: str) -> Settings:
    """These settings, and nothing else set. Errors: BadFile for what is wrong or cannot be changed."""
    found = check(Settings, said, file)
    for name in said:
        if name not in CHANGEABLE:
            fix = f"write it into spool.toml and restart every node; only {', '.join(CHANGEABLE)} can."
            raise BadFile(file, name, "cannot be changed while nodes run.", fix)
    return found


def merged(base: Settings, change: Settings) -> Settings:
    """The settings with what is set in the change; of a section, and of a type, all else stays."""
    update: dict[str, Any] = {}
    for name in change.model_fields_set:
        ours, theirs = getattr(base, name), getattr(change, name)
        if isinstance(theirs, dict):  # a section by name: of a type, or a limit, all else stays
            update[name] = ours | {
                word: _over(ours[word], given) if word in ours else given for word, given in theirs.items()
            }
        else:
            update[name] = _over(ours, theirs) if isinstance(theirs, BaseModel) else theirs
    return base.model_copy(update=update)


def _over(ours: BaseModel, theirs: BaseModel) -> BaseModel:
    return ours.model_copy(update={name: getattr(theirs, name) for name in theirs.model_fields_set})
