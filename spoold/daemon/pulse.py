"""Has the loop made progress, or is it stuck inside the share? Asked by the thread that never touches the share."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from spoold.system.filesystem import FileSystem


class Pulse:
    """Written by the loop's thread, read by the main one; single assignments, so no lock is needed."""

    def __init__(self) -> None:
        self.at = time.monotonic()
        self.inside: str | None = None

    def beat(self) -> None:
        """The loop has come round."""
        self.at = time.monotonic()

    @property
    def age_s(self) -> float:
        """Seconds since the loop last came round."""
        return time.monotonic() - self.at


_VERBS = ("list", "read", "write", "append", "rename", "unlink", "mkdir", "rmdir", "stat", "sync", "flush", "usage")


def pulsing(inner: FileSystem, pulse: Pulse) -> FileSystem:
    """The same file system, noting in the pulse which call the loop is in."""
    verbs = {verb: _noting(verb, getattr(inner, verb), pulse) for verb in _VERBS}
    return cast(FileSystem, SimpleNamespace(remote=inner.remote, **verbs))


def _noting(verb: str, call: Callable[..., Any], pulse: Pulse) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        pulse.inside = f"{verb} {args[0]}" if args else verb
        try:
            return call(*args, **kwargs)
        finally:
            pulse.inside = None

    return noted
