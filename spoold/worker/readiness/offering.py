"""A worker's offer just now: its configuration, less the types that its machine lacks or it keeps away from.

Law: an offer never holds more than the configuration. A type that is lacking is not among its handlers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spoold.protocol.heartbeat import UNCHECKED, Capabilities

log = logging.getLogger("spoold")


class Found(Protocol):
    """What of a worker's handlers is on its machine."""

    def lacks(self) -> Mapping[str, str]:
        """Return the types whose handler cannot begin here, each with the reason."""
        ...

    def versions(self) -> Mapping[str, str]:
        """Return what is known of the version of a handler's program, by type."""
        ...


@dataclass(frozen=True)
class Fixed:
    """What is known once and for all."""

    lacking: Mapping[str, str] = field(default_factory=dict)

    def lacks(self) -> Mapping[str, str]:
        """Return the types that were named."""
        return self.lacking

    def versions(self) -> Mapping[str, str]:
        """Return none: nobody looked."""
        return {}


EVERYTHING = Fixed()


class Offering:
    """found: what is on this machine; in a worker's process `worker.readiness.lookup` looks."""

    def __init__(self, can: Capabilities, found: Found = EVERYTHING) -> None:
        self._all, self._found = can, found
        self.now = can
        self.look({})

    def look(self, shuns: Mapping[str, str]) -> bool:
        """Update `now`; True if it changed. An older reader finds no handler for a type that is lacking."""
        lacks = dict(self._found.lacks())
        about = self._about()
        if lacks == self.now.lacks and dict(shuns) == self.now.shuns and about == self.now.about:
            return False
        for kind in sorted(lacks.keys() - self.now.lacks.keys()):
            if lacks[kind] == UNCHECKED:
                log.info("no task of type %s is taken yet: %s", kind, UNCHECKED)
                continue
            log.warning("no task of type %s is taken here: %s; this is looked at again every 30 s", kind, lacks[kind])
        for kind in sorted(self.now.lacks.keys() - lacks.keys()):
            again = "" if self.now.lacks[kind] == UNCHECKED else " again"
            log.info("tasks of type %s are taken%s", kind, again)
        handlers = tuple(kind for kind in self._all.handlers if kind not in lacks)
        self.now = self._all.model_copy(
            update={"handlers": handlers, "lacks": lacks, "shuns": dict(shuns), "about": about}
        )
        return True

    def _about(self) -> dict[str, dict[str, str]]:
        """Return what people are told of each handler, with its version where one is known."""
        about = dict(self._all.about)
        for kind, version in self._found.versions().items():
            about[kind] = {**about.get(kind, {}), "version": version}
        return about
