"""A story that a cluster plays to its end by itself, whatever is done to it meanwhile, and how it must end.

Two masters, two workers; a DAG in a batch, a task that fails once, one that fails for good with a child below it, and
a drop that is no task. A node that crashes or is shut out is started again under another name, as its service manager
would.
"""

from __future__ import annotations

from collections.abc import Callable

from spoold.rules.tree.audit import Severity, audit
from spoold.store.store import open_store
from spoold.store.tree_repair import survey
from tests.support.cluster import Cluster, Node
from tests.support.tokens import tokens

SETTINGS = """
[heartbeat]
interval_s = 1
misses = 3
[retry]
backoff_s = 1
jitter = 0
crash_limit = 10
[drop]
grace_s = 2
"""
DAG = """
{"id": "top", "command": ["work"]}
{"id": "left", "command": ["work"], "after": "top"}
{"id": "right", "command": ["work"], "after": "top"}
{"id": "end", "command": ["work"], "after": ["left", "right"]}
"""
ENDS = {
    "top": "completed",
    "left": "completed",
    "right": "completed",
    "end": "completed",
    "flaky": "completed",
    "doomed": "failed",
    "below": "failed",
}
ROUNDS_MAX = 900
TICK_S = 0.5


class Story:
    """One playing of it. `after_round` is called with the number of each round, to do harm in it."""

    def __init__(self) -> None:
        self.cluster = Cluster(SETTINGS)
        self._failed_once = False
        self._starts = 2
        for name in ("m1", "m2"):
            self.cluster.master(name)
            self.cluster.step(name)
        for name in ("w1", "w2"):
            self.cluster.worker(name)
        self.cluster.settle()
        self.cluster.submit("dag.whole.jsonl", DAG)
        self.cluster.submit("flaky.json", '{"id": "flaky", "command": ["work"]}')
        self.cluster.submit("doomed.json", '{"id": "doomed", "command": ["work"], "max_retries": 0}')
        self.cluster.submit("below.json", '{"id": "below", "command": ["work"], "after": "doomed"}')
        self.cluster.submit("bad.json", '{"comand": ["work"]}')

    def node(self, name: str) -> Node:
        """A node of the first hour."""
        return self.cluster.nodes[name]

    def play(self, after_round: Callable[[int], None] | None = None) -> int:
        """Play it to its end; returns how many rounds that took. Errors: AssertionError when it ends otherwise."""
        for round_ in range(ROUNDS_MAX):
            self.cluster.pass_time(TICK_S)
            self.cluster.step_all()
            self._restart()
            self._finish()
            if after_round is not None:
                after_round(round_)
            if self._over():
                self.cluster.settle()
                self.check()
                return round_
        raise AssertionError(f"no end after {ROUNDS_MAX} rounds: {sorted(self.cluster.fs.files())}")

    def check(self) -> None:
        """It ended as it should, and nothing is left over but what belongs there."""
        fs = self.cluster.fs
        assert {token.id: token.state for token in tokens(fs)} == ENDS
        codes = {t.id: t.result["error"]["code"] for t in tokens(fs) if t.state == "failed" and t.result}
        assert codes == {"doomed": "EXIT_NONZERO", "below": "DEPENDENCY_FAILED"}
        assert not fs.list("pending")
        assert not fs.files("admitting")
        assert not fs.list("returned")
        # A leader that crashed between the reason and the drop leaves a reason behind; the drop is rejected once.
        assert "bad.json" in {name.split(".")[0] + ".json" for name in fs.list("rejected")}
        store = open_store(fs, self.cluster.clock, "fsck", "/spool")
        found = [f for f in audit(survey(store)) if f.severity is Severity.ERROR]
        assert not found, found

    def _restart(self) -> None:
        for name in [name for name in ("m1", "m2", "w1", "w2") if name in self.cluster.gone]:
            if any(node.name.startswith(f"{name}-") for node in self.cluster.nodes.values()):
                continue
            self._starts += 1
            fresh = f"{name}-{self._starts}"
            if name.startswith("m"):
                self.cluster.master(fresh, host=fresh)
            else:
                self.cluster.worker(fresh, host=fresh)

    def _finish(self) -> None:
        for node in self.cluster.nodes.values():
            if node.runner is None:
                continue
            node.runner.running()  # what its lease has ended by now cannot finish any more
            for key in list(node.runner.live):
                code = 0
                if key.startswith("doomed."):
                    code = 1
                elif key.startswith("flaky.") and not self._failed_once:
                    code, self._failed_once = 1, True
                node.runner.finish(key, exit_code=code, output=f"{key}\n")

    def _over(self) -> bool:
        states = {token.id: token.state for token in tokens(self.cluster.fs)}
        return states == ENDS and not self.cluster.fs.list("pending") and not self.cluster.fs.files("admitting")
