"""A file of the spool is a regular file. What else stands under its name is the fault of who put it there.

Links and the like are never followed on a share; and no look at one, however often, makes a file of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spoold.protocol.errors import BadFile
from spoold.system.filesystem import NotRegularError

_MEND = "put a file in its place, since links and the like are never followed on a share."


@contextmanager
def regular(file: str) -> Iterator[None]:
    """Around a read: what is no regular file is a BadFile of this name, where it would be an error of the share."""
    try:
        yield
    except NotRegularError as error:
        raise BadFile(file, "", f"is {error.strerror}.", _MEND) from error
