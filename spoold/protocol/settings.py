"""spool.json (the marker: identifies this spool) and spool.toml (how to run it).

Law: every setting has a default, and an unknown key of spool.toml is an error. A worker's lease ends half an interval
before any node may take it for dead.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field

from spoold.protocol.agent_fields import is_word
from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import (
    Amount,
    ByWord,
    OptionalWord,
    Priority,
    Real,
    Seconds,
    SomeSeconds,
    Strict,
    Timeout,
    Units,
    Uses,
    Whole,
    Word,
    Words,
)
from spoold.protocol.layout import FORMAT_VERSION
from spoold.protocol.plain_fields import DEPTH_MAX
from spoold.protocol.plain_settings import Basics

# [alerts] of spool.toml: when people are told of something, and by which task.
# Law: a rule that is off by default is None or 0.


class NotifySettings(Strict):
    """The task that each alert becomes; its input is the alert."""

    type: Word


class AlertSettings(Strict):
    """When people are told: fractions from 0 to 1, numbers of tasks and nodes, and seconds. None or 0: never.

    failure_rate: of the attempts that ended last; memory: of a node's in use; queue: tasks that wait or are ready;
    budget: spent of one; stuck_s: how long nothing starts while a worker has nothing to do; dead_s: how long the
    alert of a dead node stands; followers: fewer workers of other hosts and standbys; after_s: how long memory, queue
    or followers are out of bounds before that is an alert.
    """

    failure_rate: Real | None = Field(default=None, gt=0, le=1)
    memory: Real | None = Field(default=None, gt=0, le=1)
    queue: Whole | None = Field(default=None, ge=1, le=1_000_000_000)
    budget: Real | None = Field(default=0.8, gt=0, le=1)
    stuck_s: Seconds = 600
    dead_s: Seconds = 600
    followers: Whole = Field(default=0, ge=0, le=1_000_000)
    limits: bool = True
    breakers: bool = True
    disk: bool = True
    after_s: Seconds = 10
    task: NotifySettings | None = None

    @property
    def kind(self) -> str | None:
        """The type of the tasks that alerts become; None where they become none."""
        return self.task.type if self.task is not None else None


# The fate of a running task when its worker's lease is over because the share is silent.
LostShare = Literal["freeze", "stop", "continue"]


class Marker(BaseModel):
    """spool.json. A directory without it is not a spool: perhaps the share is not mounted."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    format: Whole = Field(default=FORMAT_VERSION)
    spool_id: str
    claim: Literal["rename", "lock"] = "rename"
    created_at: str = ""


class Heartbeats(Strict):
    """A node is dead after `misses` missing beats, `interval_s` seconds apart."""

    interval_s: Real = Field(default=5, ge=0.05, le=3600)
    misses: Whole = Field(default=3, ge=2, le=1000)

    @property
    def dead_after_s(self) -> float:
        """Seconds without a beat, on the observer's own clock, after which a node counts as dead."""
        return self.interval_s * self.misses

    @property
    def lease_s(self) -> float:
        """Seconds without a beat after which a worker stops its own tasks, before others start them again."""
        return self.interval_s * (self.misses - 0.5)


class Amounts(Strict):
    """What a budget is made of: cost_usd in USD, tokens, task_s in seconds of running attempts. None: not limited."""

    cost_usd: Amount | None = None
    tokens: Amount | None = None
    task_s: Amount | None = None

    @property
    def given(self) -> dict[str, float]:
        """The amounts that are not None, by name."""
        return {name: amount for name in Amounts.model_fields if (amount := getattr(self, name)) is not None}


class BudgetSettings(Amounts):
    """A budget: how much attempts may come to together, for ever, in a day (UTC), or for each batch or type.

    over: what becomes of a task for which too little is left. unknown: whether an attempt of which no amount is known
    counts as nothing, or may not start.
    """

    per: Literal["total", "day", "batch", "type"] = "total"
    over: Literal["hold", "fail"] = "hold"
    unknown: Literal["count_as_zero", "refuse"] = "count_as_zero"


