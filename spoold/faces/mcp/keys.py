"""Ids that follow from idempotency keys.

Law: the same key in the same scope always gives the same id, also after a restart of the server and in the next
attempt of the caller's task. So a call that is repeated finds its task, and makes no second one.
"""

from __future__ import annotations

import hashlib

from spoold.protocol.names import base36, slug

STEM_MAX = 40
DIGITS = 16


def id_of(scope: str, key: str, part: str = "") -> str:
    """Return the id of a task. part: which of the several tasks of one call; '' for its only one."""
    said = f"{scope}\0{key}\0{part}".encode(errors="backslashreplace")
    number = int.from_bytes(hashlib.sha256(said).digest()) % 36**DIGITS
    return f"{slug(part or key, STEM_MAX)}-{base36(number, DIGITS)}"
