"""A spool in memory with real masters, workers that only beat, and a clock that moves when told to."""

from __future__ import annotations

import json
from typing import Any

from spoold.master.master import Master
from spoold.protocol import codec, layout
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.names import TaskName, key, parse_task
from spoold.protocol.result import Result
from spoold.store.initialise import initialise
from spoold.store.lanes_and_archive import list_lanes, list_tasks
from spoold.store.own_heartbeat import Presence
from spoold.store.store import Store, make_directory, open_store
from spoold.system.clock import ManualClock
from spoold.system.host import FakeHost
from spoold.system.memory_filesystem import MemoryFileSystem

STEP_S = 0.3


class Cluster:
    """One spool. `host` is where the asker runs; nodes are put on a host of their own where none is given."""

    def __init__(self, settings: str = "") -> None:
        self.clock = ManualClock()
        self.fs = MemoryFileSystem(self.clock)
        self.host = FakeHost("here")
        initialise(self.fs, self.clock, "s1", "spool")
        if settings:
            self.fs.write(layout.SETTINGS, settings.encode(), durable=False)
        self.store = open_store(self.fs, self.clock, "cli-here-0001", "spool")

    def sleep(self, seconds: float) -> None:
        """Time passes for the asker."""
        self.clock.advance(seconds)

    def open(self, writer: str) -> Store:
        """The spool as another writer sees it."""
        store = open_store(self.fs, self.clock, writer, "spool")
        store.open_tmp()
        return store

    def master(self, name: str = "m-0001", host: FakeHost | None = None) -> Master:
        """A master that leads, if nobody else does."""
        master = Master(self.open(name), host or self.host.another())
        master.step()
        return master

    def worker(self, name: str = "w-0001", host: FakeHost | None = None, **fields: Any) -> Presence:
        """A worker that registers and beats once."""
        presence = Presence(self.open(name), host or self.host.another(), "worker")
        make_directory(self.fs, layout.join(layout.CLAIMED, name))
        can = Capabilities(cpus=4, mem_mb=8192, handlers=("review",), allow_command=True)
        told = {"slots": 2, "capabilities": can, **fields}
        presence.beat(self.clock.monotonic(), told.pop("status", "idle"), **told)
        return presence

    def drop(self, name: str, **task: Any) -> None:
        """A task in pending/, as a person would copy it there."""
        data = json.dumps({"id": name, "type": "review", **task}).encode()
        self.fs.write(layout.join(layout.PENDING, f"{name}.json"), data, durable=False)

    def steps(self, master: Master, count: int = 2) -> None:
        """The leader works, and time passes, so that its report is published."""
        for _ in range(count):
            self.clock.advance(STEP_S)
            master.step()

    def claim(self, task_id: str, worker: str = "w-0001") -> TaskName:
        """The worker takes a ready task."""
        for lane in list_lanes(self.fs, layout.READY):
            for file, name in list_tasks(self.fs, layout.join(layout.READY, lane)).items():
                if key(name.id) == task_id:
                    self.fs.rename(layout.ready(lane, file), layout.claimed(worker, file))
                    return name
        raise AssertionError(f"{task_id} is not ready")

    def end(self, task_id: str, state: str, worker: str = "w-0001", **result: Any) -> str:
        """The worker commits a claimed task; returns the name of its file. state: completed or failed."""
        directory = layout.join(layout.CLAIMED, worker)
        file = next(f for f in self.fs.list(directory) if (name := parse_task(f)) and name.id == task_id)
        name = parse_task(file)
        assert name is not None
        ended = name.ended(worker).encode()
        self.result(ended, task_id, name.attempt, worker, **result)
        self.fs.rename(layout.join(directory, file), layout.join(state, ended))
        return ended

    def result(self, file: str, task_id: str, attempt: int, worker: str = "w-0001", **fields: Any) -> None:
        """A result, a success unless told otherwise."""
        told = {"status": "success", "completed_at": self.store.stamp(), **fields}
        value = Result.model_validate({"task_id": task_id, "attempt": attempt, "worker_id": worker, **told})
        self.fs.write(layout.join(layout.RESULTS, file), codec.dump(value), durable=False)

    def tree(self, *directories: str) -> list[str]:
        """Every file below these directories, sorted."""
        found: list[str] = []
        for directory in directories:
            for name in self.fs.list(directory):
                path = layout.join(directory, name)
                found += self.tree(path) if self.fs.stat(path).kind == "dir" else [path]
        return sorted(found)
