"""A worker's offer just now: its configuration, less the types that its machine lacks or it keeps away from.

Law: an offer never holds more than the configuration. A type that is lacking is not among its handlers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from spoold.protocol.heartbeat import Capabilities

log = logging.getLogger("spoold")


class Offering:
    """lacks: the types whose handler cannot begin here, each with the reason (see `worker.readiness.lookup`)."""

    def __init__(self, can: Capabilities, lacks: Callable[[], Mapping[str, str]]) -> None:
        self._all = can
        self._lacks = lacks
        self.now = can
        self.look({})

    def look(self, shuns: Mapping[str, str]) -> bool:
        """Update `now`; True if it changed. An older reader finds no handler for a type that is lacking."""
        lacks = dict(self._lacks())
        if lacks == self.now.lacks and dict(shuns) == self.now.shuns:
            return False
        for kind in sorted(lacks.keys() - self.now.lacks.keys()):
            log.warning("no task of type %s is taken here: %s; this is looked at again every 30 s", kind, lacks[kind])
        for kind in sorted(self.now.lacks.keys() - lacks.keys()):
            log.info("tasks of type %s are taken again", kind)
        handlers = tuple(kind for kind in self._all.handlers if kind not in lacks)
        self.now = self._all.model_copy(update={"handlers": handlers, "lacks": lacks, "shuns": dict(shuns)})
        return True
