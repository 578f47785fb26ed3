"""One claimed attempt on this worker, from the claim to the commit.

Law: nothing of a fenced attempt may be committed. An attempt is settled only when nothing of it runs any more and its
claim has one name, or is gone. A task that is being prepared is an attempt like those that run: it has its claim, a
slot and a place in the worker's beat, and can be cancelled, recalled or late for its deadline. It starts only under
the lease under which it was begun: a claim whose lease was broken is looked at, and renamed, before anything of it
begins. Nothing that an attempt wrote, printed or returned comes to the share unmasked. The rules of redaction are
imported when an attempt first says something: a task that says nothing costs nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from spoold.protocol import layout
from spoold.protocol.agent_messages import Message
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName, key
from spoold.protocol.request import Request, Verb
from spoold.protocol.task import Task
from spoold.rules.attempts.attempt_outcome import Outcome
from spoold.runner.job import Ending, Job
from spoold.store.step_timing import Slice
from spoold.worker.handlers.worker_config import Redact

if TYPE_CHECKING:
    from spoold.rules.redaction.masking import Mask, Stream


# A claimed task before it starts: what it is to get is brought piece by piece, over as many steps as that takes.


class Preparation:
    """One task's. job: what is to start; lease: the number of the lease under which it was begun."""

    def __init__(self, job: Job, bring: Iterator[None], lease: int) -> None:
        """bring: brings one thing after the other. Errors of `go_on`: its own."""
        self.job, self.lease = job, lease
        self._bring = bring

    def go_on(self, time: Slice) -> bool:
        """Bring one thing, and more while there is time; True when all was brought."""
        return all(not time.over for _ in self._bring)


# What an attempt says, masked before it leaves this machine.


# So much more of its end is kept than is shown: what stands there is masked only with what came before it.
MARGIN = 8 << 10
# A runner cuts a message at so many characters.
_CUT = 4000


