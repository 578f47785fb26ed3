"""A node whose steps cost time: each call to the share, each byte that it moves, and each function that is called.

Law: it changes nothing but the node's clock. The time of a step is counted, not measured, so a test that uses it says
the same on any machine: a call of a function, ours or Python's own, counts as so much work of a slow processor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, cast

from spoold.system.filesystem import FileSystem
from tests.support.cluster import Node

# Seconds: a call to the share, a byte that it moves (10 MB/s), a call of a function.
CALL_S, BYTE_S, FUNCTION_S = 0.02, 1e-7, 2e-6
EACH = 1000
VERBS = tuple(name for name, member in vars(FileSystem).items() if callable(member) and not name.startswith("_"))


@dataclass(slots=True)
class Cost:
    """One step: its own time and that of its calls (s), the calls, the names that listings gave, the bytes moved."""

    own_s: float = 0.0
    called_s: float = 0.0
    calls: int = 0
    entries: int = 0
    bytes: int = 0


class Charged:
    """Wraps the mount of a node. beats: when (monotonic, s) it published a beat, or renewed its token."""

    def __init__(self, node: Node) -> None:
        self._inner, self._clock, self._node = node.fs.inner, node.clock, node
        self.cost, self.costs = Cost(), list[Cost]()
        self.beats = [self._clock.monotonic()]
        node.fs.inner = cast(FileSystem, _Port(self._inner, self._call))
        self._working = 0

    def step(self) -> Any:
        """One step of the node, charged. Errors: as its step."""
        self.cost, self._working = Cost(), 0
        self.costs.append(self.cost)
        sys.setprofile(self._work)
        try:
            return self._node.actor.step()
        finally:
            sys.setprofile(None)

    @property
    def gaps(self) -> list[float]:
        """The times (s) between two beats, up to now."""
        ends = [*self.beats[1:], self._clock.monotonic()]
        return [end - begin for begin, end in zip(self.beats, ends, strict=True)]

    def _work(self, frame: FrameType, event: str, argument: object) -> None:
        self._working += event in ("call", "c_call")
        if self._working >= EACH:
            self._working -= EACH
            self._clock.advance(EACH * FUNCTION_S)
            self.cost.own_s += EACH * FUNCTION_S

    def _call(self, verb: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        profile = sys.getprofile()
        sys.setprofile(None)  # the share works for itself
        try:
            moved = sum(len(one) for one in args if isinstance(one, bytes))
            result = call(*args, **kwargs)
            if isinstance(result, bytes):
                moved += len(result)
            elif isinstance(result, list):
                self.cost.entries += len(result)
                moved += 64 * len(result)
            seconds = CALL_S + moved * BYTE_S
            self._clock.advance(seconds)
            self.cost.calls, self.cost.bytes = self.cost.calls + 1, self.cost.bytes + moved
            self.cost.called_s += seconds
            if verb == "rename" and args[1].startswith(("heartbeats/", "master/")):
                self.beats.append(self._clock.monotonic())
            return result
        finally:
            sys.setprofile(profile)


class _Port:
    def __init__(self, inner: FileSystem, call: Callable[..., Any]) -> None:
        self._inner = inner
        for verb in VERBS:
            setattr(self, verb, self._charged(verb, call))

    def _charged(self, verb: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def charged(*args: Any, **kwargs: Any) -> Any:
            return call(verb, getattr(self._inner, verb), *args, **kwargs)

        return charged

    @property
    def remote(self) -> bool:
        return self._inner.remote

    @property
    def forgets(self) -> bool:
        return self._inner.forgets
