"""Field types that several files share: priorities, sizes, times, words. Each accepts what people write."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from spoold.protocol.lanes import WORD
from spoold.protocol.names import is_id

PRIORITIES = {"critical": 20, "high": 10, "medium": 0, "normal": 0, "low": -10, "background": -20}
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(|b|[kmgt](?:i?b)?)", re.IGNORECASE)
_MIB = {"": 1.0, "b": 1 / (1 << 20), "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}


class Strict(BaseModel):
    """A value that is never changed after it was read, and in which an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


def _priority(value: Any) -> Any:
    if isinstance(value, str):
        named = PRIORITIES.get(value.strip().lower())
        if named is None:
            raise ValueError(f"not a priority; use an integer or one of {', '.join(PRIORITIES)}")
        return named
    return value


def _word(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _mem_mb(value: Any) -> Any:
    """'4G', '512M' or a number of MiB, rounded up to whole MiB."""
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError("not an amount of memory; use MiB as a number, or '512M', '4G'")
        return -int(-float(match[1]) * _MIB[match[2][:1].lower()] // 1)
    return value


def _id(value: str) -> str:
    if not is_id(value):
        raise ValueError(
            "not an id; use 1 to 120 of A-Z a-z 0-9 _ = + , . - starting with a letter or digit, no final dot, "
            "and no device name such as con or nul"
        )
    return value


def _words(value: Any) -> Any:
    return [part for part in value.replace("+", ",").split(",") if part] if isinstance(value, str) else value


def _stamp(value: Any) -> Any:
    # A bare number would be taken for seconds since 1970, where its writer meant "in an hour".
    if not isinstance(value, (str, datetime)) or (isinstance(value, str) and ":" not in value):
        raise ValueError("not a time; use RFC 3339 with a zone, such as '2026-01-31T18:00:00Z'")
    return value


Priority = Annotated[int, BeforeValidator(_priority), Field(ge=-(10**9), le=10**9)]
Word = Annotated[str, BeforeValidator(_word), Field(pattern=f"^{WORD}$")]
Words = Annotated[tuple[Word, ...], BeforeValidator(_words)]
MemMb = Annotated[int, BeforeValidator(_mem_mb), Field(ge=0, le=10**9)]
TaskId = Annotated[str, AfterValidator(_id)]
Seconds = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
SomeSeconds = Annotated[float, Field(gt=0, le=10**9, allow_inf_nan=False)]
Stamp = Annotated[AwareDatetime, BeforeValidator(_stamp)]
