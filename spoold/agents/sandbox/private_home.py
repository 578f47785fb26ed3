"""Files of ours in an agent's home, which is the agent's to write: no link in there leads out of its folder.

Law: what an earlier attempt left in the place of a file or folder of ours is replaced by ours, and what it names is
neither written nor read. A home and the note of its session go together: the note never outlives its home, nor comes
to another one.

Touches: files.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from spoold.system.openat import Beneath
from spoold.system.remover import remove

SESSION_MAX = 1 << 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def put(home: str, path: str, text: str) -> None:
    """Write a file below a home, for its owner alone. Errors: OSError, ValueError for a path that is not below it."""
    *folders, name = _below(home, path).split("/")
    at = os.open(home, _FOLDER)
    try:
        for folder in folders:
            inner = _folder(folder, at)
            os.close(at)
            at = inner
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=at)
        with open(os.open(name, _NEW, 0o600, dir_fd=at), "w", encoding="utf-8") as file:
            file.write(text)
    finally:
        os.close(at)


def opened(home: str, path: str) -> int:
    """Open a file below a home for reading; returns its descriptor. Its name may be a link to a file beside it, as
    that of a program's newest log is. Errors: OSError, ValueError as for `put`."""
    return Beneath(home).at(_below(home, path), _open)


def session_of(home: str) -> str:
    """Return the session with which the last attempt that used this home ended; '' where that is not known."""
    with suppress(OSError, ValueError), open(_note(home), encoding="utf-8") as file:
        return file.read(SESSION_MAX)
    return ""


def note_session(home: str, session: str) -> None:
    """Note it, beside the home and not in it. Errors: OSError."""
    with open(_note(home), "w", encoding="utf-8") as file:
        file.write(session)


def bring(home: str, to: str) -> None:
    """Move a home with its note. Errors: OSError."""
    # The home first: a home without a note only costs a session, and a note without its home would name a wrong one.
    os.rename(home, to)
    with suppress(FileNotFoundError):
        os.rename(_note(home), _note(to))


def forget(home: str) -> None:
    """Remove a home and its note. Never raises."""
    remove(home)
    with suppress(OSError):
        os.unlink(_note(home))


def _open(name: str, above: int | None) -> int:
    try:
        return os.open(name, _READ, dir_fd=above)
    except OSError as error:
        beside = os.readlink(name, dir_fd=above) if error.errno == errno.ELOOP else "/"
        if "/" in beside or beside in (".", ".."):
            raise
    return os.open(os.path.join(os.path.dirname(name), beside), _READ, dir_fd=above)


def _note(home: str) -> str:
    return f"{home}.session"


def _folder(name: str, above: int) -> int:
    """Open a folder, or make it in the place of whatever is there. Errors: OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.open(name, _FOLDER, dir_fd=above)
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=above)
    os.mkdir(name, 0o700, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)


def _below(home: str, path: str) -> str:
    below = os.path.relpath(path, home)
    if below.split("/", 1)[0] in ("..", "."):
        raise ValueError(f"{path} is not below {home}")
    return below
