"""Why tasks wait, counted: by the gates that the leader asks, with the states that the view knows.

Law: looks and never touches. Tasks without conditions wait for what their lane waits for, so a lane is asked once,
however many tasks it has. The conditions of a task are in its file, which is read once; of tasks that were not read
yet it is only said that they have conditions. Backoffs are counted from the end of the attempt before, as its event
tells it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from spoold.client.stock import facts_seen
from spoold.client.view.card import Card
from spoold.client.view.query import Query
from spoold.protocol.lanes import kind_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key, parse_task
from spoold.protocol.request import Request
from spoold.protocol.snapshot import Snapshot
from spoold.rules.gates.dependency_gates import batch_in
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Facts, Known, LaneFacts, Parent, parent_in
from spoold.rules.gates.gate import Refuse, Verdict, Wait
from spoold.rules.gates.lock_gate import NAME as LOCKS
from spoold.rules.gates.lock_holders import book_seen
from spoold.rules.gates.registry import judge, judge_type
from spoold.rules.gates.standing_requests import Requested
from spoold.store import control
from spoold.store.store import Store

# One sentence for all tasks that the same gate holds for reasons of their own.
_OWN = {
    "dependencies": "waits for other tasks to complete",
    "after_any": "waits for other tasks to end",
    "after_failed": "waits to see whether other tasks fail",
    "after_batch": "waits for all tasks of a batch to end",
    "not_before": "its time has not come yet",
    "retry_delay": "rests before its next attempt",
    "hold": "is on hold",
    "approval": "waits for an approval",
    "locks": "waits for files or other things that it locks",
    "budget": "waits for a budget",
}
TURN = "nothing stands in its way: it waits for its turn"
READY = "ready: waits for a worker with a free slot"
NOT_READ = "has conditions that were not read yet"
RETURNED = "is about to be placed again"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why so many tasks wait. gate: the name of the gate, '' for none; query: finds these tasks, and perhaps others
    of the same types; None where nothing finds them.
    """

    text: str
    count: int
    gate: str
    query: Query | None


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests that stand, read once for all tasks; about: those about one task, by key."""

    requests: tuple[Request, ...]
    ends: Mapping[Request, float]
    about: Mapping[str, tuple[Requested, ...]]


def asked_now(store: Store) -> Asked:
    """Read the requests that stand. Errors: OSError."""
    requests = control.list_requests(store.fs)
    targets = {request.target for request in requests}
    about = {key(target): control.about_task(store.fs, target, requests) for target in targets}
    return Asked(tuple(requests), control.ends_of(store.fs, requests), about)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a view has seen. queued: the tasks that wait or are ready, with their keys; state: of a task by its key,
    '' if there is none; conditions: of the tasks that were read, by key; batches: by key, whether a task of it is
    open.
    """

    queued: list[tuple[str, Card]]
    state: Callable[[str], str]
    conditions: Mapping[str, Conditions]
    batches: Mapping[str, bool]


def reasons_of(store: Store, seen: Seen, picture: Snapshot, asked: Asked) -> list[Reason]:
    """Return the reasons, the most frequent first."""
    now = store.clock.wall()
    more = {LOCKS: book_seen(picture.gates)}
    lanes = facts_seen(Known(now, store.settings, asked.requests, asked.ends, more), picture)
    judged = _Judge(now, seen, lanes, asked)
    counts: Counter[tuple[str, str]] = Counter()
    kinds: dict[tuple[str, str], set[tuple[str, str]]] = {}
    alike: Counter[tuple[str, str, str]] = Counter()
    for name, card in seen.queued:
        if judged.waits_with_its_lane(name, card):
            alike[card.state, card.type, card.lane] += 1
        else:
            reason = judged.reason(name, card)
            counts[reason] += 1
            kinds.setdefault(reason, set()).add((card.state, card.type))
    for (state, kind, lane), number in alike.items():
        reason = judged.of_lane(kind, lane, ready=state == State.READY)
        counts[reason] += number
        kinds.setdefault(reason, set()).add((state, kind))
    return [Reason(text, count, gate, _query(kinds[gate, text])) for (gate, text), count in counts.most_common()]


def _query(kinds: Iterable[tuple[str, str]]) -> Query:
    states = tuple(sorted({state for state, _ in kinds}, reverse=True))
    return Query(states=states, types=tuple(sorted({kind for _, kind in kinds if kind})))


class _Judge:
    """One look at all tasks that wait."""

    def __init__(self, now: float, seen: Seen, lanes: LaneFacts, asked: Asked) -> None:
        self._now, self._seen, self._lanes, self._asked = now, seen, lanes, asked
        self._of_lane: dict[tuple[str, bool], tuple[str, str]] = {}

    def waits_with_its_lane(self, name: str, card: Card) -> bool:
        """Whether the task has nothing to wait for that its lane has not: nearly all of a deep backlog have none."""
        if card.state == State.READY:
            return True
        return card.attempt == 1 and card.lane != "" and not card.conditional and name not in self._asked.about

    def reason(self, name: str, card: Card) -> tuple[str, str]:
        """The gate that speaks, and its words."""
        if not card.lane:
            return "", RETURNED
        conditions = self._seen.conditions.get(name, NO_CONDITIONS)
        if card.conditional and name not in self._seen.conditions:
            return "", NOT_READ
        requested = self._asked.about.get(name, ())
        rest_s = self._rest_s(card)
        if conditions is not NO_CONDITIONS or requested or rest_s > 0:
            facts = Facts(
                self._now,
                self._parent,
                rest_s,
                name,
                card.type,
                type=self._lanes.of(card.lane),
                more=self._lanes.of(card.lane).more,
                order=card.file.split(".", 2)[1] if card.file else "",
                requested=requested,
                file=card.file,
            )
            verdict = judge(conditions, facts)
            if isinstance(verdict, Wait | Refuse):
                return verdict.gate, _OWN.get(verdict.gate, verdict.reason)
        return self.of_lane(card.type, card.lane, ready=False)

    def of_lane(self, kind: str, lane: str, *, ready: bool) -> tuple[str, str]:
        """What a lane waits for."""
        known = self._of_lane.get((lane, ready))
        if known is None:
            verdict: Verdict = judge_type(kind_in(lane) or kind, self._lanes.of(lane), ready=ready)
            said = ("", READY if ready else TURN)
            known = (verdict.gate, verdict.reason) if isinstance(verdict, Wait | Refuse) else said
            self._of_lane[lane, ready] = known
        return known

    def _rest_s(self, card: Card) -> float:
        name = parse_task(card.file) if card.attempt > 1 else None
        if name is None or not name.delay_ms:
            return 0.0
        return max(0.0, name.delay_ms / 1000 - (self._now - (card.since or self._now)))

    def _parent(self, wanted: str) -> Parent:
        batch = batch_in(wanted)
        if batch is not None:
            still = self._seen.batches.get(key(batch))
            return Parent.UNKNOWN if still is None else Parent.OPEN if still else Parent.COMPLETED
        state = self._seen.state(key(wanted))
        return parent_in(State(state)) if state else Parent.UNKNOWN
