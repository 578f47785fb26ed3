"""A cluster that is stepped by hand, at whose server the laws look at every change.

The nodes are those of `tests.support.cluster`; between their mounts and the tree stands a gate, at which whoever
plays with the cluster may do as he likes: count calls, end a process in the middle of one, or give the turn away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from spoold.rules.tree.audit import Severity, audit
from spoold.store.store import open_store
from spoold.store.tree_repair import survey
from spoold.system.filesystem import Stat, Usage
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.scheduler import Scheduler
from tests.sim.server import Onlooker, Server
from tests.support.cluster import Cluster, Node
from tests.support.tokens import tokens

CHANGES = frozenset(("rename", "unlink", "mkdir", "rmdir", "write", "append"))
LEFT_OVER = ("pending/", "admitting/", "batches/", "returned/")


class Gate(Protocol):
    """What stands between a node and the tree. Told who calls, what, and how the call is made."""

    def __call__(self, who: str, verb: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        """Make the call, or do not."""
        ...


class GatedFileSystem:
    """The file-system port of one process, through a gate. Room is unbounded and always the same."""

    def __init__(self, who: str, cluster: WatchedCluster) -> None:
        self._who = who
        self._cluster = cluster

    def list(self, path: str) -> list[str]:
        # Sorted, since the port promises no order: what depended on one would differ from run to run.
        names: list[str] = self._call("list", path)
        return sorted(names)

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        data: bytes = self._call("read", path)
        return data[offset:] if limit is None else data[offset : offset + max(limit, 0)]

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        self._call("write", path, data, durable=durable)

    def append(self, path: str, data: bytes) -> None:
        self._call("append", path, data)

    def rename(self, src: str, dst: str) -> None:
        self._call("rename", src, dst)

    def unlink(self, path: str) -> None:
        self._call("unlink", path)

    def mkdir(self, path: str) -> None:
        self._call("mkdir", path)

    def rmdir(self, path: str) -> None:
        self._call("rmdir", path)

    def stat(self, path: str) -> Stat:
        found: Stat = self._call("stat", path)
        return found

    def persist(self, path: str) -> None:
        self._call("persist", path)

    def has_writer(self, path: str) -> bool | None:
        found: bool | None = self._call("has_writer", path)
        return found

    def sync(self, path: str) -> None:
        self._call("sync", path)

    @property
    def remote(self) -> bool:
        return not self._cluster.server.rolls_back

    forgets = False

    def flush(self) -> None:
        self._call("flush")

    def usage(self) -> Usage:
        return Usage(total_bytes=1 << 40, free_bytes=1 << 40, free_inodes=None)

    def _call(self, verb: str, *args: Any, **options: Any) -> Any:
        return self._cluster.gate(self._who, verb, args, lambda: self._cluster.server.call(verb, *args, **options))


class WatchedCluster(Cluster):
    """A cluster under the laws. broken: the first of them that did not hold, kept also where a node caught it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.broken: Broken | None = None
        self.gate: Gate = lambda who, verb, args, act: act()
        self.everyone: list[Node] = []
        self._scheduler = Scheduler()
        self.server = Server(self.clock, rolls_back=True)
        self.server.fs = self.fs
        self.laws = Laws(self._scheduler, self.server, {}, by_lock=False)
        self.server.onlooker = cast("Onlooker", _Attentive(self))

    def pass_time(self, seconds: float, but: str = "") -> None:
        """Move the clocks, and nothing else."""
        self._scheduler.now += seconds
        super().pass_time(seconds, but)

    def mount(self, who: str) -> GatedFileSystem:
        """A way to the tree for a process of that name."""
        return GatedFileSystem(who, self)

    def where(self, task_id: str) -> str | None:
        """The state of a task as people say it, None when there is none."""
        return self.states().get(task_id)

    def states(self) -> dict[str, str]:
        """The state of every task. One that tells of an alert stands without its hash, a second one with."""
        found: dict[str, str] = {}
        for token in tokens(self.fs):
            told = token.id.rpartition("-")[0] if token.id.startswith("alert-") else token.id
            state = f"{token.state}, archived" if token.branch == "archive" else token.state
            found[token.id if told in found else told] = state
        return found

    def check(self, ends: dict[str, str]) -> None:
        """How it must look in the end. Errors: Broken."""
        if self.broken is not None:
            raise self.broken
        found = self.states()
        if found != ends:
            raise Broken(f"ends: {found}, and it had to be {ends}")
        left = [path for path in self.fs.files() if path.startswith(LEFT_OVER)]
        if left:
            raise Broken(f"ends: {left} left over")
        started = [job.key for node in self.everyone if node.runner is not None for job in node.runner.started]
        if len(started) != len(set(started)):
            raise Broken(f"one attempt was started twice: {sorted(started)}")
        store = open_store(self.fs, self.clock, "fsck", "/spool")
        errors = [finding for finding in audit(survey(store)) if finding.severity is Severity.ERROR]
        if errors:
            raise Broken(f"fsck: {errors[0].problem} ({', '.join(errors[0].paths)})")

    def _node(self, name: str, host: str) -> Node:
        node = super()._node(name, host)
        node.fs.inner = self.mount(name)
        self.everyone.append(node)
        return node


class _Attentive:
    """The laws as the server's onlooker; what they object to is kept, even where a node swallows the objection."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Callable[..., None]:
        law = getattr(self._cluster.laws, name)

        def look(*args: object) -> None:
            try:
                law(*args)
            except Broken as error:
                self._cluster.broken = self._cluster.broken or error
                raise

        return look