class Redacting:
    """The masks of one attempt: its secrets (values by name), and what the owner of the machine has masked."""

    def __init__(self, secrets: Mapping[str, str], redact: Redact, tail_bytes: int) -> None:
        self._secrets, self._redact, self._tail = secrets, redact, tail_bytes
        self._made: Mask | None = None
        self._stream: Stream | None = None

    @property
    def kept(self) -> int:
        """How many bytes of the end of its output the runner has to keep."""
        if not self._tail or not self._masks:
            return self._tail
        longest = self._mask().longest if self._secrets else 0
        return self._tail + max(MARGIN, longest)

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece of its log; return what may leave."""
        if not self._masks:
            return data
        if self._stream is None:
            self._stream = self._mask().stream()
        return self._stream.feed(data)

    def end(self, *, cut: bool) -> bytes:
        """Return the rest of its log. cut: more was printed, and is lost."""
        stream, self._stream = self._stream, None
        return b"" if stream is None else stream.end(cut=cut)

    def restart(self) -> None:
        """Begin its log anew."""
        self._stream = None

    def ending(self, ending: Ending) -> Ending:
        """Return how it ended, masked, with as much of its end as is shown."""
        says = ending.message or ending.stdout or ending.value is not None or ending.output_dropped
        if not says or not self._masks:
            return ending
        mask, killed = self._mask(), ending.signal is not None  # while it wrote, perhaps
        return replace(
            ending,
            message=mask.text(ending.message, cut=len(ending.message) >= _CUT),
            stdout=mask.last(ending.stdout, self._tail, cut=killed),
            tail=mask.last(ending.tail, self._tail) if ending.output_dropped else "",
            value=mask.value(ending.value),
        )

    def value(self, value: Any) -> Any:
        """Return a value of JSON, masked. The end of a text may be missing."""
        if value is None or not self._masks:
            return value
        return self._mask().text(value, cut=True) if isinstance(value, str) else self._mask().value(value)

    @property
    def _masks(self) -> bool:
        return bool(self._secrets or self._redact.tokens or self._redact.patterns)

    def _mask(self) -> Mask:
        if self._made is None:
            if self._secrets:
                self._made = _masking()(self._secrets, tokens=self._redact.tokens, patterns=self._redact.patterns)
            else:
                self._made = _shared(self._redact.tokens, self._redact.patterns)
        return self._made


def is_cut(ending: Ending) -> bool:
    """Whether a part of what it wanted to say is lost: with the rest, or since it was killed while it wrote."""
    return bool(ending.output_dropped) or ending.signal is not None


NOTHING = Redacting({}, Redact(tokens=False), 0)


@lru_cache(maxsize=8)
def _shared(tokens: bool, patterns: tuple[str, ...]) -> Mask:
    """Return the masks of all attempts without secrets."""
    return _masking()({}, tokens=tokens, patterns=patterns)


def _masking() -> type[Mask]:
    from spoold.rules.redaction.masking import Mask

    return Mask


log = logging.getLogger("spoold")


@dataclass(slots=True)
class Attempt:
    """The worker's knowledge of an attempt. started_at and deadline in seconds since 1970.

    preparing: what it has to get before it starts; stopping: why it is being stopped, which then is its outcome;
    ending: how its processes ended; decided: the outcome when it never ran; judged: its outcome in the end, once that
    is known. fenced: the claim is gone, so nothing of this attempt may be committed. frozen_at: since when (s since
    1970) it is frozen, frozen_s: how long it was frozen before; approval: the answer that let it start; seen: the
    SHA-256 of its task's file, which an approve may name; asked:
    whether it asks people something, questions: what it asked, with the answers, once it is over; next: the name that
    its claim is getting; ordered_in: the number of the lease in which that order was given. lent: its slot is lent,
    since it waits for other tasks; back: it wants back what it lent. redacting: the masks of what it says; fetched:
    how many bytes of its output were masked, unlogged: those of them that are not in its log yet, logged: how many
    are. reported: its last progress report that was an object. words: messages of people for its agent, by name;
    given: the names of those that its agent has been given. notes: warnings about it now; told: warnings already
    logged on stderr.
    """

    name: TaskName
    worker: str
    task: Task
    lane: Lane
    started_at: float
    deadline: float = math.inf
    deadline_cut: bool = False
    preparing: Preparation | None = None
    stopping: Outcome | None = None
    ending: Ending | None = None
    decided: Outcome | None = None
    judged: Outcome | None = None
    fenced: bool = False
    lent: bool = False
    back: bool = False
    frozen_at: float | None = None
    frozen_s: float = 0.0
    approval: dict[str, Any] | None = None
    seen: str = ""
    asked: bool = False
    questions: list[dict[str, Any]] | None = None
    next: TaskName | None = None
    ordered_in: int = 0
    redacting: Redacting = NOTHING
    reported: dict[str, Any] | None = None
    words: dict[str, Message] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    fetched: int = 0
    unlogged: bytes = b""
    logged: int = 0
    log_complete: bool = False
    result_written: bool = False
    notes: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    # The name of its job, `ID.ATTEMPT`; its file while it runs; the file of its task and of its result after the end.
    key: str = field(init=False)
    file: str = field(init=False)
    ended: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = f"{self.name.id}.{self.name.attempt}"
        self.file = self.name.encode()
        self.ended = self.name.ended(self.worker).encode()

    def warn(self, note: str) -> None:
        """Note the obstacle to its commit, and log it here once: on a full share no beat can report it."""
        self.notes = [note]
        if note not in self.told:
            self.told.add(note)
            log.warning("%s; it is tried again", note)

    def hear(self, requests: Iterable[Request]) -> None:
        """Notice that the attempt asks people something."""
        self.asked = self.asked or any(
            request.verb is Verb.ASK and key(request.target) == key(self.name.id) for request in requests
        )

    @property
    def kind(self) -> str:
        """The type as which it runs: that of the lane from which it was claimed."""
        return self.lane.type

    @property
    def files(self) -> set[str]:
        """The names that its token may have."""
        return {self.file} if self.next is None else {self.file, self.next.encode()}

    def give_up(self, why: Outcome) -> None:
        """End it while it is being prepared."""
        self.preparing, self.decided = None, self.decided or why

    def resume(self) -> None:
        """Record that its claim has its next name."""
        assert self.next is not None
        self.name, self.next = self.next, None
        self.file, self.notes = self.name.encode(), []

    @property
    def claim(self) -> str:
        """The path of its token while this worker owns it."""
        return layout.claimed(self.worker, self.file)

    @property
    def result(self) -> str:
        """The path of its result."""
        return layout.join(layout.RESULTS, self.ended)

    @property
    def log(self) -> str:
        """The path of its log."""
        return layout.join(layout.LOGS, self.name.ended(self.worker).log())

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more, so that it can be settled."""
        return self.ending is not None or self.decided is not None

    @property
    def settleable(self) -> bool:
        """Whether it is over, and its claim has one name or is gone."""
        return self.over and (self.next is None or self.fenced)
