"""Faults of spoold itself: an exception in the handling of one input sets that one aside, and the node goes on.

An input is whatever others wrote: a task, a drop, a line, a record, a request, a heartbeat, a journal. Each loop over
inputs handles each within `handling`, which names it. What aside means is decided where the input is handled, since
the legal moves differ. At least it is passed over, and named.

Law: of exceptions, only errors of the environment (OSError, Unavailable) leave a `handling`. A contained fault is
logged with its traceback and noted in the journal once, counted, and told in `notes` until it is over. An input that
is aside rests before it is handled again, each time for longer, and nothing of it is lost.

Touches: threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import Any

from spoold.protocol.errors import BadFile, Unavailable, legible
from spoold.store.existence import NODE
from spoold.system.clock import Clock

# For how long (s) an input rests after its first fault, and at most.
REST_S, REST_MOST_S = 5.0, 300.0
# For how long (s) a fault is told after its last time, of how many inputs, and how many characters of its words.
TOLD_S, REMEMBERED, SAID = 600.0, 1000, 200
# After so many tries a fault that may pass (memory was short) is judged as one that lasts.
TRIES = 3
FAULTY = "made spoold itself fail"
FIX = "please report this as a bug, with the traceback in the log of this node"
LASTING_FIX = "please report this as a bug, with the file and the traceback in the log of the node."
_Key = tuple[str, str]


def contains(error: BaseException) -> bool:
    """Whether an exception is a fault of ours. An error of the environment is none, and an order to end is none."""
    return isinstance(error, Exception) and not isinstance(error, OSError | Unavailable)


@dataclass(slots=True)
class Fault:
    """One input that is aside. tries: how often it was handled in vain; last, until: monotonic, s."""

    kind: str
    name: str
    task: str | None
    attempt: int | None
    error: str
    where: str
    passing: bool
    tries: int = 0
    last: float = 0.0
    until: float = 0.0

    @property
    def lasts(self) -> bool:
        """Whether another try would end in the same way, as far as that can be known."""
        return not self.passing or self.tries >= TRIES

    @property
    def what(self) -> str:
        """The input in words, with its task."""
        if self.task is None or self.kind.endswith("task"):
            return f"{self.kind} {self.name}"
        return f"{self.kind} {self.name} of task {self.task}"

    @property
    def told(self) -> str:
        """The fault in a sentence."""
        return f"{self.what} {FAULTY} ({self.error}); it is set aside and all else goes on; {FIX}"

    @property
    def cause(self) -> str:
        """The fault, for the record of a task that it ends."""
        return f"it {FAULTY} ({self.error}, in {self.where}); {LASTING_FIX}"

    def bad_file(self, file: str) -> BadFile:
        """The fault as the error of a file that is set aside for it."""
        return BadFile(file, "", f"{FAULTY}: {self.error} (in {self.where}).", LASTING_FIX)


class Handling:
    """One input while it is handled. fault: the fault that ended this, once it is over; None for none.

    file: while it is read; then the fault is raised anew as the error of that file.
    """

    __slots__ = ("_attempt", "_faults", "_file", "_key", "_task", "fault")

    def __init__(self, faults: Faults, key: _Key, task: str | None, attempt: int | None, file: str = "") -> None:
        self._faults, self._key, self._task, self._attempt, self._file = faults, key, task, attempt, file
        self.fault: Fault | None = None

    def __enter__(self) -> Handling:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self._faults.over(*self._key)
            return False
        if not contains(error) or (self._file and isinstance(error, BadFile)):
            return False
        self.fault = self._faults.contain(self._key, error, trace, self._task, self._attempt)
        if self._file:
            raise self.fault.bad_file(self._file) from error
        return True


class Faults:
    """One node's faults. count: how many were contained since it started. note: writes a journal event."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._aside: dict[_Key, Fault] = {}
        self.count = 0
        self._lock = Lock()  # results are written by several threads
        self.note: Callable[..., None] = lambda *_, **__: None

    @contextmanager
    def current(self) -> Iterator[None]:
        """Inside, `reading` contains the faults of this node."""
        token = NODE.set(self)
        try:
            yield
        finally:
            NODE.reset(token)

    def handling(self, kind: str, name: str, task: str | None = None, attempt: int | None = None) -> Handling:
        """Handle one input inside. kind: of input, in words; name: of the input; task, attempt: whose it is."""
        return Handling(self, (kind, name), task, attempt)

    def reading(self, kind: str, file: str, task: str | None = None, attempt: int | None = None) -> Handling:
        """Read a file inside. Errors: BadFile, also for a fault of ours: a file that spoold cannot handle then gets
        the same treatment as one that is none of its kind.
        """
        return Handling(self, (kind, file), task, attempt, file)

    def rests(self, kind: str, name: str) -> bool:
        """Whether an input is aside, and its time to be handled again has not come."""
        fault = self._aside.get((kind, name)) if self._aside else None
        return fault is not None and self._clock.monotonic() < fault.until

    def over(self, kind: str, name: str) -> None:
        """Record that an input was handled after all, or is gone."""
        if self._aside:
            self._aside.pop((kind, name), None)

    def contain(
        self,
        key: _Key,
        error: BaseException,
        trace: TracebackType | None,
        task: str | None = None,
        attempt: int | None = None,
    ) -> Fault:
        """Set an input aside for this exception."""
        with self._lock:
            return self._contain(key, error, trace, task, attempt)

    def _contain(
        self,
        key: _Key,
        error: BaseException,
        trace: TracebackType | None,
        task: str | None,
        attempt: int | None,
    ) -> Fault:
        now, before = self._clock.monotonic(), self._aside.pop(key, None)
        fault = Fault(*key, task, attempt, _words(error), _place(trace), isinstance(error, MemoryError))
        fault.name = legible(fault.name)
        fault.tries = before.tries + 1 if before is not None else 1
        fault.last = now
        fault.until = now + min(REST_MOST_S, REST_S * 2 ** min(fault.tries - 1, 10))
        self._aside[key] = fault
        if len(self._aside) > REMEMBERED:
            del self._aside[next(iter(self._aside))]
        self.count += 1
        if before is None or (before.error, before.where) != (fault.error, fault.where):
            import logging  # a short command has no fault, and no time for this

            logging.getLogger("spoold").error("%s", fault.told, exc_info=(type(error), error, trace))
            self.note("FAULT", task, attempt, input=fault.what, error=fault.error, where=fault.where)
        return fault

    @property
    def aside(self) -> list[Fault]:
        """The inputs that are aside, or were a short while ago."""
        if self._aside:
            now = self._clock.monotonic()
            self._aside = {key: one for key, one in self._aside.items() if now - one.last < TOLD_S}
        return list(self._aside.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for people."""
        return tuple(fault.told for fault in self.aside)


def _words(error: BaseException) -> str:
    text = legible(f"{type(error).__name__}: {error}".strip().rstrip(":"))
    return text if len(text) <= SAID else f"{text[:SAID]}…"


def _place(trace: TracebackType | None) -> str:
    """Return where in spoold an exception was last, as file and line."""
    found = "?"
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename.split("/")
        if "spoold" in path:
            found = f"{'/'.join(path[-2:])}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def told_of(task_id: str, notes: Any) -> str:
    """Return the note about a fault that concerns a task; '' for none."""
    return next((str(note) for note in notes if f"task {task_id} {FAULTY}" in str(note)), "")
