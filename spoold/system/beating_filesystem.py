"""The file-system port of a node that beats: between two calls of a step it lets the node renew what others watch.

Law: a step may make any number of calls to the share, and beats on time all the same: before each call of the thread
that steps, `breath` is called, which beats if it is time. Nothing is breathed within a breath. The calls themselves
are the same as without this, and the time (s) that they took is added up: what else a step takes is its own.

Touches: threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, cast

from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem

VERBS = tuple(name for name, member in vars(FileSystem).items() if callable(member) and not name.startswith("_"))


class Breather:
    """The breath of one node, for the port that `breathing` makes. waited_s: how long calls of its steps took."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._thread: int | None = None
        self._breath: Callable[[], None] | None = None
        self.waited_s = 0.0

    @contextmanager
    def during(self, breath: Callable[[], None]) -> Iterator[None]:
        """Breathe within this block, on this thread alone."""
        self._thread, self._breath = get_ident(), breath
        try:
            yield
        finally:
            self._thread = self._breath = None

    def call(self, verb: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make one call, after a breath if this is the thread that steps."""
        if self._thread is None or self._thread != get_ident():
            return verb(*args, **kwargs)
        if (breath := self._breath) is not None:
            self._breath = None
            try:
                breath()
            finally:
                self._breath = breath
        began = self._clock.monotonic()
        try:
            return verb(*args, **kwargs)
        finally:
            self.waited_s += self._clock.monotonic() - began


def breathing(inner: FileSystem, breather: Breather) -> FileSystem:
    """Return the same file system, which lets the node breathe before each call."""
    return cast(FileSystem, _Breathing(inner, breather))


class _Breathing:
    def __init__(self, inner: FileSystem, breather: Breather) -> None:
        self._inner = inner
        for verb in VERBS:
            setattr(self, verb, _breathed(inner, verb, breather))

    @property
    def remote(self) -> bool:
        return self._inner.remote

    @property
    def forgets(self) -> bool:
        return self._inner.forgets


def _breathed(inner: FileSystem, verb: str, breather: Breather) -> Callable[..., Any]:
    def breathed(*args: Any, **kwargs: Any) -> Any:
        return breather.call(getattr(inner, verb), args, kwargs)

    return breathed
