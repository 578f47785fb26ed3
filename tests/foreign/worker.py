"""A worker that is not spoold's: written from spool_layout.md and docs/spec alone, with the standard library alone.

    python tests/foreign/worker.py SPOOL NAME SLOTS

It runs raw commands, and only what the document's sections "A worker, step by step" and "An attempt" ask for: no
memory limits, no stalls, no claims ahead. It is a test of the document: it shows that a worker in another language
can take part. Law: it imports nothing of spoold.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TASK = re.compile(r"(\d{4})\.([0-9a-z]{10}-[0-9a-z]+)\.(.+)\.a(\d+)f(\d+)c(\d+)(?:r\d+)?(d?)\.json")
PERMANENT, TRY_LATER = {64, 65, 77, 78}, 75
KILL_GRACE_S = 0.5
LEFT_ALONE_S = 5.0


class ShutOut(Exception):
    """Others took this worker for dead."""


class Token:
    """A task's file name, taken apart."""

    def __init__(self, file: str) -> None:
        found = TASK.fullmatch(file)
        if found is None:
            raise ValueError(file)
        self.file = file
        self.rank, self.order, self.id = found[1], found[2], found[3]
        self.attempt, self.failures, self.crashes = int(found[4]), int(found[5]), int(found[6])
        self.conditional = found[7]

    def returned(self, node: str, failures: int, rest_ms: int) -> str:
        """The name of the next attempt in returned/."""
        rest = f"r{rest_ms}" if rest_ms else ""
        charges = f"f{self.failures + failures}c{self.crashes}"
        head = f"{self.rank}.{self.order}.{self.id}.a{self.attempt + 1}{charges}"
        return f"{head}{rest}{self.conditional}.{node}.json"


class Attempt:
    """A command that runs in a session of its own, and its folder on a local disk."""

    def __init__(self, token: Token, task: dict[str, Any], worker: Worker) -> None:
        self.token, self.task = token, task
        self.folder = Path(tempfile.mkdtemp(prefix="foreign-"))
        (self.folder / "work").mkdir()
        self.wall, self.began = time.time(), time.monotonic()
        self.timeout_s = task.get("timeout") or worker.timeout_s
        self.ending: tuple[str, str | None, str] | None = None  # status, code, message of what we did to it
        self.kill_at: float | None = None
        command = task["command"]
        own = {"TASK_ID": token.id, "ATTEMPT": token.attempt, "WORKER_ID": worker.node, "ROOT": worker.root}
        own |= {"RESULT_FILE": self.folder / "result.json", "WORK_DIR": self.folder / "work"}
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        env |= task.get("env", {}) | {f"SPOOL_{name}": str(value) for name, value in own.items()}
        with open(self.folder / "out", "wb") as out, open(self.folder / "in", "w+b") as given:
            given.write(task.get("stdin", "").encode())
            given.seek(0)
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", command] if isinstance(command, str) else command,
                cwd=task.get("cwd") or self.folder / "work",
                env=env,
                stdin=given,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self, status: str, code: str | None, message: str) -> None:
        """Ask the whole group to end; it is killed after the grace."""
        if self.ending is None:
            self.ending, self.kill_at = (status, code, message), time.monotonic() + KILL_GRACE_S
            self._signal(signal.SIGTERM)

    def look(self) -> bool:
        """Whether it is over. Keeps its timeout."""
        now = time.monotonic()
        if self.ending is None and now - self.began >= self.timeout_s:
            self.stop("timeout", "TIMEOUT", f"timed out after {self.timeout_s:g} s")
        if self.kill_at is not None and now >= self.kill_at:
            self._signal(signal.SIGKILL)
        if self.process.poll() is None:
            return False
        self._signal(signal.SIGKILL)  # what the main process left
        return True

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def outcome(self) -> tuple[str, str | None, str, int | None]:
        """Status, code, message and exit code, as the document's table has them."""
        left = self.process.returncode
        code = left if left >= 0 else None
        if self.ending is not None:
            return (*self.ending, code)
        if left < 0:
            return "failure", "SIGNALED", f"signal {-left}", None
        if left == 0:
            return "success", None, "", 0
        name = {TRY_LATER: "TRY_LATER", 126: "SPAWN_FAILED", 127: "SPAWN_FAILED"}.get(left, "EXIT_NONZERO")
        return "failure", name, f"exit code {left}", left

    def output(self) -> Any:
        """What it wrote as its result, else the end of what it printed."""
        with suppress(OSError, ValueError):
            return json.loads((self.folder / "result.json").read_text())
        return (self.folder / "out").read_text(errors="replace")[-16384:]


