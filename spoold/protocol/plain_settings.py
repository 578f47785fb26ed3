"""spool.toml and the marker, as far as every command needs them.

Law: `Basics` has the defaults of `settings.Settings`, and a test holds it so. An empty table needs no model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spoold.protocol.layout import FORMAT_VERSION
from spoold.protocol.plain_fields import (
    Unsure,
    one_of,
    part,
    text,
    whole,
)

if TYPE_CHECKING:
    from spoold.protocol.doctor_report import Strategy

# How nodes of a spool may claim: the values of `report.Strategy`.
CLAIMS = ("rename", "lock")
# A file of comments only, without a byte that a reader of TOML could refuse.
_COMMENTS = re.compile(rb"(?:[ \t]*+(?:#[\t\x20-\x7e]*+)?\r?\n)*+(?:[ \t]*+(?:#[\t\x20-\x7e]*+)?)?")
_SHORT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Basics:
    """The settings that every command needs, in their units: see `settings.Settings`."""

    interval_s: float = 5
    max_bytes: int = 16 << 20
    fsync: bool = True
    warn: float = 0.80
    stop: float = 0.95
    enough_free_mb: int = 1024
    max_depth: int = 5


def says_nothing(data: bytes) -> bool:
    """Whether the bytes surely are a TOML file without a value, such as `spool init` writes."""
    return len(data) < _SHORT_BYTES and _COMMENTS.fullmatch(data) is not None


def basics(found: Mapping[str, Any]) -> Basics | None:
    """The basics in the table of a spool.toml that is surely valid; None if the caller must ask the model."""
    if not found:
        return Basics()
    from spoold.protocol.plain_settings_table import read

    said = read(found)
    if said is None:
        return None
    wanted = [("heartbeat", "interval_s"), ("drop", "max_bytes"), ("durability", "fsync"), ("children", "max_depth")]
    wanted += [("disk", name) for name in ("warn", "stop", "enough_free_mb")]
    return Basics(**{name: said[section][name] for section, name in wanted if name in said.get(section, {})})


@dataclass(frozen=True, slots=True)
class Identity:
    """The contents of the marker: the spool's id, and how its nodes claim, `rename` or `lock`."""

    spool_id: str
    claim: Strategy


_MARKER = part({"format": whole(FORMAT_VERSION, FORMAT_VERSION), "spool_id": text, "claim": one_of(*CLAIMS)})


def identity(marker: Mapping[str, Any]) -> Identity | None:
    """The contents of a marker that is surely valid; None if the caller must ask the model."""
    try:
        said = _MARKER(marker)
        text(marker.get("created_at", ""))
    except Unsure:
        return None
    return Identity(said.spool_id, said.claim)
