"""worker/run: one job under way, and the warm Python process that calls may share.

Law: here is known and decided what has become of a job; when to look and whom to kill is the supervisor's.
It starts processes only through child, and may stat the one progress file. The supervisor loads it: kept small.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from spoold.worker.child import Child, Output, Refused
from spoold.worker.launcher import Launched, Launcher
from spoold.worker.wire import Answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIRST_LOOK_S = 0.1
_PYHOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyhost.py")


class Host:
    """A warm Python process for calls, and what it was started with; another such call may reuse it."""

    __slots__ = ("_env", "_path", "child", "wire")

    def __init__(self, env: dict[str, str], own: dict[str, str], path: list[str]) -> None:
        """Starts it; raises Refused or OSError."""
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        try:
            argv = [sys.executable, "-P", "-u", _PYHOST, str(asked), str(answer)]
            # It enters the working directory itself, call by call.
            self.child = Child(argv, {**env, **own}, "/", b"", (asked, answer))
        except Refused:
            os.close(ask)
            os.close(answered)
            raise
        finally:
            os.close(asked)
            os.close(answer)
        self.wire = Answers(answered, ask)
        self._env, self._path = env, path

    @property
    def pid(self) -> int:
        """Its process."""
        return self.child.pid

    def serves(self, env: dict[str, str], path: list[str]) -> bool:
        """Whether it may be used again: many libraries read their environment only once, when imported."""
        return path == self._path and (env is self._env or _foreign(env) == _foreign(self._env))

    def close(self) -> None:
        """Forgets a process that is dead."""
        self.child.close()
        self.wire.close()


def _foreign(env: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if not name.startswith("SPOOL_")}


class Run:
    """The job that is running, with all that is known of it so far."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.key: str = job["key"]
        self.output = Output(job["output_path"], job["output_cap_bytes"], job["tail_bytes"])
        self.child: Child | Launched | None = None
        self.helper: Host | Launcher | None = None  # who has it in hand
        self.began = time.monotonic()
        self.began_wall = time.time()
        timeout = job["timeout_s"]
        self.deadline = None if timeout is None else self.began + timeout
        self.kind = "exited"  # another one once we have decided to end it
        self.message = ""
        self.kill_at: float | None = None
        self.status: int | None = None  # as from wait(2), once the main process has ended
        self.answer: dict[str, Any] | None = None
        self.max_rss = 0
        self.survivors: list[int] = []
        self.look_pause = FIRST_LOOK_S
        self.next_look = self.began + FIRST_LOOK_S
        self.sign: object = None
        self.sign_at = self.began
        self.told_at = 0.0

    def end(self, kind: str, message: str, kill_at: float) -> bool:
        """Decides to end it; False if that was decided before, then only the time to kill may come nearer."""
        first = self.kill_at is None
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)
        if first or kind == "fenced":
            self.kind, self.message = kind, message
        return first

    def hear(self, answer: dict[str, Any]) -> None:
        """What the helper says of it: of a call its answer, of a program how it ended."""
        if "status" not in answer:
            self.answer = answer
            return
        self.status = answer["status"]
        self.max_rss = max(self.max_rss, answer["peak"])
        if "refused" in answer and isinstance(self.child, Launched):
            self.child.refused = Refused(*answer["refused"])

    def sign_of_life(self) -> object:
        """Something that differs from before if the job has printed or made progress."""
        path = self.job["progress_path"]
        try:
            status = os.stat(path) if path else None
        except OSError:
            status = None
        return self.output.total, status and (status.st_mtime_ns, status.st_size)

    def ending(self) -> dict[str, Any]:
        """The fields of an Ending, for the wire."""
        kind, code, number, message = self.kind, None, None, self.message
        if self.answer is not None:
            code, message = self.answer["exit"], message or self.answer["message"]
            if kind == "exited" and not self.answer["began"]:
                kind = "spawn_failed"
        elif self.status is not None:
            code, number, ended = _read_status(self.status)
            if "call" in self.job and not code and number is None:
                code = 1  # whoever ends the process has not returned, whatever it says
            message = message or ("the Python process died: " if "call" in self.job else "") + ended
            if kind == "exited" and number is not None:
                kind = "signaled"
        unsure = self.child is not None and kind == "exited" and self.answer is None
        refused = self.child.refusal() if self.child is not None and unsure else None
        if refused is not None:
            kind, code, message = "spawn_failed", refused.exit_code, str(refused)
        if self.survivors:
            message += f"; could not be killed yet: {', '.join(map(str, self.survivors))}"
        said = {
            "output_bytes": self.output.total,
            "output_dropped": self.output.dropped,
            "tail": self.output.tail(),
            "stdout": self.output.said(),
            "max_rss_bytes": self.max_rss,
            "value_text": self.answer["value"] if self.answer is not None else None,
            "survivors": self.survivors,
        }
        return {
            "key": self.key,
            "kind": kind,
            "exit_code": code,
            "signal": number,
            "message": "; ".join(part for part in (message, self.output.trouble) if part),
            "started_at": self.began_wall,
            "ended_at": time.time(),
            "duration_s": time.monotonic() - self.began,
            **{name: value for name, value in said.items() if value},
        }


def _read_status(status: int) -> tuple[int | None, int | None, str]:
    """Exit code or signal from a wait status, and in words."""
    if not os.WIFSIGNALED(status):
        code = os.WEXITSTATUS(status)
        return code, None, f"exited with code {code}"
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "a real-time signal"
    return None, number, f"killed by {name} (signal {number})"
