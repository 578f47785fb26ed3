"""runner/job: what a worker runs, how it ended, and the port behind which the running happens.

Law: plain values, no behaviour beyond checking themselves and translating to the supervisor's wire; nothing here
touches the system, so a simulator can speak this language too. All durations are seconds, all sizes bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from spoold.protocol.errors import legible
from spoold.protocol.settings import LostShare

Kind = Literal[
    "exited",  # the main process exited by itself; exit_code tells how
    "signaled",  # a signal that we did not send ended it; 9 often means the kernel's out-of-memory killer
    "timeout",  # it ran longer than timeout_s
    "oom",  # its processes together held more than memory_bytes
    "stalled",  # no output and no progress for stall_s
    "stopped",  # stop() was called, the reason is in the message
    "fenced",  # its lease was over, so others may be running the task, and it might not stay frozen for longer
    "refused",  # it asked for what this worker does not allow, which only its start could show; nothing began
    "spawn_failed",  # the program never began; exit_code 127 not found, 126 not executable, None no process
    "lost",  # the supervisor itself vanished; nothing is known but that all of it was killed
]


class Within(NamedTuple):
    """Below which directories a job has to start, links resolved; table: where in which file more can be allowed."""

    prefixes: tuple[str, ...]
    table: str


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments, looked up in the PATH of the job's environment; no shell."""

    argv: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("a command needs a program to run")


@dataclass(frozen=True, slots=True)
class Call:
    """A Python callable "module:qualname" with arguments as in JSON; `path` goes to the front of sys.path.

    `allow`: from which modules (prefixes) the callable itself has to be, wherever it was found; None for any.
    `table`: where in which file that is written. `calls`: it is called once with each of these lists of arguments, in
    place of `args` and `kwargs`, up to the first call that fails; None for a single call.
    """

    target: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    table: str = ""
    calls: tuple[list[Any], ...] | None = None

    def __post_init__(self) -> None:
        module, colon, name = self.target.partition(":")
        if not (module and colon and name):
            raise ValueError(f"a call's target is written module:function, not {self.target!r}")


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt at a task, ready to run. Its environment is `env` and, over it, `own`, which differs from attempt
    to attempt; nothing is inherited from the worker.

    `within`: where `cwd` has to be when it starts; None for anywhere.
    `output_path` and `progress_path` must be on a local disk, because the supervisor that keeps the time touches
    them. `lost_share` says what becomes of it once its lease is over: it is frozen for at most `freeze_s`, or killed,
    or goes on.
    `memory_bytes` caps the resident memory of all the job's processes together.
    """

    key: str
    run: Command | Call
    env: Mapping[str, str]
    cwd: str
    output_path: str
    own: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    timeout_s: float | None = None
    grace_s: float = 10.0
    memory_bytes: int | None = None
    stall_s: float | None = None
    progress_path: str | None = None
    output_cap_bytes: int = 64 << 20
    tail_bytes: int = 16 << 10
    within: Within | None = None
    lost_share: LostShare = "stop"
    freeze_s: float = 600.0

    def __post_init__(self) -> None:
        for path in (self.cwd, self.output_path, self.progress_path):
            if path is not None and not path.startswith("/"):
                raise ValueError(f"a job's paths are absolute, since its supervisor is elsewhere: {path!r}")

    def to_wire(self) -> dict[str, Any]:
        """The job as the supervisor gets it, but for `env`, which goes with it when it is another than before.

        Its values are plain, and so a call's arguments have to be.
        """
        wire: dict[str, Any] = {name: getattr(self, name) for name in _SENT}
        wire["own"] = dict(self.own)
        wire["within"] = self.within and tuple(self.within)
        if isinstance(self.run, Command):
            wire["argv"] = list(self.run.argv)
        else:
            call = self.run
            wire["call"] = (call.target, tuple(call.args), dict(call.kwargs), call.calls)
            wire["path"] = list(call.path)
            wire["allow"] = None if call.allow is None else (call.allow, call.table)
        return wire


_SENT = tuple(name for name in Job.__dataclass_fields__ if name not in ("run", "env", "own", "within"))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended; by the time it is reported nothing of it runs any more.

    `exit_code` or `signal` is how the main process went, where known, whatever `kind` says about the reason.
    `output_bytes` counts all output, `output_dropped` the part that is not in the file, for the reason in
    `output_trouble`, or by the cap; `tail` is the end of it,
    `stdout` the end of what went to standard output. `returned` says that a call did, and `value` what; of
    several calls of which one failed, what those before it returned.
    `refusal` is why a program never began: an errno, 0 for values that no program can be given, None where it began.
    `max_rss_bytes` is 0 for what ended before anybody looked, `cpu_s` None where nobody could count: user and system
    time of all its processes that were collected, by their parents or here. `survivors` are pids that SIGKILL did not
    end in time (stuck in the kernel); they are still being killed. `frozen_s` is no part of `duration_s`.
    """

    key: str
    kind: Kind
    exit_code: int | None
    signal: int | None
    message: str
    started_at: float
    ended_at: float
    duration_s: float
    output_bytes: int = 0
    output_dropped: int = 0
    output_trouble: str = ""
    tail: str = ""
    stdout: str = ""
    max_rss_bytes: int = 0
    cpu_s: float | None = None
    returned: bool = False
    value: object = None
    survivors: tuple[int, ...] = ()
    refusal: int | None = None
    frozen_s: float = 0.0

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Ending:
        """The ending as the supervisor reported it; what it left out is as in an attempt that did nothing."""
        fields = dict(wire)
        fields["survivors"] = tuple(fields.get("survivors", ()))
        fields["message"] = legible(fields["message"])
        text = fields.pop("value_text", None)
        try:
            return cls(**fields, returned=text is not None, value=None if text is None else json.loads(text))
        except (ValueError, RecursionError) as problem:
            fields["exit_code"] = 1
            fields["message"] = f"the call returned a value that cannot be read back: {problem}"
            return cls(**fields)


