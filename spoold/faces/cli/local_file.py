"""A file on this machine that is replaced as a whole: its readers see the old one or the new one, never a part.

Law: it never lies in a spool. There, nothing is renamed onto a name that exists (`spool_layout.md`, The laws).

Touches: files, processes.
"""

from __future__ import annotations

import contextlib
import os

from spoold.protocol.errors import SpoolError


def replace(path: str, text: str, *, spool: str, option: str) -> None:
    """Write the text to a file, or over it. spool: the spool's directory; option: who named the file.

    Errors: SpoolError for a place in the spool and for one that is no file; OSError.
    """
    if os.path.lexists(path) and not os.path.isfile(path):
        raise SpoolError(f"{option}: {path} is no regular file. Fix: name a file, or a new one.")
    path = os.path.realpath(path)
    root = os.path.realpath(spool)
    if os.path.commonpath((root, path)) == root:
        raise SpoolError(
            f"{option}: {path} lies in the spool, whose files are never replaced. Fix: name a local file."
        )
    new = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}.new")
    try:
        with open(new, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
