"""Whether the loop makes progress or is stuck inside the share; for the thread that never touches the share.

Law: there is no lock, so that the main thread never waits for a thread that hangs: each thread writes at its own key,
and the main thread only reads.

Touches: threads, the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import get_ident
from typing import Any, cast

from spoold.system.filesystem import FileSystem


class Pulse:
    """Written by the loop's thread and those that it waits for, each at its own key; read by the main thread."""

    def __init__(self) -> None:
        self.at = time.monotonic()
        self.calls: dict[int, tuple[str, object]] = {}

    @property
    def inside(self) -> str | None:
        """A call to the share that has not returned; None for none."""
        return next((f"{verb} {path}" for verb, path in list(self.calls.values())), None)

    def beat(self) -> None:
        """Record that the loop begins a round."""
        self.at = time.monotonic()

    @property
    def age_s(self) -> float:
        """Seconds since the loop began its last round."""
        return time.monotonic() - self.at


VERBS = tuple(name for name, member in vars(FileSystem).items() if callable(member) and not name.startswith("_"))


def pulsing(inner: FileSystem, pulse: Pulse) -> FileSystem:
    """Return the same file system, with its present calls noted in the pulse. All its errors name a path, also those
    of an open file, for which the system names none.
    """
    return cast(FileSystem, _Pulsing(inner, pulse))


class _Pulsing:
    def __init__(self, inner: FileSystem, pulse: Pulse) -> None:
        self._inner = inner
        for verb in VERBS:
            setattr(self, verb, _noting(verb, getattr(inner, verb), pulse))

    @property
    def remote(self) -> bool:
        return self._inner.remote

    @property
    def forgets(self) -> bool:
        return self._inner.forgets


def _noting(verb: str, call: Callable[..., Any], pulse: Pulse) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        thread = get_ident()
        pulse.calls[thread] = (verb, args[0] if args else "")
        try:
            return call(*args, **kwargs)
        except OSError as error:
            if error.filename is None and args:
                error.filename = args[0]
            raise
        finally:
            del pulse.calls[thread]

    return noted
