"""The findings of `spool doctor`, as kept in doctor/ and printed with --json.

Durations are in ms where a figure's name ends with `_ms` and in seconds where it ends with `_s`.

Law: a report is never replaced: a later one has a higher number. Readers accept fields that they do not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from spoold.protocol.heartbeat import MountFacts
from spoold.protocol.names import is_node

Strategy = Literal["rename", "lock"]
Safety = Literal["safe with rename", "safe with lock", "not safe"]

_NAME = re.compile(r"(0|[1-9][0-9]{0,8})\.([a-z0-9][a-z0-9_-]*)\.json")


class Remark(BaseModel):
    """One finding. probe: the probe that measured it; host: the machine, empty for all together.

    against: the claim strategies that it rules out, none for a warning or a note. mend: the change to make, in words.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    grade: Literal["bad", "warning", "note"]
    probe: str
    problem: str
    mend: str = ""
    host: str = ""
    against: tuple[Strategy, ...] = ()


class Report(BaseModel):
    """One run on one machine. machines: how many took part; measured: the figures on this machine, by probe;
    together: the figures of the probes that took several machines; line: a summary on one line, for a bug report.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    format: int = 1
    at: str
    node: str
    hostname: str = ""
    directory: str = ""
    spool_id: str = ""
    version: str = ""
    verdict: Safety
    reason: str
    machines: int = 1
    quick: bool = False
    mount: MountFacts | None = None
    remarks: tuple[Remark, ...] = ()
    measured: dict[str, dict[str, Any]] = {}
    together: dict[str, dict[str, Any]] = {}
    line: str = ""


@dataclass(frozen=True, slots=True, order=True)
class ReportName:
    """NUMBER.NODE.json: of two reports on the same kind of mount the higher number counts."""

    number: int
    node: str

    def encode(self) -> str:
        """The file's name."""
        return f"{self.number}.{self.node}.json"


def parse_report(name: str) -> ReportName | None:
    """A name in doctor/; None for any other name."""
    match = _NAME.fullmatch(name)
    return ReportName(int(match[1]), match[2]) if match is not None and is_node(match[2]) else None