class NoSlot(Exception):
    """Every slot has all the jobs that may wait there. It says nothing about the machine."""


class RunnerPort(Protocol):
    """What the worker's loop needs of a runner. Used from one thread, except `wake`."""

    def start(self, job: Job) -> None:
        """Begins a job in a free slot, or has it wait in one behind another job; then it begins when that is over.

        Errors: NoSlot where no more may wait, ValueError for a running key, OSError where no process can be had.
        """

    def poll(self) -> list[Ending]:
        """The jobs that ended since the last call, without blocking."""

    def stop(self, key: str, why: str, grace_s: float) -> None:
        """Ends a running job: SIGTERM, after the grace SIGKILL. An unknown key is no error, it has just ended."""

    def extend(self, until_boottime_s: float) -> None:
        """Lets jobs run until this CLOCK_BOOTTIME; what becomes of those not extended by then is in the job."""

    def frozen(self) -> Mapping[str, float]:
        """The jobs that are frozen, with when that began (s since 1970). No extension lets them go on."""

    def thaw(self, key: str, until_boottime_s: float) -> None:
        """Lets a frozen job go on until this CLOCK_BOOTTIME; if that is over when it hears of it, it stays frozen."""

    def wait(self, timeout_s: float) -> None:
        """Blocks until there is an ending to poll, `wake` was called, or the time is over."""

    def wake(self) -> None:
        """Ends a `wait`, present or next, from another thread or a signal handler."""

    def running(self) -> set[str]:
        """The keys of the jobs that were started and whose ending was not polled yet."""

    def waiting(self) -> set[str]:
        """Those of them that wait for the one before them."""

    def engaged(self, since_s: float) -> int:
        """How many slots have had the same job for at least so long (s)."""

    def relieve(self, after_s: float) -> None:
        """Ends, as if by `stop`, what waits for a job that has run for at least so long (s), unless it begins now."""

    def usage(self) -> dict[str, int]:
        """Resident bytes of running jobs, as last reported (about every two seconds)."""

    def close(self, grace_s: float) -> list[Ending]:
        """Stops all jobs with this grace, waits until nothing is left, and returns their endings."""
