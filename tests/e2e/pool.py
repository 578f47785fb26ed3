"""e2e: a spool on a real directory, with masters and workers as real processes, seen only from outside.

Law: black box. What a test knows it has from the `spool` command, from listings and from files that people may read;
every wait names its condition and has a deadline; whatever happens, no process outlives its pool. May start, signal
and kill the processes that it started itself.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil

T = TypeVar("T")

# Long enough for a machine that does much else; what must be quick says so itself.
PATIENCE_S = 40.0
# Beats that are quick enough for a test, and a silence that a busy machine does not reach by itself.
SETTINGS = "[heartbeat]\ninterval_s = 0.75\nmisses = 4\n\n[retry]\nbackoff_s = 0.1\n\n[drop]\ngrace_s = 1.5\n"
DEAD_AFTER_S = 3.0
# The grace that a task has by default is in it.
LEAVES_WITHIN_S = 20.0
STATES = ("pending", "admitting", "waiting", "ready", "claimed", "returned", "completed", "failed")
_numbers = itertools.count(1)


def wait_for(condition: Callable[[], T | None], what: str, within_s: float = PATIENCE_S) -> T:
    """Poll until the condition holds; returns what it returned. Errors: AssertionError that names it."""
    until = time.monotonic() + within_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < until, f"not within {within_s:g} s: {what}"
        time.sleep(0.02)


def processes(mark: str) -> list[psutil.Process]:
    """Every living process with the mark in its command line."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and any(mark in word for word in process.cmdline()):
                found.append(process)
    return found


