"""A spool with the real `spool master` and `spool worker` behind it, in a folder of its own.

Law: nothing that it started outlives it, and settings are the defaults but for those that are named. Touches: its
folder, processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from spoold import Spool
from spoold.client.spool.spool_status import status as snapshot
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.host import SystemHost
from spoold.system.posix import PosixFileSystem

SPOOL = (sys.executable, "-P", "-m", "spoold")
CHECKOUT = Path(__file__).resolve().parents[2]
READY_WITHIN_S = 120.0
LEAVE_WITHIN_S = 15.0
WORKER = """slots = {slots}
allow_command = true
[python]
allow = ["tools.benchmark."]
path = ["{checkout}"]
"""


class Trouble(Exception):
    """The cluster does not do what it should; says what was seen."""


class Cluster:
    """A master and workers, while the `with` lasts. Every process is known by the name that it was started with."""

    def __init__(
        self,
        folder: str,
        workers: Sequence[str] = ("w1", "w2"),
        *,
        fsync: bool = False,
        slots: int | None = None,
        keep: int = 10_000,
        settings: str = "",
    ) -> None:
        """keep: how many ended tasks stay where they ended before the oldest are archived; settings: more of them."""
        self.folder = Path(folder)
        self.root = self.folder / "spool"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._workers = tuple(workers)
        self.root.mkdir()
        initialise(PosixFileSystem(self.root), SystemClock(), "benchmark", str(self.root))
        basic = f"[durability]\nfsync = {json.dumps(fsync)}\n[retention]\nkeep = {keep}\n"
        (self.root / "spool.toml").write_text(basic + settings)
        config = WORKER.format(slots=slots or os.cpu_count() or 1, checkout=CHECKOUT)
        (self.folder / "worker.toml").write_text(config)

    def __enter__(self) -> Cluster:
        try:
            self.start_master()
            for name in self._workers:
                self.start_worker(name)
            self.await_nodes(len(self._workers))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()

    def start_master(self, name: str = "master") -> None:
        """Start a master, and do not wait for it."""
        self._spawn(name, "master", "--name", name)

    def start_worker(self, name: str, *options: str) -> None:
        """Start a worker, and do not wait for it."""
        self._spawn(name, "worker", "--name", name, "--config", str(self.folder / "worker.toml"), *options)

    def kill(self, name: str) -> None:
        """SIGKILL: as if the power went."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def client(self) -> Spool:
        """An open spool, to be closed by the caller."""
        return Spool(str(self.root))

    def spool(self, *arguments: str) -> str:
        """Run a `spool` command to its end; returns what it printed. Errors: Trouble."""
        done = subprocess.run(self._command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            raise Trouble(f"spool {' '.join(arguments)}: status {done.returncode}: {done.stderr.decode().strip()}")
        return done.stdout.decode()

    def tree(self, name: str) -> list[psutil.Process]:
        """The process of that name and all that it started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            top = psutil.Process(self.processes[name].pid)
            return [top, *top.children(recursive=True)]
        return []

    def cpu_s(self, *names: str, alone: bool = False) -> float:
        """Seconds of CPU that these nodes have used, with all that they started; all nodes if none is named.

        alone: without what they started.
        """
        used = 0.0
        trees = [self.tree(name) for name in names or tuple(self.processes)]
        for process in (one for tree in trees for one in (tree[:1] if alone else tree)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                used += times.user + times.system
        return used

    def collected_s(self, name: str) -> float:
        """Seconds of CPU of what has ended below this node: the programs of tasks, from their fork on."""
        used = 0.0
        for process in self.tree(name):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                used += times.children_user + times.children_system
        return used

    def peak_mb(self, name: str) -> float:
        """The most memory (MiB) that this node's processes have held, each at its own peak."""
        peak = 0
        for process in self.tree(name):
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                    peak += int(line.split()[1]) if line.startswith("VmHWM:") else 0
        return peak / 1024

    def await_nodes(self, workers: int) -> dict[str, Any]:
        """Wait until somebody leads and so many workers live; returns what status says then. Errors: Trouble."""
        until, host = time.monotonic() + READY_WITHIN_S, SystemHost()
        with self.client() as spool:
            while True:
                status = snapshot(spool.store, host, spool.store.clock)
                if status.master.leader and status.workers.alive >= workers:
                    return status.model_dump(mode="json")
                ended = [name for name, process in self.processes.items() if process.poll() is not None]
                if ended or time.monotonic() > until:
                    raise Trouble(f"no leader and {workers} workers; ended: {ended}; {self._said(ended)}")
                time.sleep(0.05)

    def _said(self, names: Sequence[str]) -> str:
        return " ".join((self.folder / f"{name}.log").read_text()[-500:] for name in names)

    def _spawn(self, name: str, *arguments: str) -> None:
        # Should we be killed ourselves, their standard input ends, and --until-eof lets them leave.
        command = [*self._command(*arguments), "--until-eof"]
        # A worker's scratch lies there, too: on another disk it would be that one's speed, and what was removed there
        # before (see `Place.scratch`), that is measured with it.
        environment = {**os.environ, "TMPDIR": str(self.folder)}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )

    def _command(self, *arguments: str) -> list[str]:
        return [*SPOOL, "--spool", str(self.root), *arguments]

    def stop(self) -> None:
        """End every node, by force if need be; the tree stands still from then on."""
        for process in reversed(self.processes.values()):
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + LEAVE_WITHIN_S
        for process in self.processes.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()
        self.processes.clear()