class Worker:
    """The loop."""

    def __init__(self, root: str, name: str, slots: int) -> None:
        self.root, self.name, self.slots = root, name, slots
        marker = json.loads(Path(root, "spool.json").read_text())
        if (marker["format"], marker["claim"]) != (1, "rename"):
            sys.exit("this worker knows format 1 and claims by rename, and nothing else")
        with suppress(FileNotFoundError):
            marker = tomllib.loads(Path(root, "spool.toml").read_text())
        beats, self.retry = marker.get("heartbeat", {}), marker.get("retry", {})
        self.interval_s = beats.get("interval_s", 5.0)
        self.lease_s = self.interval_s * (beats.get("misses", 3) - 0.5)
        self.timeout_s = marker.get("timeout", 1800.0)
        self.leaving = False

    def path(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def live(self) -> None:
        """Take part until told to leave; under a new name whenever others took us for dead."""
        while True:
            self.node = f"{self.name}-{secrets.token_hex(4)}"
            self.attempts: dict[str, Attempt] = {}
            self.alone: dict[str, float] = {}
            self.beat, self.beaten = -1, 0.0
            os.mkdir(self.path("tmp", self.node))
            os.mkdir(self.path("claimed", self.node))
            self.say()
            try:
                while not (self.leaving and not self.attempts):
                    self.step()
                    time.sleep(0.05)
            except ShutOut:
                self.drop_all("")
                continue
            return self.leave()

    def publish(self, data: object, *target: str) -> None:
        """Write elsewhere, make durable, then rename into place."""
        draft = self.path("tmp", self.node, "draft")
        with open(draft, "w") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, self.path(*target))

    def say(self) -> None:
        """Publish the next beat, then remove the one before."""
        began, self.beat = time.clock_gettime(time.CLOCK_BOOTTIME), self.beat + 1
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        machine = hashlib.blake2b(_line("/etc/machine-id").encode(), digest_size=16, person=b"spoold").hexdigest()
        host = {"hostname": os.uname().nodename, "machine_id": machine if _line("/etc/machine-id") else ""}
        host["boot_id"] = _line("/proc/sys/kernel/random/boot_id")
        host["pid_namespace"] = re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
        said = {
            "node": self.node,
            "role": "worker",
            "beat": self.beat,
            "at": _now(),
            "host": host,
            "version": "foreign",
        }
        said |= {
            "pid": os.getpid(),
            "process_start": int(stat[19]),
            "slots": self.slots,
            "interval_s": self.interval_s,
        }
        said["status"] = "draining" if self.leaving else "working" if self.attempts else "idle"
        said["capabilities"] = {"cpus": os.cpu_count(), "mem_mb": 4096, "allow_command": True}
        said["running"] = [
            {
                "id": a.token.id,
                "attempt": a.token.attempt,
                "type": a.task.get("type", "command"),
                "since": _now(a.wall),
            }
            for a in self.attempts.values()
        ]
        self.publish(said, "heartbeats", f"{self.node}.{self.beat}.json")
        with suppress(FileNotFoundError):
            os.unlink(self.path("heartbeats", f"{self.node}.{self.beat - 1}.json"))
        self.beaten, self.lease_until = time.monotonic(), began + self.lease_s

    def step(self) -> None:
        """Lease, claims, beat, requests, ends, new claims: in this order."""
        if time.clock_gettime(time.CLOCK_BOOTTIME) >= self.lease_until:
            self.drop_all("handed_back")
        self.reconcile()
        if time.monotonic() - self.beaten >= self.interval_s:
            self.say()
        self.obey()
        for file, attempt in list(self.attempts.items()):
            if attempt.look():
                self.settle(attempt)
                del self.attempts[file]
        if not self.leaving and len(self.attempts) < self.slots:
            self.claim()

    def drop_all(self, status: str) -> None:
        """Kill what runs. Without a status nothing of it is committed: others have the tasks."""
        for attempt in self.attempts.values():
            attempt.stop(status or "handed_back", "HANDED_BACK", "its worker's lease is over")
            attempt.kill_at = 0.0
            while not attempt.look():
                time.sleep(0.01)
        if not status:
            self.attempts.clear()

    def reconcile(self) -> None:
        """What is in my directory is mine; what is not must stop."""
        if self.node not in os.listdir(self.path("claimed")) or self.node not in os.listdir(self.path("tmp")):
            raise ShutOut
        mine = set(os.listdir(self.path("claimed", self.node)))
        for file in [file for file in self.attempts if file not in mine]:
            attempt = self.attempts.pop(file)
            attempt.stop("handed_back", None, "its claim was taken away")
            attempt.kill_at = 0.0
            while not attempt.look():
                time.sleep(0.01)
        for file in mine - self.attempts.keys():
            self.start(file)

    def obey(self) -> None:
        """Cancel, drain and halt, as people asked for them."""
        names = [name.split(".") for name in os.listdir(self.path("control"))]
        for parts in (parts for parts in names if len(parts) >= 4):
            verb, target = parts[0], ".".join(parts[1:-2]).lower()
            for attempt in self.attempts.values():
                if verb == "cancel" and target == attempt.token.id.lower():
                    attempt.stop("cancelled", "CANCELLED", "cancelled while it ran")
                elif verb == "halt":
                    attempt.stop("handed_back", "HANDED_BACK", "the spool was halted")
            self.leaving |= verb == "drain" and target in ("+all", self.node, self.name.lower())

    def claim(self) -> None:
        """The most urgent token of the lanes that only ask for a raw command."""
        now, halted = time.monotonic(), any(n.startswith("halt.") for n in os.listdir(self.path("control")))
        found = []
        for lane in [] if halted else os.listdir(self.path("ready")):
            fields = dict(part.split("=", 1) for part in lane.split(",") if "=" in part)
            if fields.get("run") == "command" and fields.keys() <= {"type", "run"}:
                found += [(file, lane) for file in os.listdir(self.path("ready", lane)) if TASK.fullmatch(file)]
        random.shuffle(found)
        for file, lane in sorted(found, key=lambda pair: pair[0][:15])[: self.slots - len(self.attempts)]:
            if self.alone.get(Token(file).id, 0.0) <= now:
                with suppress(OSError):  # whatever it says, the next listing of my directory is the truth
                    os.rename(self.path("ready", lane, file), self.path("claimed", self.node, file))

    def start(self, file: str) -> None:
        """Run what is claimed."""
        token = Token(file)
        task = json.loads(Path(self.path("claimed", self.node, file)).read_text())
        try:
            self.attempts[file] = Attempt(token, task, self)
        except OSError as error:
            self.record(token, task, "failure", "SPAWN_FAILED", str(error), 127, None, time.time(), 0.0)
            self.decide(token, task, "failure", 127, 0)

    def settle(self, attempt: Attempt) -> None:
        """The log, the record, and then the rename that commits."""
        status, code, message, exit_code = attempt.outcome()
        log = (attempt.folder / "out").read_bytes()
        if log:
            with open(self.path("logs", f"{attempt.token.id}.{attempt.token.attempt}.{self.node}.log"), "wb") as file:
                file.write(log)
        took = time.monotonic() - attempt.began
        output = attempt.output()
        self.record(attempt.token, attempt.task, status, code, message, exit_code, output, attempt.wall, took)
        asked = output.get("retry_after_s", 0) if isinstance(output, dict) else 0
        self.decide(attempt.token, attempt.task, status, exit_code, int(1000 * asked))

    def record(
        self,
        token: Token,
        task: dict[str, Any],
        status: str,
        code: str | None,
        message: str,
        exit_code: int | None,
        output: Any,
        began: float,
        took: float,
    ) -> None:
        """Write the result, durable, in place."""
        error = None if code is None else {"code": code, "message": message}
        result = {"task_id": token.id, "attempt": token.attempt, "worker_id": self.node, "status": status}
        result |= {"started_at": _now(began), "completed_at": _now(), "duration_s": took, "exit_code": exit_code}
        result |= {"output": output, "error": error, "type": task.get("type", "command")}
        with open(self.path("results", f"{token.id}.{token.attempt}.{self.node}.json"), "w") as file:
            json.dump(result, file)
            file.flush()
            os.fsync(file.fileno())

    def decide(self, token: Token, task: dict[str, Any], status: str, exit_code: int | None, rest_ms: int) -> None:
        """The retry rule, and its move."""
        ended = f"{token.id}.{token.attempt}.{self.node}.json"
        most = task.get("retry", {}).get("max", task.get("max_retries", self.retry.get("max", 3)))
        free = status == "handed_back" or exit_code == TRY_LATER
        charged = 0 if free else 1
        over = status == "cancelled" or exit_code in PERMANENT or (charged and token.failures >= most)
        target = ["returned", token.returned(self.node, charged, rest_ms or (0 if status == "handed_back" else 200))]
        if status == "success":
            target = ["completed", ended]
        elif over and not free:
            target = ["failed", ended]
        elif exit_code in (TRY_LATER, 126, 127):
            self.alone[token.id] = time.monotonic() + LEFT_ALONE_S
        with suppress(FileNotFoundError):  # somebody else decided: the record is only a record
            os.rename(self.path("claimed", self.node, token.file), self.path(*target))

    def leave(self) -> None:
        """The claim directory first: with a late claim in it, the beat stays, and its silence has it reaped."""
        with suppress(OSError):
            os.rmdir(self.path("claimed", self.node))
            os.rmdir(self.path("tmp", self.node))
            os.unlink(self.path("heartbeats", f"{self.node}.{self.beat}.json"))


def _line(path: str) -> str:
    try:
        return Path(path).read_text().split("\n")[0].strip()
    except OSError:
        return ""


def _now(moment: float | None = None) -> str:
    return datetime.fromtimestamp(time.time() if moment is None else moment, UTC).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    here = Worker(os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3]))

    def _leave(number: int, frame: object) -> None:
        here.leaving = True

    signal.signal(signal.SIGTERM, _leave)
    here.live()
