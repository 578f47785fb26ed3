"""Drops of strangers are made durable before they are admitted, where `durability.fsync` asks for it.

Law: an admitted drop survives a power cut of the machine that holds the files. `spool submit` waits for that itself,
and an NFS client when it closes the file; for copies by any other program, nothing has ensured it. A leader on
another machine outlives the power cut and remembers what it has read; so the durable content is compared with that.
"""

from __future__ import annotations

import errno
import hashlib

from spoold.master.desk import Desk
from spoold.system.filesystem import NotRegularError

# Of a judged content: its size in bytes, and a digest.
Signature = tuple[int, bytes]
# The leader can read the drop, but may not open it in a way that could request a flush: nothing more can be done.
_NOT_GRANTED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def signature(data: bytes) -> Signature:
    """Return a signature that differs between contents of a drop."""
    return len(data), hashlib.blake2b(data, digest_size=16).digest()


def needed(desk: Desk) -> bool:
    """Whether the content of a stranger's drop may not be on disk yet."""
    fs = desk.store.fs
    return desk.store.durable and (fs.forgets or not fs.remote)


def make(desk: Desk, path: str, judged: Signature) -> bool:
    """Make one drop durable. False when its content is no longer the judged one, so it has to be judged again; also
    when that failed: then it is refused for now (`desk.step.denied`), with a notice.
    """
    try:
        desk.store.fs.persist(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in _NOT_GRANTED:
            return _put_off(desk, path, error)
        mend = "let the user that the master runs as write it"
        desk.journal.note("NOT_DURABLE", drop=path, problem=f"{error.strerror}", mend=mend)
    return not desk.store.fs.forgets or _is_still(desk, path, judged)


def _is_still(desk: Desk, path: str, judged: Signature) -> bool:
    """Whether a drop's content is unchanged. Since it was read, the server may have lost its power, and the content;
    then it has made an empty file durable.
    """
    try:
        return signature(desk.store.fs.read(path, judged[0] + 1)) == judged
    except (FileNotFoundError, NotRegularError):
        return False
    except OSError as error:
        return _put_off(desk, path, error)


def _put_off(desk: Desk, path: str, error: OSError) -> bool:
    desk.step.deny()
    desk.report.notice(f"{path} cannot be made durable: {error.strerror}; it is tried again")
    return False


def make_all(desk: Desk) -> bool:
    """Make all of them durable at once, where the files are local; False where each must be done by itself."""
    if desk.store.fs.remote:
        return False
    try:
        desk.store.fs.flush()
    except OSError:
        return False
    return True