class BreakerSettings(Strict):
    """After `failures` failed attempts in a row nothing of the type starts for open_s seconds; then one tries."""

    failures: Whole = Field(default=5, ge=1, le=1_000_000)
    open_s: SomeSeconds = 60


# Of what agents are given: tokens of one answer, and a temperature.
TOKENS_MAX, TEMPERATURE_MAX = 10**9, 10


def _model(value: str) -> str:
    if not is_word(value):
        raise WrongValue("no name of a model", "write 1 to 200 of A-Z a-z 0-9 _ . : @ / + = -, and no sign first")
    return value


ModelName = Annotated[str, AfterValidator(_model)]


class TypeSettings(Strict):
    """Defaults for tasks of one type. timeout in seconds for one attempt; budgets: each attempt draws on these.

    breaker: when attempts that fail keep the type back, on one worker or everywhere; None for never. model,
    max_tokens, temperature: for agents, where neither the worker's profile nor the task says another.
    """

    timeout: Timeout | None = None
    max_retries: Whole | None = Field(default=None, ge=0, le=1000)
    max_concurrent: Whole | None = Field(default=None, ge=0, le=1_000_000)
    priority: Priority | None = None
    memory_factor: Real | None = Field(default=None, ge=1, le=100)
    lost_share: LostShare | None = None
    uses: Uses = Field(default={}, max_length=20)
    bulkhead: OptionalWord | None = Field(default=None, validation_alias=AliasChoices("bulkhead", "class"))
    budgets: Words = ()
    breaker: BreakerSettings | None = None
    model: ModelName | None = None
    max_tokens: Whole | None = Field(default=None, ge=1, le=TOKENS_MAX)
    temperature: Real | None = Field(default=None, ge=0, le=TEMPERATURE_MAX)


class ClassSettings(Strict):
    """Slots, of those that are alive, that are reserved for a class. borrow: it may use what others leave idle."""

    slots: Whole = Field(default=0, ge=0, le=1_000_000)
    borrow: bool = False


class RateSettings(Strict):
    """At most `count` units begin within any per_s seconds."""

    count: Units
    per_s: SomeSeconds


class LimitSettings(Strict):
    """One limit, of the whole pool or of each worker. max: units that may be in use at once, None for any number.

    rate: of starts. quota_max_s: the longest time (s) for which an attempt that found a quota used up may close it.
    """

    max: Whole | None = Field(default=None, ge=0, le=1_000_000)
    per: Literal["pool", "worker"] = "pool"
    rate: RateSettings | None = None
    quota_max_s: SomeSeconds = 21_600


class RetrySettings(Strict):
    """Backoff: backoff_s × factor^(charged - 1) seconds, at most max_backoff_s, then ± jitter as a fraction.

    memory_factor: the memory of the next attempt, relative to one that ran out of it; 1 gives it no more.
    max_retry_after_s: the longest backoff that an attempt may ask for; max_later: how many attempts may charge
    nothing until exit code 75 fails a task.
    """

    max: Whole = Field(default=3, ge=0, le=1000)
    backoff_s: Seconds = 1
    factor: Real = Field(default=2, ge=1, le=100)
    jitter: Real = Field(default=0.25, ge=0, le=1)
    max_backoff_s: Seconds = 3600
    max_retry_after_s: Seconds = 86_400
    crash_limit: Whole = Field(default=3, ge=1, le=1000)
    memory_factor: Real = Field(default=1, ge=1, le=100)
    max_later: Whole = Field(default=100, ge=0, le=100_000)


class DropSettings(Strict):
    """The drop box: how long (s) an unfinished file may rest before it is rejected, and an empty one on a share; how
    long (s) a file that was not published by rename is watched for more; the largest file.
    """

    grace_s: Seconds = 10
    empty_grace_s: Seconds = 60
    watch_s: Seconds = 600
    max_bytes: Whole = Field(default=16 << 20, ge=1024, le=4 << 30)
    max_batch_bytes: Whole = Field(default=1 << 30, ge=1024, le=64 << 30)


