"""A view of a pretended spool, in memory: the values that `spoold.client.view` would give, and nothing read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from spoold.client.read.questions import Question, Shown
from spoold.client.read.task_info import TaskInfo
from spoold.client.view import AGES, AgeRow, BatchRow, Card, Found, LogPart, Noted, Query, Reason, Run
from spoold.pictures.picture_data import Need, Scene, Task
from spoold.protocol.errors import BadFile, NotFound, Unavailable
from spoold.protocol.result import Error, Result, Total
from spoold.protocol.settings import Settings
from spoold.protocol.snapshot import Alert, Durations, Leadership, Node, Recent, Snapshot, TaskCounts, WorkerCounts
from spoold.rules.answers.task_facts import Explanation
from spoold.rules.answers.task_facts import Reason as Because
from spoold.rules.answers.task_history import Chapter

NOW = 1_800_000_000.0
AT = "2027-01-15T08:00:00Z"


def cards(number: int) -> list[Card]:
    """So many tasks: of ten, six are completed, one each runs, is ready, waits and has failed."""
    states = ("claimed", "ready", "waiting", "failed", *("completed",) * 6)
    return [
        Card(
            f"job-{n:06}",
            states[n % 10],
            "review" if n % 3 else "build",
            f"batch-{n // 50}",
            attempt=1 + n % 2,
            worker=f"node-{n % 4}" if states[n % 10] not in ("ready", "waiting") else "",
            admitted=NOW - 4000 - n,
            since=NOW - 10 * n,
            code="EXIT_NONZERO" if states[n % 10] == "failed" else "",
        )
        for n in range(number)
    ]


@dataclass
class PretendedView:
    """Answers as a view does. Set `problem` for a share that is lost; `silent` makes what asks it fail."""

    tasks: list[Card] = field(default_factory=lambda: cards(60))
    version: int = 1
    problem: str = ""
    silent: bool = False
    complete: bool = True
    as_of: float = NOW
    logged: dict[str, bytes] = field(default_factory=dict)
    asked: tuple[Question, ...] = ()
    scenes: dict[str, Scene] = field(default_factory=dict)
    progress: Any = None
    finds: list[tuple[Query, str, int]] = field(default_factory=list)

    @property
    def picture(self) -> Snapshot:
        counts = Counter(card.state for card in self.tasks)
        running = [card for card in self.tasks if card.state == "claimed"]
        nodes = tuple(
            Node(
                worker=f"node-{n}",
                host=f"host{n}.example",
                state="working" if n else "draining",
                slots=4,
                running=len([card for card in running if card.worker == f"node-{n}"]),
                cpus=8,
                mem_mb=16384,
                mem_available_mb=4096 + 1024 * n,
                load=1.5 + n,
                labels=("linux",),
                tasks=tuple({"id": card.id} for card in running if card.worker == f"node-{n}"),
            )
            for n in range(4)
        )
        return Snapshot(
            generated_at=AT,
            spool_id="s-7f3a",
            master=Leadership(leader="node-1", epoch=3),
            tasks=TaskCounts(**counts),
            workers=WorkerCounts(alive=4, working=3, draining=1),
            nodes=nodes,
            recent=Recent(failed_attempts={"EXIT_NONZERO": 5, "TIMEOUT": 1}),
            durations={"review": Durations(n=3, mean_s=2.0, p95_s=3.0)},
            alerts=(Alert(name="stuck", text="nothing has ended for 20 minutes.", since=AT, task="job-000003"),),
            warnings=("the share has 2 GiB left.",),
            paused=("deploy",),
            gates={
                "limit": {"gpu": {"max": 2, "used": 2, "doubtful": 0}, "api": {"max": 8, "used": 3, "doubtful": 0}},
                "quota": {"api": {"until": "2027-01-15T09:00:00Z"}},
                "budget": {
                    "team": {
                        "limits": {"cost_usd": 20.0},
                        "periods": [
                            {"period": "day:2027-01-15", "spent": {"cost_usd": 12.5}, "reserved": {"cost_usd": 1}}
                        ],
                    }
                },
                "locks": {
                    "held": 1,
                    "waiting": 2,
                    "holders": [{"task": "job-000000", "told": "job-000000", "locks": "write src/**"}],
                    "waiters": [{"task": "job-000002", "told": "job-000000", "locks": "write src/a", "tasks": 2}],
                },
            },
        )

    def find(self, query: Query, *, cursor: str = "", limit: int = 100) -> Found:
        self.finds.append((query, cursor, limit))
        found = self._matches(query)
        if cursor and not cursor.isdecimal():
            raise BadFile("cursor", "", "is not from this call.", "begin without one.")
        begin = int(cursor or 0)
        more = str(begin + limit) if begin + limit < len(found) else ""
        state = dict(Counter(card.state for card in self._matches(replace(query, states=()))))
        return Found(found[begin : begin + limit], len(found), len(self.tasks), more, {"state": state})

    def _matches(self, query: Query) -> list[Card]:
        name = query.sort.removeprefix("-")
        found = [card for card in self.tasks if self._fits(card, query)]
        return sorted(found, key=lambda card: (getattr(card, name) or 0, card.id), reverse=query.sort.startswith("-"))

    def _fits(self, card: Card, query: Query) -> bool:
        wanted: Iterable[tuple[tuple[str, ...], str]] = (
            (query.states, card.state),
            (query.types, card.type),
            (query.batches, card.batch),
            (query.workers, card.worker),
            (query.codes, card.code),
        )
        text = f"{card.id} {card.type} {card.batch} {card.worker} {card.code}".casefold()
        return all(not values or value in values for values, value in wanted) and query.text.casefold() in text

    def keys(self, query: Query) -> list[str]:
        return [card.id for card in self._matches(query)]

    def counts(self) -> dict[str, int]:
        return Counter(card.state for card in self.tasks)

    def card(self, task_id: str) -> Card | None:
        return next((card for card in self.tasks if card.id == task_id), None)

    def running(self) -> list[Run]:
        return [
            Run(
                card,
                card.id,
                card.attempt,
                card.type,
                card.worker,
                NOW - 300,
                34.0,
                progress=self.progress if self.progress is not None else {"message": "reading files", "step": "3/9"},
                tokens=12_345.0,
                cost_usd=0.42,
                message="",
                frozen_s=0,
                lent=False,
            )
            for card in self.tasks
            if card.state == "claimed"
        ]

    def batches(self) -> list[BatchRow]:
        names = dict.fromkeys(card.batch for card in self.tasks if card.batch)
        found = []
        for name in names:
            counts = Counter(card.state for card in self.tasks if card.batch == name)
            found.append(BatchRow(name, dict(counts), counts.total(), NOW - 4000, NOW - 60))
        return found

    def ages(self) -> list[AgeRow]:
        waiting = Counter(card.type for card in self.tasks if card.state in ("waiting", "ready"))
        return [AgeRow(kind, [count, *[0] * (len(AGES) - 1)], count) for kind, count in waiting.items()]

    def reasons(self) -> list[Reason]:
        return [
            Reason(
                "limit gpu is at its max: 2 of 2 units are in use.",
                6,
                "limit",
                Query(states=("waiting",), types=("build",)),
            ),
            Reason("the type deploy is paused by ops@desk: maintenance.", 2, "pause", None),
        ]

    def failures(self, most: int = 50) -> list[Card]:
        return [card for card in self.tasks if card.state in ("failed", "rejected")][:most]

    def events(self, after: int = 0, *, task: str = "", most: int = 200) -> list[Noted]:
        found = [
            Noted(n, f"2027-01-15T07:59:{n:02}Z", "node-1", "STARTED", f"job-{n:06}", 1, {"by": "ops"})
            for n in range(20)
        ]
        return [one for one in found if one.number > after - 1 and task in ("", one.task)][:most]

    def questions(self) -> tuple[Question, ...]:
        return self.asked

    def info(self, task_id: str) -> TaskInfo:
        self._reach()
        card = self._known(task_id)
        attempts = []
        if card.state == "failed":
            error = Error(code="EXIT_NONZERO", message="the program ended with 2.")
            attempts = [
                Result(task_id=card.id, attempt=n, worker_id="node-1", status="failure", exit_code=2, duration_s=3.2,
                       error=error) for n in (1, 2)
            ]  # fmt: skip
        return TaskInfo(
            id=card.id, state=card.state, attempt=card.attempt, reason="", type=card.type, name="", batch=card.batch,
            priority=0, worker=card.worker or None, lane=None, failures=len(attempts), crashes=0, created_at=AT,
            admitted_at=AT, started_at=None, completed_at=None, progress=None, progress_problem="",
            archived=False,
            path=f"{card.state}/{card.id}.json", attempts=attempts,
            total=Total(attempts=2, duration_s=6.4, cost_usd=0.5) if attempts else None,
            task={"command": ["true"], "type": card.type},
        )  # fmt: skip

    def explain(self, task_id: str) -> Explanation:
        self._reach()
        card = self._known(task_id)
        because = (Because("limit", "limit gpu is full.", "wait, or raise it."),)
        return Explanation(card.id, card.state, card.attempt, f"it is {card.state}.", because)

    def log(self, task_id: str, *, attempt: int | None = None, offset: int = 0, most: int = 65536) -> LogPart:
        self._reach()
        data = self.logged.get(task_id, b"")
        begin = max(0, len(data) + offset) if offset < 0 else min(offset, len(data))
        piece = data[begin : begin + most]
        ended = self._known(task_id).state != "claimed"
        return LogPart(attempt or 1, "node-1", begin, begin + len(piece), len(data), piece, ended)

    def logs(self, task_id: str) -> list[int]:
        self._reach()
        return [1] if task_id in self.logged else []

    def history(self, task_id: str) -> list[Chapter]:
        self._reach()
        self._known(task_id)
        return [
            Chapter("2027-01-15T07:50:00Z", "node-1", "ADMITTED", None, "admitted"),
            Chapter("2027-01-15T07:50:02Z", "node-2", "STARTED", 1, "started on node-2"),
        ]

    def scene(self, batch: str) -> Scene:
        self._reach()
        mine = [card for card in self.tasks if card.batch == batch]
        if not mine:
            raise NotFound(f"no task is of batch {batch}.")
        if batch in self.scenes:
            return self.scenes[batch]
        tasks = [
            Task(card.id, card.id, card.state, card.type, needs=(Need(mine[n - 1].id),) if n % 5 else ())
            for n, card in enumerate(mine)
        ]
        return Scene(batch, NOW, tuple(tasks))

    def wait(self, version: int, timeout_s: float) -> int:
        """As `Watch.wait`, which the application calls in a thread: at once."""
        return self.version

    def _reach(self) -> None:
        if self.silent:
            raise Unavailable("/mnt/spool: Stale file handle. Is the share mounted?")

    def _known(self, task_id: str) -> Card:
        card = self.card(task_id)
        if card is None:
            raise NotFound(f"no task {task_id}.")
        return card


@dataclass
class PretendedSpool:
    """Keeps what was asked of it: the name of each call with its arguments. Set `refusal` for an error."""

    store: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(settings=Settings()))
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    refusal: Exception | None = None
    shows: dict[str, Shown] = field(default_factory=dict)

    def agents(self) -> list[Any]:
        return []

    def shown(self, task: str) -> Shown:
        return self.shows.get(task) or Shown(task, "", ())

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in {"cancel", "retry", "hold", "release_held", "approve", "reject", "pause", "resume", "drain"}:
            raise AttributeError(name)

        def call(*given: Any, **named: Any) -> None:
            if self.refusal is not None:
                raise self.refusal
            self.calls.append((name, given, named))

        return call