class Daemon:
    """A process that a test started: a master, a worker, `spool up`, or a client that takes its time."""

    def __init__(self, label: str, command: list[str], log: Path, env: Mapping[str, str]) -> None:
        self.label = label
        self.log = log
        with log.open("ab") as sink:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env, start_new_session=True
            )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would, and wait until it is gone."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def ends(self, within_s: float = PATIENCE_S) -> int:
        """Wait for its end; returns its exit status."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.label} has not ended within {within_s:g} s") from None

    def stop(self) -> bool:
        """Have it leave at once, and kill it if it does not; whether it went by itself."""
        try:
            self.process.wait(LEAVES_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True


class Pool:
    """One spool, its processes, and the questions that tests ask of it."""

    # The interpreter whose spoold is run.
    python = sys.executable

    def __init__(self, root: Path, desk: Path, settings: str = SETTINGS, claim: str = "rename") -> None:
        self.root = root
        self.desk = desk
        self.desk.mkdir(parents=True, exist_ok=True)
        # Found in the command lines of tasks, and in no other process of this machine.
        self.mark = f"7{os.getpid():07d}{next(_numbers):03d}"
        self.daemons: list[Daemon] = []
        self.env = {**os.environ, "SPOOL_DIR": str(root), "HOME": str(desk)}
        self.cli("init", str(root), "--claim", claim)
        (root / "spool.toml").write_text(settings)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process. Errors: AssertionError for one that did not leave, though it was told so twice."""
        for daemon in self.daemons:
            if daemon.running:
                daemon.signal(signal.SIGCONT)
                daemon.signal(signal.SIGTERM)
                daemon.signal(signal.SIGTERM)
        stubborn = [daemon.label for daemon in self.daemons if not daemon.stop()]
        for process in processes(self.mark):
            with contextlib.suppress(psutil.Error):
                process.kill()
        assert not stubborn, f"{stubborn} did not leave within {LEAVES_WITHIN_S:g} s"

    def report(self) -> str:
        """The logs of the processes and the files of the spool, for who must find out what went wrong."""
        texts = [
            f"--- {log.name}\n{log.read_text(errors='replace')[-6000:]}" for log in sorted(self.desk.glob("*.log"))
        ]
        tree = sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file())
        return "\n".join([*texts, f"--- files of {self.root}", *tree[:400]])

    # Processes.

    def spawn(self, label: str, *args: str) -> Daemon:
        """Start a `spool` verb as a process of its own; its output goes to LABEL.log."""
        log = self.desk / f"{label}.log"
        daemon = Daemon(label, [self.python, "-m", "spoold", *args], log, self.env)
        self.daemons.append(daemon)
        return daemon

    def master(self, name: str = "desk") -> Daemon:
        """Start a master."""
        return self.spawn(name, "master", "--name", name)

    def worker(self, name: str, *options: str, slots: int = 2) -> Daemon:
        """Start a worker that runs raw commands."""
        return self.spawn(name, "worker", "--name", name, "--slots", str(slots), "--allow-command", *options)

    def ready(self, *names: str) -> None:
        """Wait until somebody leads and workers of these names beat and have looked for dead predecessors."""
        wait_for(self.leader, "somebody leads")
        for name in names:
            wait_for(lambda name=name: self.nodes(name), f"{name} beats")  # type: ignore[misc]
            for node in self.nodes(name):
                wait_for(lambda node=node: f"{node} runs" in self.told(), f"{node} has begun")  # type: ignore[misc]

    def told(self) -> str:
        """What all nodes said so far."""
        return "".join(log.read_text(errors="replace") for log in self.desk.glob("*.log"))

    def nodes(self, name: str) -> list[str]:
        """The ids of the nodes of that name which have a heartbeat."""
        beats = (file.split(".")[0] for file in self.listing("heartbeats"))
        return sorted({node for node in beats if node.rpartition("-")[0] == name})

    def leader(self) -> str | None:
        """Who holds the lease, None for nobody."""
        holders = [file.split(".")[1] for file in self.listing("master")]
        return next((holder for holder in holders if holder != "nobody"), None)

    # The command line.

    def run(
        self, *args: str, stdin: bytes = b"", within_s: float = PATIENCE_S, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `spool ARGS`; whatever it answers is right."""
        done = subprocess.run(
            [self.python, "-m", "spoold", *args],
            input=stdin,
            capture_output=True,
            timeout=within_s,
            env={**self.env, **(env or {})},
            check=False,
        )
        return subprocess.CompletedProcess(args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def cli(self, *args: str, code: int = 0, stdin: bytes = b"", within_s: float = PATIENCE_S) -> str:
        """Run `spool ARGS`, which must exit with `code`; returns what it printed."""
        done = self.run(*args, stdin=stdin, within_s=within_s)
        assert done.returncode == code, f"spool {' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *args: str, code: int = 0) -> Any:
        """What `spool ARGS --json` printed."""
        return json.loads(self.cli(*args, "--json", code=code))

    def fsck(self) -> None:
        """The audit must find nothing."""
        self.cli("fsck")

    # Files.

    def drop(self, name: str, task: Mapping[str, Any] | str | bytes) -> Path:
        """Publish a file in pending/ as careful tools do: written elsewhere, then renamed."""
        data = task if isinstance(task, bytes) else (task if isinstance(task, str) else json.dumps(task)).encode()
        draft = self.root / "tmp" / f"{self.mark}.{next(_numbers)}"
        draft.write_bytes(data)
        target = self.root / "pending" / name
        draft.rename(target)
        return target

    def submit(self, task_id: str, command: Iterable[str] | str, **fields: Any) -> str:
        """Drop a task that runs a command; returns its id."""
        line = command if isinstance(command, str) else list(command)
        self.drop(f"{task_id}.json", {"id": task_id, "command": line, **fields})
        return task_id

    def listing(self, directory: str) -> list[str]:
        """The names in a directory of the spool; none if it is not there."""
        try:
            return sorted(os.listdir(self.root / directory))
        except FileNotFoundError:
            return []

    def files(self, state: str) -> list[str]:
        """The paths of all files below a directory of the spool, relative to it."""
        top = self.root / state
        return sorted(os.path.relpath(os.path.join(at, name), top) for at, _, names in os.walk(top) for name in names)

    def ended(self, task_id: str) -> str | None:
        """completed or failed, once it is."""
        for state in ("completed", "failed"):
            if any(name.rsplit(".", 3)[0] == task_id for name in self.listing(state)):
                return state
        return None

    def tokens(self, task_id: str) -> list[str]:
        """Every task file of this id: the one-token law says that it is one."""
        paths = [f"{state}/{path}" for state in STATES for path in self.files(state)]
        return [path for path in paths if f".{task_id}." in f".{path.rpartition('/')[2]}"]

    def claim(self, task_id: str, attempt: int = 1) -> str | None:
        """The worker that has this attempt of the task, None for nobody."""
        for path in self.files("claimed"):
            worker, _, name = path.partition("/")
            if f".{task_id}.a{attempt}f" in name:
                return worker
        return None

    def claimed(self, task_id: str, attempt: int = 1, within_s: float = PATIENCE_S) -> str:
        """Wait until somebody has this attempt; returns the worker."""
        return wait_for(lambda: self.claim(task_id, attempt), f"attempt {attempt} of {task_id} is claimed", within_s)

    def results(self, task_id: str) -> list[dict[str, Any]]:
        """Every result of the task, by attempt."""
        names = [name for name in self.listing("results") if name.rsplit(".", 3)[0] == task_id]
        found = [json.loads((self.root / "results" / name).read_text()) for name in names]
        return sorted(found, key=lambda result: result["attempt"])

    def finish(self, task_id: str, within_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait until the task has ended; returns the result that its task file names."""
        state = wait_for(lambda: self.ended(task_id), f"{task_id} has ended", within_s)
        [name] = [name for name in self.listing(state) if name.rsplit(".", 3)[0] == task_id]
        result: dict[str, Any] = json.loads((self.root / "results" / name).read_text())
        assert (result["status"] == "success") == (state == "completed")
        return result

    def reason(self, drop: str) -> dict[str, Any] | None:
        """Why a drop was rejected, once it is."""
        for name in self.listing("rejected"):
            if name.endswith(".reason.json"):
                with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                    found: dict[str, Any] = json.loads((self.root / "rejected" / name).read_text())
                    if found["drop"] == drop:
                        return found
        return None

    def path(self, name: str) -> Path:
        """A file beside the spool, for tasks to write."""
        return self.desk / name