class RetentionSettings(Strict):
    """Ended tasks move to archive/ when older (s) or more than keep; after archive_s they are deleted there.

    tmp_s: a dead client's files in tmp/ are removed after this time.
    """

    completed_s: Seconds = 86_400
    failed_s: Seconds = 604_800
    keep: Whole = Field(default=10_000, ge=0, le=10_000_000)
    archive_s: Seconds = 2_592_000
    events_s: Seconds = 2_592_000
    tmp_s: Seconds = 86_400


class ReadySettings(Strict):
    """How many tasks per lane are ready to be claimed, whatever the backlog."""

    window: Whole = Field(default=256, ge=1, le=100_000)


class FairSettings(Strict):
    """Who takes turns, of the tasks of one priority: batches, with all tasks of no batch as one more; the users whose
    drops they were; or nobody, so that tasks go in the order in which they came. weights: how many starts a turn is,
    by batch, or by the number of a user; 1 where none is given.
    """

    by: Literal["batch", "owner", "none"] = "batch"
    weights: ByWord[Annotated[Whole, Field(ge=1, le=1000)]] = Field(default={}, max_length=1000)


class ChildrenSettings(Strict):
    """The tasks that running tasks submit: how many generations there may be below a task that has no parent, and how
    many children a task may have.
    """

    max_depth: Whole = Field(default=5, ge=0, le=DEPTH_MAX)
    max_per_task: Whole = Field(default=1000, ge=0, le=1_000_000)


class LockSettings(Strict):
    """reserve_s: how long (s) a reservation stands if its author names no end; max_reserve_s: the longest."""

    reserve_s: SomeSeconds = 1800
    max_reserve_s: SomeSeconds = 86_400


class DiskSettings(Strict):
    """Fractions of the share in use: a warning, then no more drops are admitted and nothing starts, unless
    enough_free_mb (MiB) are free.
    """

    warn: Real = Field(default=0.80, gt=0, le=1)
    stop: Real = Field(default=0.95, gt=0, le=1)
    enough_free_mb: Whole = Field(default=1024, ge=0)


class DurabilitySettings(Strict):
    """fsync: results and admissions survive a power cut of the server's disk, at the price of a wait."""

    fsync: bool = True


class PollSettings(Strict):
    """How often directories are listed, in seconds: busy after an event, idle without hints."""

    busy_s: Real = Field(default=0.1, ge=0.001, le=60)
    idle_s: Real = Field(default=0.5, ge=0.001, le=60)
    hinted_s: Real = Field(default=2.0, ge=0.001, le=60)


class Settings(Strict):
    """spool.toml."""

    timeout: SomeSeconds = 1800
    heartbeat: Heartbeats = Heartbeats()
    types: ByWord[TypeSettings] = {}
    limits: ByWord[LimitSettings] = {}
    classes: ByWord[ClassSettings] = {}
    budgets: ByWord[BudgetSettings] = {}
    retry: RetrySettings = RetrySettings()
    drop: DropSettings = DropSettings()
    retention: RetentionSettings = RetentionSettings()
    ready: ReadySettings = ReadySettings()
    fair: FairSettings = FairSettings()
    children: ChildrenSettings = ChildrenSettings()
    locks: LockSettings = LockSettings()
    disk: DiskSettings = DiskSettings()
    alerts: AlertSettings = AlertSettings()
    durability: DurabilitySettings = DurabilitySettings()
    poll: PollSettings = PollSettings()

    @property
    def basics(self) -> Basics:
        """The settings that every command needs."""
        return Basics(
            interval_s=self.heartbeat.interval_s,
            max_bytes=self.drop.max_bytes,
            fsync=self.durability.fsync,
            warn=self.disk.warn,
            stop=self.disk.stop,
            enough_free_mb=self.disk.enough_free_mb,
            max_depth=self.children.max_depth,
        )

    def of(self, kind: str) -> TypeSettings:
        """The settings of a type, empty ones if none are given."""
        return self.types.get(kind, _NONE)


_NONE = TypeSettings()
