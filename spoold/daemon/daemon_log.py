"""A daemon's log on stderr, where systemd's journal picks it up: lines for people, or JSON for programs.

Law: SPOOL_LOG_LEVEL (debug, info, warning, error; default info) and SPOOL_LOG_FORMAT (text, json) are environment
variables, so that the children of `spool up` log in the same way. Any other value is an error that names the
variable.

Touches: the environment.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping

from spoold.protocol.errors import BadFile
from spoold.store.store import stamp

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")


def configure(environ: Mapping[str, str] = os.environ) -> None:
    """Set up the log of this process. Errors: BadFile that names the variable."""
    level = environ.get("SPOOL_LOG_LEVEL", "info").lower()
    form = environ.get("SPOOL_LOG_FORMAT", "text").lower()
    for name, value, known in (("SPOOL_LOG_LEVEL", level, LEVELS), ("SPOOL_LOG_FORMAT", form, FORMATS)):
        if value not in known:
            raise BadFile("the environment", name, f"is {value!r}.", f"use one of {', '.join(known)}.")
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines() if form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    logger = logging.getLogger("spoold")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())


class JsonLines(logging.Formatter):
    """One JSON object per line: at (RFC 3339, UTC), level, message, and error with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"at": stamp(record.created), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
