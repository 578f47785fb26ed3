"""Has the loop made progress, or is it stuck inside the share? Asked by the thread that never touches the share."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import get_ident
from types import SimpleNamespace
from typing import Any, cast

from spoold.system.filesystem import FileSystem


class Pulse:
    """Written by the loop's thread and those that it waits for, each in a place of its own; read by the main one."""

    def __init__(self) -> None:
        self.at = time.monotonic()
        self.calls: dict[int, tuple[str, object]] = {}

    @property
    def inside(self) -> str | None:
        """The call to the share that somebody is in."""
        return next((f"{verb} {path}" for verb, path in list(self.calls.values())), None)

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
    return cast(FileSystem, SimpleNamespace(remote=inner.remote, forgets=inner.forgets, **verbs))


def _noting(verb: str, call: Callable[..., Any], pulse: Pulse) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        thread = get_ident()
        pulse.calls[thread] = (verb, args[0] if args else "")
        try:
            return call(*args, **kwargs)
        finally:
            del pulse.calls[thread]

    return noted
