"""runner/job: a job and its ending as values, and the port behind which jobs run.

Law: plain values, which only check themselves and translate to the supervisor's wire; nothing here touches the
system, so a simulator can use them too. All durations are seconds, all sizes bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from spoold.protocol import codec
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.settings import LostShare

Kind = Literal[
    "exited",  # the main process exited by itself, with exit_code
    "signaled",  # a signal that we did not send ended it; 9 often means the kernel's out-of-memory killer
    "timeout",  # it ran longer than timeout_s
    "oom",  # its processes together held more than memory_bytes
    "stalled",  # no output and no progress for stall_s
    "stopped",  # stop() was called, the reason is in the message
    "fenced",  # its lease was over, so others may be running the task, and it could not stay frozen any longer
    "refused",  # its start showed that it asks for something that this worker does not allow; nothing began
    "spawn_failed",  # the program never began; exit_code 127 not found, 126 not executable, None no process
    "lost",  # the supervisor itself vanished; all of the job was killed, and nothing else is known
]


class Within(NamedTuple):
    """The directories below which a job has to start, links resolved; table: file and table that can allow more."""

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
    """One attempt at a task, ready to run. Its environment is `env`, overridden by `own`, which differs between
    attempts; it inherits nothing from the worker.

    `within`: the directories that may hold `cwd` at its start; None for any.
    `output_path` and `progress_path` must be on a local disk, because the supervisor that keeps the time touches
    them. `lost_share`: once its lease is over, the job is frozen for at most `freeze_s`, or killed, or goes on.
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
        """Return the job for the supervisor, without `env`, which is sent beside it when it has changed.

        All values are plain, so a call's arguments must be plain too.
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
    `max_rss_bytes` is 0 for a job that ended before the first look. `cpu_s` is user and system time of all its
    processes that were collected, by their parents or here; None where it is unknown. `survivors` are pids that
    SIGKILL did not end in time (stuck in the kernel); they are still being killed. `frozen_s` is no part of
    `duration_s`.
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
        """Return the ending that the supervisor reported; missing fields have their defaults."""
        fields = dict(wire)
        fields["survivors"] = tuple(fields.get("survivors", ()))
        fields["message"] = legible(fields["message"])
        text = fields.pop("value_text", None)
        try:
            value = None if text is None else codec.load_text(text, "the call")
            return cls(**fields, returned=text is not None, value=value)
        except BadFile as problem:
            fields["exit_code"] = 1
            fields["message"] = f"the call returned a value that cannot be read back: it {problem.problem}"
            return cls(**fields)


class NoSlot(Exception):
    """Every slot has all the jobs that may wait there. This is no fault of the machine."""


class RunnerPort(Protocol):
    """The calls of a runner for the worker's loop. Used from one thread, except `wake`."""

    def start(self, job: Job) -> None:
        """Begin a job in a free slot, or let it wait in one for the end of another job.

        Errors: NoSlot where no more may wait, ValueError for a running key, OSError where no process can be made.
        """

    def poll(self) -> list[Ending]:
        """Return the jobs that ended since the last call, without blocking."""

    def stop(self, key: str, why: str, grace_s: float) -> None:
        """End a running job: SIGTERM, after the grace SIGKILL. An unknown key is no error: the job has just ended."""

    def extend(self, until_boottime_s: float) -> None:
        """Let jobs run until this CLOCK_BOOTTIME; without a further extension each then follows its `lost_share`."""

    def frozen(self) -> Mapping[str, float]:
        """Return the frozen jobs, with the start of the freeze (s since 1970). No extension lets them go on."""

    def thaw(self, key: str, until_boottime_s: float) -> None:
        """Let a frozen job go on until this CLOCK_BOOTTIME; it stays frozen if the order comes later than that."""

    def wait(self, timeout_s: float) -> None:
        """Block until there is an ending to poll, `wake` was called, or the time is over."""

    def wake(self) -> None:
        """End the present or the next `wait`, from another thread or a signal handler."""

    def running(self) -> set[str]:
        """Return the keys of the jobs that were started and whose ending was not polled yet."""

    def waiting(self) -> set[str]:
        """Return the keys of the jobs that wait for the one before them."""

    def lend(self, keys: Collection[str]) -> None:
        """Let exactly these running jobs count for no slot: as many others may start. Their stall timer stands."""

    def engaged(self, since_s: float) -> int:
        """Return how many slots, without lent ones, have had the same job for at least so long (s)."""

    def relieve(self, after_s: float) -> None:
        """End, as `stop` does, jobs that wait for one that has run for at least so long (s) unless they start."""

    def usage(self) -> dict[str, int]:
        """Return resident bytes of running jobs, as last reported (about every 2 s)."""

    def close(self, grace_s: float) -> list[Ending]:
        """Stop all jobs with this grace, wait until nothing is left, and return their endings."""
