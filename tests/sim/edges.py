"""The world `edges`: clean-up after a failure, and tasks after a batch: what is submitted, and what must hold.

Members of a batch come one by one and in one drop, some fail, some wait for others. Tasks that run after a failure or
after the batch come when the members were acknowledged, so that no member may be missed.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spoold.protocol.names import EndedName, TaskName, is_skipped, key
from tests.sim.conduct import Broken
from tests.sim.laws import Asked, Laws
from tests.sim.workload import LOOKS_AFTER_S, Client

SINGLES, LINES, CLEAN_UPS, NOTICES, BY_HAND = 5, 4, 6, 2, 3
BATCH = "nightly"
_ENDED = ("completed/", "failed/", "archive/")


@dataclass(slots=True)
class Edges(Asked):
    """A task of this world. after_failed: of these one must fail; members: these must have ended before."""

    after_failed: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    batch: str = ""


@dataclass(slots=True)
class EdgeLaws(Laws):
    """Those of all worlds, and of the two edges. fallen: tasks that have failed at some moment.

    ended_at: when a task of the batch last ended; dropped_at: when a file was begun in pending/ (true time, s).
    """

    fallen: set[str] = field(default_factory=set)
    ended_at: float = 0.0
    dropped_at: dict[str, float] = field(default_factory=dict)

    def written(self, path: str, replaced: bool) -> None:
        """After every write."""
        Laws.written(self, path, replaced)
        if path.startswith("pending/") and not replaced:
            self.dropped_at[path] = self.scheduler.now

    def _arrive(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        Laws._arrive(self, name, src, dst)
        # A half file that was taken away comes back as its other half, where a copy goes on: that is a later drop.
        present = self.server.fs.files("pending")
        self.dropped_at = {path: at for path, at in self.dropped_at.items() if path in present}
        asked = self.asked.get(key(name.id))
        if dst.startswith("failed/") and not is_skipped(dst):
            self.fallen.add(key(name.id))
        if isinstance(asked, Edges) and asked.batch and dst.startswith(("completed/", "failed/")):
            self.ended_at = self.scheduler.now
        if isinstance(asked, Edges) and dst.startswith("ready/"):
            self._begins(asked, dst)

    def _begins(self, asked: Edges, dst: str) -> None:
        if asked.after_failed and self.fallen.isdisjoint(map(key, asked.after_failed)):
            raise Broken(f"after_failed: {dst} may run, and none of {asked.after_failed} has failed")
        still = [m for m in asked.members if not self.tokens.get(key(m), "").startswith(_ENDED)]
        if still:
            raise Broken(f"after_batch: {dst} may run, and these of the batch have not ended: {still}")
        there = [path for path, at in self.dropped_at.items() if at < self.ended_at]
        if asked.members and there:
            raise Broken(f"after_batch: {dst} may run, and {there} was there when the last of the batch ended")

    def _committed(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        Laws._committed(self, name, src, dst)
        asked = self.asked.get(key(name.id))
        if not (isinstance(asked, Edges) and is_skipped(dst)):
            return
        places = {parent: self.tokens.get(key(parent), "nowhere") for parent in (*asked.after_failed, *asked.parents)}
        unskipped = all(places[p].startswith("completed/") or is_skipped(places[p]) for p in asked.after_failed)
        if not (asked.after_failed and unskipped) and not any(is_skipped(places[p]) for p in asked.parents):
            raise Broken(f"after_failed: {dst} is skipped, and its parents are at {places}")


class EdgeClient(Client):
    """Submits the members of the batch, then what comes after them."""

    def live(self) -> None:
        """Submit everything."""
        draw = self._weather.draw
        members = [self._member(f"s{number}", [f"s{n}" for n in range(number)]) for number in range(SINGLES)]
        lines = [self._member(f"l{number}", [f"l{n}" for n in range(number)]) for number in range(LINES)]
        for number, task in enumerate(members):
            self._scheduler.sleep(1.5 * draw("between", task["id"]))
            self._submit([task])
            if number == SINGLES // 2:
                self._submit(lines)
        names = [task["id"] for task in (*members, *lines)]
        earlier: list[str] = []
        for number in range(CLEAN_UPS):
            self._scheduler.sleep(1.5 * draw("between", f"u{number}"))
            task = self._clean_up(f"u{number}", names, earlier)
            self._submit([task])
            earlier.append(task["id"])
            if draw("cancel", task["id"]) < 0.1:
                self._cancel(task["id"])
        for number in range(BY_HAND):
            other = EdgeClient(self._scheduler, self._server, self._weather, self._laws, f"hand-{number}")
            task = self._edge(f"h{number}", [], batch=BATCH)
            self._scheduler.spawn(other.name, partial(other._copy_slowly, task), 6.0 * draw("hand", number))
        batched = [name for name in names if self._in_batch(name)]
        for number in range(NOTICES):
            self._scheduler.sleep(3.0 * draw("between", f"n{number}"))
            self._submit([self._edge(f"n{number}", [], after_batch=BATCH, members=tuple(batched))])
        self.done = True

    def _copy_slowly(self, task: dict[str, Any]) -> None:
        """Copy a file into the drop box in two pieces; again, if nothing came of it."""
        data = json.dumps(task).encode()
        while key(task["id"]) not in self._laws.tokens:
            mount = self._mount()
            path = f"pending/{self.name}.json"
            self._server.by_hand.add(path)
            with contextlib.suppress(OSError):
                mount.write(path, data[:20], durable=False)
                self._scheduler.sleep(1.8 * self._weather.draw("copying", self.name))
                mount.append(path, data[20:])
            self._scheduler.sleep(LOOKS_AFTER_S)

    def _member(self, name: str, earlier: list[str]) -> dict[str, Any]:
        parents = [p for p in earlier if self._weather.draw("needs", name, p) < 0.3]
        batch: dict[str, Any] = {"batch": BATCH} if self._in_batch(name) else {}
        return self._edge(name, parents, **batch)

    def _in_batch(self, name: str) -> bool:
        return name == "s0" or self._weather.draw("in the batch", name) < 0.7

    def _clean_up(self, name: str, members: list[str], earlier: list[str]) -> dict[str, Any]:
        draw = self._weather.draw
        chosen = [m for m in (*members, *earlier) if draw("cleans", name, m) < 0.15] or members[:1]
        return self._edge(name, [p for p in earlier if draw("needs", name, p) < 0.2], after_failed=chosen)

    def _edge(self, name: str, parents: list[str], *, members: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
        kind = "wide"
        task = {"id": name, "type": kind, "command": ["work"], "dependencies": parents, "max_retries": 1, **more}
        self._laws.asked[key(name)] = Edges(
            name,
            kind,
            tuple(parents),
            after_failed=tuple(more.get("after_failed", ())),
            members=members,
            batch=more.get("batch", ""),
        )
        return task


def check_edges(laws: Laws, cancelled: set[str]) -> None:
    """Every task that was acknowledged has ended, as it had to."""
    for asked in laws.asked.values():
        path = laws.tokens.get(key(asked.id))
        if path is None or not path.startswith(("completed/", "failed/")):
            raise Broken(f"liveness: {asked.id} has not ended: {path}; {sorted(laws.server.fs.files())}")
        if path.startswith("completed/") or key(asked.id) in cancelled:
            continue
        code = json.loads(laws.server.fs.read(path.replace("failed/", "results/", 1)))["error"]["code"]
        down = [p for p in asked.parents if _failed(laws, p)]
        skipped = [p for p in asked.parents if is_skipped(laws.tokens.get(key(p), ""))]
        assert isinstance(asked, Edges)
        unneeded = bool(asked.after_failed) and not any(_failed(laws, p) for p in asked.after_failed)
        right = {
            "DEPENDENCY_FAILED": bool(down),
            "SKIPPED": not down and (bool(skipped) or unneeded),
            "MAX_RETRIES": not (down or skipped or unneeded),
            "EXIT_NONZERO": not (down or skipped or unneeded),
        }
        # A task that was skipped before another of its parents failed was skipped for good.
        if not right.get(code, False) and not (code == "SKIPPED" and (skipped or unneeded)):
            raise Broken(
                f"ends: {asked.id} failed with {code}; failed {down}, skipped {skipped}, unneeded {unneeded}"
            )


def _failed(laws: Laws, parent: str) -> bool:
    path = laws.tokens.get(key(parent), "")
    return path.startswith("failed/") and not is_skipped(path)
