"""A share that is silent for less than the lease costs no task, no attempt, no line of a log; who gives up says why.

Method: a master and a worker as their daemons drive them, on threads, with real supervisors and real commands over a
real directory; the worker's mount has a gate, which blocks every call or refuses it while it is shut.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spoold.daemon import loop as loop_module
from spoold.daemon import master_actor, worker_actor
from spoold.daemon.loop import Loop, hinted
from spoold.daemon.master_actor import MasterActor
from spoold.daemon.processes import _unfinished
from spoold.daemon.progress_watch import VERBS, Pulse, pulsing
from spoold.daemon.signals import Nap
from spoold.daemon.worker_actor import WorkerActor
from spoold.protocol.settings import Settings
from spoold.store.initialise import initialise
from spoold.store.store import Store, open_store
from spoold.system.clock import SystemClock
from spoold.system.filesystem import FileSystem
from spoold.system.posix import PosixFileSystem
from spoold.worker.handlers.worker_config import WorkerConfig

# A lease of 7.5 s, and beats 2 s apart: with a stall of 4 s some time is left for a machine that does much else.
SETTINGS = "[heartbeat]\ninterval_s = 3\nmisses = 3\n"
STALL_S = 4.0


class Gate:
    """What stands between a worker and its share. stopped: how many calls it has held up or refused."""

    def __init__(self, refuses: bool) -> None:
        self._refuses = refuses
        self._open = threading.Event()
        self._open.set()
        self.stopped = 0

    def over(self, inner: FileSystem) -> FileSystem:
        """The mount behind the gate."""
        verbs: dict[str, Any] = {verb: self._gated(getattr(inner, verb)) for verb in VERBS}
        return cast(FileSystem, SimpleNamespace(remote=inner.remote, forgets=inner.forgets, **verbs))

    @contextlib.contextmanager
    def shut(self) -> Iterator[None]:
        self._open.clear()
        yield
        self._open.set()

    def _gated(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def gated(*args: Any, **kwargs: Any) -> Any:
            if not self._open.is_set():
                self.stopped += 1
                if self._refuses:
                    raise OSError(112, "Host is down")
                self._open.wait()
            return call(*args, **kwargs)

        return gated


def eventually(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.02)


def driven(make: Callable[[Pulse], MasterActor | WorkerActor]) -> tuple[Loop, threading.Thread]:
    pulse = Pulse()
    loop = Loop(lambda: make(pulse), Settings().poll, pulse, lambda: False, Nap(SystemClock()))
    loop.hinted = hinted(lambda: loop.actor)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    return loop, thread


def test_who_leaves_a_silent_share_says_how_long_and_in_which_call() -> None:
    loop = Loop(lambda: pytest.fail("it is not to begin"), Settings().poll, Pulse(), bool, Nap(SystemClock()))
    loop.pulse.calls[0] = ("write", "results/x")
    loop.pulse.at -= 60
    assert _unfinished(loop) == "the share has not answered for 60 s (write results/x)"
    loop.trouble = "Host is down"
    assert _unfinished(loop) == "the share has not answered for 60 s (write results/x), and before that: Host is down"
    loop.pulse.calls.clear()
    assert _unfinished(loop) == "Host is down"


def test_who_leaves_a_full_share_says_what_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "spool"
    root.mkdir()
    initialise(PosixFileSystem(str(root)), SystemClock(), "test", str(root))
    full = threading.Event()
    full.set()

    class Full(PosixFileSystem):
        def write(self, path: str, data: bytes, *, durable: bool) -> None:
            if path.startswith("results/") and full.is_set():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            super().write(path, data, durable=durable)

    def open_full(path: str, writer: str, pulse: Pulse) -> Store:
        return open_store(pulsing(Full(path), pulse), SystemClock(), writer, path)

    for room in (loop_module, master_actor, worker_actor):
        monkeypatch.setattr(room, "open_spool", open_full)
    config = WorkerConfig(name="laptop", slots=1, allow_command=True, kill_grace_s=0, drain_grace_s=0)
    (root / "pending/t.json").write_text(json.dumps({"id": "t", "command": ["true"]}))
    leader, led = driven(lambda pulse: MasterActor(str(root), "desk", pulse))
    worker, worked = driven(lambda pulse: WorkerActor(str(root), config, pulse, []))
    try:
        refused = "the result of t.1 cannot be written: No space left on device"
        eventually(lambda: _unfinished(worker) == refused)
        assert _unfinished(leader) == "the tasks here have not ended yet"
    finally:
        full.clear()
        for loop, thread in ((worker, worked), (leader, led)):
            loop.leave(hurry=True)
            thread.join(20)
    assert [path.name.split(".")[0] for path in root.glob("completed/*")] == ["t"]


@pytest.mark.parametrize("refuses", [False, True], ids=["blocks", "refuses"])
def test_a_stall_shorter_than_the_lease_costs_nothing(
    refuses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, root, go = Gate(refuses), tmp_path / "spool", tmp_path / "go"
    root.mkdir()
    initialise(PosixFileSystem(str(root)), SystemClock(), "test", str(root))
    (root / "spool.toml").write_text(SETTINGS)

    def open_gated(path: str, writer: str, pulse: Pulse) -> Store:
        fs: FileSystem = PosixFileSystem(path)
        fs = fs if writer.startswith("m-") else gate.over(fs)
        return open_store(pulsing(fs, pulse), SystemClock(), writer, path)

    for room in (loop_module, master_actor, worker_actor):
        monkeypatch.setattr(room, "open_spool", open_gated)
    config = WorkerConfig(name="laptop", slots=1, allow_command=True, kill_grace_s=0, drain_grace_s=0)
    loops = [
        driven(lambda pulse: WorkerActor(str(root), config, pulse, [])),
        driven(lambda pulse: MasterActor(str(root), "desk", pulse)),
    ]
    try:
        count = f"n=0; until [ -e {go} ]; do n=$((n+1)); echo $n; sleep 0.05; done"
        (root / "pending/t.json").write_text(json.dumps({"id": "t", "command": ["sh", "-c", count]}))
        eventually(lambda: list(root.glob("logs/t.1.laptop-*.log")))
        [before] = list(root.glob("heartbeats/laptop-*.json"))
        with gate.shut():
            time.sleep(STALL_S)  # the stall itself: what is tried here is a length of time
        assert gate.stopped
        eventually(lambda: not before.exists())
        go.touch()
        eventually(lambda: list(root.glob("completed/t.*")))
    finally:
        for loop, thread in loops:
            loop.leave(hurry=True)
            thread.join(20)
    assert [loop.error for loop, _ in loops] == [None, None]
    node = before.name.split(".")[0]
    assert [path.name for path in root.glob("completed/*")] == [f"t.1.{node}.json"]
    [log] = root.glob("logs/*")
    lines = [int(line) for line in log.read_text().split()]
    assert lines == list(range(1, len(lines) + 1))
    assert len(lines) > STALL_S / 0.5, "it went on while the share did not answer"
    told = "".join(path.read_text() for path in root.glob("events/*"))
    assert not [word for word in ("FENCED", "REAPED", "RETURNED") if word in told]
