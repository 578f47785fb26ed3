"""Errors in words: what is wrong, where, and how to fix it, for a model that has to correct its call.

Law: an error of ours names no file of this machine's program and shows no traceback; the journal of the server has
it.
"""

from __future__ import annotations

from spoold.protocol.errors import BadFile, SpoolError

MOST = 2000
BUG = "this is a bug in spoold; please report it. The server's stderr has the details."


def told(error: Exception) -> str:
    """Return the error as a sentence."""
    if isinstance(error, BadFile) and error.file in ("the task", "the tasks"):
        text = f"{error.told(error.file)} Fix: {error.mend}"
    elif isinstance(error, SpoolError):
        text = str(error)
    elif isinstance(error, OSError):
        text = (
            f"the spool cannot be reached: {error.strerror or error}. Fix: try again, or ask a person to look at it."
        )
    else:
        text = BUG
    return text if len(text) <= MOST else f"{text[:MOST]} …"
