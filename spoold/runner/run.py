"""runner/run: one running job, and the warm Python process that calls may share.

Law: this file decides how a job ended; the supervisor decides when to look and which processes to kill.
It starts processes only through child, and may look at the one progress file. The supervisor loads it: kept small.

Touches: files, the clock.
"""

from __future__ import annotations

import os
import signal
import time

from spoold.runner.child import Child, Output, loader
from spoold.runner.ice import Ice
from spoold.runner.launcher import Launched, Launcher
from spoold.runner.refusal import Refused
from spoold.runner.spot import Spot
from spoold.runner.wire import Answers, Wire

TYPE_CHECKING = False


if TYPE_CHECKING:
    from typing import Any

    from spoold.runner.freezer import Room


FIRST_LOOK_S = 0.1
# A job that was above its cap once is weighed again after SOON_S seconds. Any other is weighed again after
# WEIGHING_REST times the duration of the weighing, which is long for a large job.
SOON_S = 0.2
WEIGHING_REST = 20
_PYHOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyhost.py")


class Host:
    """A warm Python process for calls, with its environment and path; a call with the same ones may reuse it."""

    __slots__ = ("_cpu_s", "_env", "_path", "child", "wire")

    def __init__(self, python: str, env: dict[str, str], own: dict[str, str], path: list[str], room: Room) -> None:
        """Start it in the room. python: the interpreter. Errors: Refused, OSError."""
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        try:
            argv = [python, "-P", "-u", _PYHOST, str(asked), str(answer)]
            # It enters the working directory itself, call by call.
            self.child = Child(argv, {**loader(), **env, **own}, "/", b"", (asked, answer), room=room)
        except Refused:
            os.close(ask)
            os.close(answered)
            raise
        finally:
            os.close(asked)
            os.close(answer)
        self.wire = Answers(answered, ask)
        self._env, self._path = env, path
        self._cpu_s = 0.0

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.child.pid

    def serves(self, env: dict[str, str], path: list[str]) -> bool:
        """Return whether a call may reuse it: many libraries read their environment only once, when imported."""
        return path == self._path and (env is self._env or _foreign(env) == _foreign(self._env))

    def more(self, cpu_s: float) -> float:
        """Return the CPU time (s) that it has used since the last call. cpu_s: in all."""
        more = max(0.0, cpu_s - self._cpu_s)
        self._cpu_s += more
        return more

    def close(self) -> None:
        """Close the pipes of a host that is dead."""
        self.child.close()
        self.wire.close()


def _foreign(env: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if not name.startswith("SPOOL_")}


