"""Processes that stop before every file-system call, until somebody says who makes the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from greenlet import getcurrent, greenlet

from spoold.protocol.errors import ShutOut
from spoold.system.filesystem import Stat
from tests.sim.watched import WatchedCluster
from tests.support.faults import Crashed

_Access = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Call:
    """One call that was made, and who might have made one instead of it."""

    who: str
    verb: str
    args: tuple[Any, ...]
    waiting: tuple[str, ...]

    @property
    def accesses(self) -> tuple[_Access, ...]:
        """What it reads and writes."""
        return accesses(self.verb, self.args)

    def __str__(self) -> str:
        return f"{self.who} {self.verb} {' → '.join(a for a in self.args if isinstance(a, str))}"


def tells_people(path: str) -> bool:
    """Whether this is a journal, a log or a snapshot: they decide nothing, and are cleared away only after days."""
    return path.partition("/")[0] in ("events", "logs", "status")


def accesses(verb: str, args: tuple[Any, ...]) -> tuple[_Access, ...]:
    """What a call reads and writes: a name and what stands under it, or the entries of a directory."""
    if verb in ("flush", "sync") or tells_people(args[0]):
        return ()  # power cuts are another story
    path: str = args[0]
    parent = path.rpartition("/")[0]
    if verb == "list":
        return (("list read", path), ("entry read", path))
    if verb in ("read", "stat"):
        return (("entry read", path), *((("list read", path),) if verb == "stat" else ()))
    if verb == "rename":
        target: str = args[1]
        there = target.rpartition("/")[0]
        both = (("list write", parent), ("list write", there), ("entry read", parent), ("entry read", there))
        return (("entry write", path), ("entry write", target), *both)
    own = (("list read", path),) if verb == "rmdir" else ()
    return (("entry write", path), ("list write", parent), ("entry read", parent), *own)


class Actor:
    """One process: a greenlet that makes some steps. history: a hash of all that it asked and was answered."""

    def __init__(self, name: str, body: Callable[[], None]) -> None:
        self.name = name
        self.history = 0
        self.calls = 0
        self.next: tuple[str, tuple[Any, ...]] | None = None
        self.failure: BaseException | None = None
        self.thread = greenlet(self._live)
        self._body = body

    def _live(self) -> None:
        try:
            self._body()
        except Crashed:
            pass
        except BaseException as error:  # noqa: BLE001  handed to whoever makes the schedule
            self.failure = error
        self.next = None


class Interleaving:
    """A cluster of which some nodes stop before every call. It is the cluster's gate."""

    def __init__(self, cluster: WatchedCluster, before_call: Callable[[str], object] = lambda who: None) -> None:
        self.cluster = cluster
        self.before_call = before_call
        self.actors: dict[str, Actor] = {}
        self.trace: list[Call] = []
        self.running: str | None = None
        self._hub = getcurrent()
        self._tree = 0
        self._content: dict[str, int] = {}
        self._closed = False
        cluster.gate = self

    def __call__(self, who: str, verb: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        actor = self.actors.get(who)
        if actor is None or getcurrent() is not actor.thread:
            return act()
        actor.next = (verb, args)
        self._hub.switch()
        if self._closed:
            raise Crashed(who)
        self.before_call(who)
        answer: Any = None
        try:
            answer = act()
        except OSError as error:
            answer = error.errno
            raise
        finally:
            self._note(actor, verb, args, answer)
        return answer

    def add(self, name: str, body: Callable[[], None]) -> Actor:
        """A node that from now on stops before every call; it stands before its first one already."""
        actor = self.actors[name] = Actor(name, body)
        actor.thread.switch()
        return actor

    def steps(self, name: str, number: int) -> Callable[[], None]:
        """So many steps of a node, as the daemon makes them."""

        def live() -> None:
            node = self.cluster.nodes[name]
            for _ in range(number):
                try:
                    node.actor.step()
                except OSError:
                    continue
                except ShutOut:
                    self.cluster.gone[name] = "shut out"
                    return

        return live

    def begin(self) -> None:
        """From here on calls count."""
        self.trace.clear()
        self._tree, self.running = 0, None
        self._content.clear()
        for actor in self.actors.values():
            actor.calls = actor.history = 0

    def waiting(self) -> tuple[str, ...]:
        """Who stands before a call."""
        return tuple(name for name, actor in self.actors.items() if actor.next is not None)

    def call(self, name: str) -> None:
        """Let this one make its call, and come to its next. Errors: what it failed with, what the laws say."""
        actor = self.actors[name]
        assert actor.next is not None
        verb, args = actor.next
        self.trace.append(Call(name, verb, args, self.waiting()))
        actor.calls += 1
        actor.thread.switch()
        self.running = name if name in self.waiting() else None
        if self.cluster.broken is not None:
            raise self.cluster.broken
        if actor.failure is not None:
            raise actor.failure

    def lengths(self) -> list[int]:
        """How many calls each has made."""
        return [actor.calls for actor in self.actors.values()]

    def state(self) -> int:
        """A hash of the tree and of what everybody knows of it."""
        return hash((self._tree, *(actor.history for actor in self.actors.values())))

    def close(self) -> None:
        """Nobody goes on."""
        self._closed = True
        for actor in self.actors.values():
            while actor.next is not None:
                actor.thread.switch()
        self.cluster.gate = lambda who, verb, args, act: act()

    def _note(self, actor: Actor, verb: str, args: tuple[Any, ...], answer: Any) -> None:
        if isinstance(answer, list):
            answer = tuple(sorted(answer))
        elif isinstance(answer, Stat):
            answer = (answer.kind, answer.size, answer.mtime_ns)
        failed = isinstance(answer, int)
        if not tells_people(args[0] if args else ""):
            actor.history = hash((actor.history, verb, args, answer))
        if failed:
            return
        if verb == "rename":
            self._put(args[1], self._take(args[0]))
        elif verb in ("write", "append", "mkdir"):
            before = self._take(args[0], known=verb == "append")
            self._put(args[0], hash((before, actor.history)))
        elif verb in ("unlink", "rmdir"):
            self._take(args[0])

    def _take(self, path: str, *, known: bool = True) -> int:
        """Remove a file from the hash of the tree; what was there before counts as written by its name."""
        content = self._content.pop(path, None)
        if content is None:
            if known:
                self._tree ^= hash((path, hash(path)))
            return hash(path)
        self._tree ^= hash((path, content))
        return content

    def _put(self, path: str, content: int) -> None:
        self._content[path] = content
        self._tree ^= hash((path, content))