class Run:
    """The running job, with all facts about it so far."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.key: str = job["key"]
        self.output = Output(job["output_path"], job["output_cap_bytes"], job["tail_bytes"])
        self._progress: Spot | None = None
        self.child: Child | Launched | None = None
        self.helper: Host | Launcher | None = None  # the process that runs it
        self.began = time.monotonic()
        self.began_wall = time.time()
        timeout = job["timeout_s"]
        self.deadline = None if timeout is None else self.began + timeout
        self.kind = "exited"  # another one once we have decided to end it
        self.message = ""
        self.kill_at: float | None = None
        self.status: int | None = None  # as from wait(2), once the main process has ended
        self.answer: dict[str, Any] | None = None
        self.weight = Weight(job["memory_bytes"])
        self.weigher: Launcher | None = None  # asked how much memory it holds
        self._weigh_at = self.began
        self.cpu_s = 0.0  # of all its ended processes
        self.survivors: list[int] = []
        self.refusal: Refused | None = None  # why it never began
        self.look_pause = FIRST_LOOK_S
        self.next_look = self.began + FIRST_LOOK_S
        self.ice = Ice()
        self.frozen_at: float | None = None
        self.frozen_s = 0.0  # before that
        self.lent = False  # it waits for other tasks, so its silence means nothing
        self.sign: object = None
        self.sign_at = self.began
        self.told_at = 0.0

    def end(self, kind: str, message: str, kill_at: float) -> bool:
        """Decide to end it; False if that was decided before: then only the time to kill may move nearer."""
        first = self.kill_at is None
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)
        if first or kind == "fenced":
            self.kind, self.message = kind, message
        return first

    def refuse(self, refusal: Refused) -> None:
        """Record that its main process could not be started."""
        self.kind, self.message, self.refusal = refusal.kind, str(refusal), refusal

    @property
    def due(self) -> float:
        """The latest moment for the supervisor's next look; while the job is frozen, its own time stands still."""
        if self.frozen_at is not None:
            limit: float | None = self.frozen_at + self.job["freeze_s"]
        else:
            limit = self.deadline
        return min(at for at in (self.next_look, limit, self.kill_at) if at is not None)

    def go_on(self, now: float) -> None:
        """End the freeze: move the deadline and the last sign of life later by the frozen time."""
        assert self.frozen_at is not None
        passed, self.frozen_at = now - self.frozen_at, None
        self.frozen_s += passed
        self.sign_at += passed
        if self.deadline is not None:
            self.deadline += passed

    def hear(self, answer: dict[str, Any]) -> None:
        """Take a helper's message: the answer of a call, the ending of a program, or the memory of the job."""
        if "weighed" in answer:
            if answer["key"] == self.key:
                self._weigh(answer)
            return
        if "status" not in answer:
            # A true answer may follow a garbled one, but its process is no longer trusted.
            self.answer = self.answer or answer
            if isinstance(self.helper, Host):
                self.cpu_s += self.helper.more(answer["cpu_s"])
            return
        self.status = answer["status"]
        self.cpu_s += answer["cpu_s"]
        self.weight.peak = max(self.weight.peak, answer["peak"])
        if "refused" in answer and isinstance(self.child, Launched):
            self.child.refused = Refused(*answer["refused"])

    def _weigh(self, answer: dict[str, Any]) -> None:
        self.weigher = None
        self.weight.weigh(*answer["weighed"])
        now = time.monotonic()
        if self.weight.excess:
            self.end("oom", self.weight.excess, now)
        elif self.weight.doubtful:
            self.next_look = min(self.next_look, now + SOON_S)
        else:
            self._weigh_at = now + answer["took_s"] * WEIGHING_REST

    def may_be_weighed(self, now: float) -> bool:
        """Return whether enough time has passed since the last weighing."""
        return now >= self._weigh_at

    @property
    def wires(self) -> list[Wire]:
        """The open wires of its helpers."""
        helpers = {id(helper): helper for helper in (self.helper, self.weigher) if helper is not None}
        return [helper.wire for helper in helpers.values() if not helper.wire.closed]

    def prepare(self) -> None:
        """Find the places of its files, before the job can change what their paths lead to."""
        self.output.prepare()
        if self.job["progress_path"] and self.job["stall_s"] is not None:
            self._progress = Spot(self.job["progress_path"])

    def close(self) -> None:
        """Close its files."""
        self.output.close()
        if self._progress is not None:
            self._progress.close()

    def sign_of_life(self) -> object:
        """Return a value that changes when the job prints or makes progress."""
        return self.output.total, self._progress and self._progress.seen()

    def ending(self) -> dict[str, Any]:
        """Return the fields of an Ending, for the wire."""
        kind, code, number, message = self.kind, None, None, self.message
        if self.answer is not None:
            code, message = self.answer["exit"], message or self.answer["message"]
            if kind == "exited" and not self.answer["began"]:
                kind = self.answer.get("kind", "spawn_failed")
        elif self.status is not None:
            code, number, ended = _read_status(self.status)
            if "call" in self.job and not code and number is None:
                code = 1  # a call that ends its process has not returned, whatever the exit code
            message = message or ("the Python process died: " if "call" in self.job else "") + ended
            if kind == "exited" and number is not None:
                kind = "signaled"
        unsure = self.child is not None and kind == "exited" and self.answer is None
        refused = self.refusal or (self.child.refusal() if self.child is not None and unsure else None)
        if refused is not None:
            kind, code, message = refused.kind, refused.exit_code, str(refused)
        if self.survivors:
            message += f"; could not be killed yet: {', '.join(map(str, self.survivors))}"
        said = {
            "output_bytes": self.output.total,
            "output_dropped": self.output.dropped,
            "output_trouble": self.output.trouble,
            "tail": self.output.tail(),
            "stdout": self.output.said(),
            "max_rss_bytes": self.weight.peak,
            "frozen_s": self.frozen_s,
            "value_text": self.answer["value"] if self.answer is not None else None,
            "survivors": self.survivors,
        }
        if refused is not None and refused.number is not None:
            said["refusal"] = refused.number
        return {
            "key": self.key,
            "kind": kind,
            "exit_code": code,
            "signal": number,
            "message": "; ".join(part for part in (message, self.output.trouble) if part),
            "started_at": self.began_wall,
            "ended_at": time.time(),
            "duration_s": time.monotonic() - self.began - self.frozen_s,
            "cpu_s": self.cpu_s,
            **{name: value for name, value in said.items() if value or name == "refusal"},
        }


def _read_status(status: int) -> tuple[int | None, int | None, str]:
    """Return exit code or signal of a wait status, and a sentence."""
    if not os.WIFSIGNALED(status):
        code = os.WEXITSTATUS(status)
        return code, None, f"exited with code {code}"
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "a real-time signal"
    return None, number, f"killed by {name} (signal {number})"


# runner/weight: how much memory one job holds, and whether that is more than it may hold.


_TWICE = 2


class Weight:
    """The memory that a job holds now and held at most, by the looks so far. limit: its cap, None for none."""

    __slots__ = ("_above", "excess", "held", "limit", "peak")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.held = 0
        self.peak = 0
        self.excess = ""  # the sentence, once the job has to end
        self._above = 0

    def look(self, resident: int) -> bool:
        """Take the sum of all resident sizes; return whether the processes must be weighed."""
        if self.limit is not None and resident > self.limit:
            return True
        self._above = 0
        self._hold(resident)
        return False

    def weigh(self, share: int, unread: int) -> None:
        """Take the result of a weighing, each page counted once. unread: processes with all shared pages counted."""
        self._hold(share)
        if self.limit is None or share <= self.limit:
            self._above = 0
            return
        self._above += 1
        if self._above >= _TWICE:
            self.excess = f"used {share >> 20} MiB of memory, {self.limit >> 20} MiB are allowed"
            if unread:
                self.excess += f" (memory that {unread} of its processes share with others is counted more than once)"

    @property
    def doubtful(self) -> bool:
        """Whether the last weighing was above the cap, so that the next should come soon."""
        return self._above > 0

    def _hold(self, held: int) -> None:
        self.held = held
        self.peak = max(self.peak, held)
