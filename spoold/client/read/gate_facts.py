"""Why tasks wait, for `explain`, `ls` and views: what the gates decide by, as a client can see it, and the gates,
asked about many tasks. The facts are counted resources, the requests that stand, the state of what a task waits for,
and what tasks lend while they wait.

Law: looks and never touches. The figures are those of the leader's last snapshot; one that is missing or cannot be
read counts as 0, and the leader alone decides by its own count. A batch that a task waits for costs a read of each of
its tasks, and of all other tasks of the spool. That a task wants its slot back is what its loan in control/ says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spoold.client.read.histories import vanished
from spoold.client.read.selecting import select
from spoold.client.read.task_file import read_task
from spoold.client.read.task_info import read_content, text_in
from spoold.client.spool.standing_requests import told
from spoold.protocol import codec, layout
from spoold.protocol.agent_fields import MERGE
from spoold.protocol.amount import amount, some
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.lanes import Lane, kind_in, own_lane, parse_lane
from spoold.protocol.lifecycle import ENDED, State
from spoold.protocol.names import TaskName, is_task, key, parse_task, urgency_in
from spoold.protocol.request import Request
from spoold.protocol.settings import Settings
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.task import Task
from spoold.protocol.timestamps import moment
from spoold.rules.answers.selection import Selection
from spoold.rules.answers.task_facts import Case, Seen
from spoold.rules.cluster.node_status import ASLEEP, bounded
from spoold.rules.gates import breaker_gate, budget_gate, limit_gates, lock_gate, lock_holders
from spoold.rules.gates.budget_gate import First, book_seen
from spoold.rules.gates.budget_usage import NOTHING
from spoold.rules.gates.budget_usage import Asked as AskedUnits
from spoold.rules.gates.dependency_gates import batch_in
from spoold.rules.gates.facts import Conditions, Facts, Known, LaneFacts, Parent, TypeFacts, parent_in
from spoold.rules.gates.gate import Pass, Verdict
from spoold.rules.gates.limit_gates import told_of_lent
from spoold.rules.gates.lock_holders import comes_before, turn_of
from spoold.rules.gates.registry import conditions_of, gather, judge, judge_type, parents_of
from spoold.rules.gates.resources import (
    BREAKER,
    CLASS,
    LIMIT,
    QUOTA,
    RATE,
    TYPE,
    UNKNOWN,
    Capacity,
    Company,
    KeptUnits,
    Resources,
    shares_of,
    stock_seen,
)
from spoold.rules.gates.standing_requests import Requested
from spoold.rules.scheduling.fair_shares import share_of, whose_turn
from spoold.rules.scheduling.fallback_types import lanes_instead, lists_of
from spoold.rules.workers.matching import unfit
from spoold.rules.workers.readiness import is_drained
from spoold.store import control, heartbeats
from spoold.store.existence import Unreadable, names_shown, readable
from spoold.store.lanes_and_archive import list_lanes, list_tasks
from spoold.store.store import Store
from spoold.store.task_location import Located, locate_many

NOBODY_ELSE: Mapping[str, Company] = {}
# So many lanes are looked at for tasks that use the same.
LANES_LISTED = 50
# So many claims of a worker are read for what they use.
CLAIMS_READ = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests that stand; ends: of those that end by themselves (s since 1970); about: those about one task, by
    its key.
    """

    requests: tuple[Request, ...] = ()
    ends: Mapping[Request, float] = field(default_factory=dict)
    about: Mapping[str, tuple[Requested, ...]] = field(default_factory=dict)


def asked_now(store: Store, ids: Iterable[str] | None = None, requests: Iterable[Request] | None = None) -> Asked:
    """Read the requests that stand. ids: the tasks whose own requests are read, None for all; requests: as already
    listed. Errors: OSError.
    """
    standing = tuple(control.list_requests(store.fs) if requests is None else requests)
    mine: dict[str, list[Request]] = {}
    for request in standing:
        mine.setdefault(key(request.target), []).append(request)
    wanted = mine.keys() if ids is None else mine.keys() & set(map(key, ids))
    about = {target: control.about_task(store.fs, target, mine[target]) for target in wanted}
    return Asked(standing, control.ends_of(store.fs, standing), about)


class Gates:
    """The gates, asked about many tasks at one moment: what is true of all tasks of a lane is worked out once."""

    def __init__(
        self,
        now: float,
        settings: Settings,
        asked: Asked,
        snapshot: Snapshot | None,
        parent: Callable[[str], Parent],
    ) -> None:
        """now: s since 1970; snapshot: the last one, None for none; parent: the state of what a task waits for."""
        self._now, self._asked, self._parent = now, asked, parent
        self._seen = facts_seen(now, settings, asked, snapshot)
        self._lanes: dict[str, TypeFacts] = {}
        self._verdicts: dict[tuple[str, bool], Verdict] = {}

    def of_lane(self, lane: str, *, ready: bool = False) -> Verdict:
        """Return what holds every task of a lane; ready: of ready/."""
        if (lane, ready) not in self._verdicts:
            self._verdicts[lane, ready] = judge_type(kind_in(lane), self._facts(lane), ready=ready)
        return self._verdicts[lane, ready]

    def of_waiting(
        self, lane: str, conditions: Conditions, task: str = "", file: str = "", rest_s: float = 0
    ) -> Verdict:
        """Return what holds a task of waiting/, its own gates first. task: its key; file: its name there, without
        both any task of the lane; rest_s: as of `rest_of`.
        """
        facts = self._facts(lane)
        verdict = judge(
            conditions,
            Facts(
                self._now,
                self._parent,
                rest_s,
                task,
                kind_in(lane),
                type=facts,
                more=facts.more,
                order=file.split(".", 2)[1] if file else "",
                requested=self._asked.about.get(task, ()),
                file=file,
            ),
        )
        return self.of_lane(lane) if isinstance(verdict, Pass) else verdict

    def _facts(self, lane: str) -> TypeFacts:
        if lane not in self._lanes:
            self._lanes[lane] = self._seen.of(lane)
        return self._lanes[lane]


def rest_of(name: TaskName, since: float | None, now: float) -> float:
    """Return how long (s) the retry delay of a task still lasts. since: when the attempt before it ended, None where
    that is not known; now: both in s since 1970.
    """
    delay_s = name.delay_ms / 1000
    return delay_s if since is None or not delay_s else max(0.0, since + delay_s - now)


def facts_seen(
    now: float,
    settings: Settings,
    asked: Asked,
    snapshot: Snapshot | None,
    file: str = "",
    first: Iterable[First] = (),
    company: Mapping[str, Company] = NOBODY_ELSE,
) -> LaneFacts:
    """Return the facts of lanes, with the stock that the last snapshot shows; None: of no snapshot.

    file: the name in waiting/ of the one task that is asked about: what those before it want, or is kept for them,
    counts; first and company: of `first_seen` and `company_seen`.
    """
    resources = Resources(settings)
    types: Mapping[str, Mapping[str, int]] = snapshot.types if snapshot is not None else {}
    gates: Mapping[str, Mapping[str, Any]] = snapshot.gates if snapshot is not None else {}
    used = {f"{TYPE}{kind}" if kind else UNKNOWN: counts.get("active", 0) for kind, counts in types.items()}
    due = {f"{TYPE}{kind}": _due(counts) for kind, counts in types.items() if kind}
    doubtful: dict[str, int] = {}
    opens: dict[str, float] = {}
    for gate, prefix in (("limit", LIMIT), ("rate", RATE)):
        for name, said in _rows(gates, gate):
            used[f"{prefix}{name}"] = _whole(said.get("used"))
            doubtful[f"{prefix}{name}"] = _whole(said.get("doubtful"))
            due[f"{prefix}{name}"] = _due(said)
            if (opened := moment(said.get("opens"))) is not None:
                opens[f"{prefix}{name}"] = opened
    breakers = breaker_gate.book_seen(gates)
    more = {budget_gate.NAME: book_seen(gates, first), breaker_gate.NAME: breakers}
    if snapshot is not None:
        more[lock_gate.NAME] = lock_holders.book_seen(gates)
    known = Known(now, settings, asked.requests, asked.ends, more)
    capacity = dict(resources.capacity)
    for name, said in _rows(gates, "quota"):
        if "trying" in said:
            capacity[f"{QUOTA}{name}"] = Capacity(1, f"limit {name}", f"[limits.{name}]", most=0)
            used[f"{QUOTA}{name}"] = int(bool(said["trying"]))
    for kind, trying in breakers.trying.items():
        capacity[f"{BREAKER}{kind}"] = Capacity(1, f"type {kind}", f"[types.{kind}] breaker", most=0)
        used[f"{BREAKER}{kind}"] = int(bool(trying))
    classes = _rows(gates, "class")
    used |= {f"{CLASS}{name}": _whole(said.get("used")) for name, said in classes}
    due = {name: units for name, units in due.items() if units}
    due |= {f"{CLASS}{name}": units for name, said in classes if (units := _due(said))}
    nodes = snapshot.nodes if snapshot is not None else ()
    shares = shares_of(settings, sum(node.slots for node in nodes if node.state in ("idle", "working")))
    stock, lacked = stock_seen(capacity, used, doubtful), _wanted(gates, file)
    wanted = frozenset({*due, *lacked})
    stock = replace(stock, wanted=wanted, due=due, kept=_kept(gates, file), first=lacked)
    stock = replace(stock, shares=shares if classes else None, company=company)
    unserved = {name for name, _ in _rows(gates, limit_gates.WORKER)}
    return LaneFacts(known, resources, stock, gather(known), opens, unserved.__contains__)


def _kept(gates: Mapping[str, Mapping[str, Any]], file: str) -> dict[str, KeptUnits]:
    """Return the units that are kept back for tasks before this one."""
    found: dict[str, KeptUnits] = {}
    for name, said in gates.get("kept", {}).items():
        for row in said if isinstance(said, list | tuple) and file else ():
            waits = parse_task(str(row.get("file"))) if isinstance(row, dict) else None
            if waits is not None and waits.encode() < file:
                before = found.get(name, KeptUnits(0, waits.id))
                found[name] = replace(before, units=before.units + _whole(row.get("units")))
    return found


def _wanted(gates: Mapping[str, Mapping[str, Any]], file: str) -> dict[str, KeptUnits]:
    """Return what the first of the tasks before this one lacks of each resource."""
    found: dict[str, KeptUnits] = {}
    for name, said in _rows(gates, "wanted") if file else ():
        waits = parse_task(str(said.get("file")))
        if waits is not None and waits.encode() < file:
            found[name] = KeptUnits(_whole(said.get("units")), waits.id)
    return found


def _rows(gates: Mapping[str, Mapping[str, Any]], gate: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, said) for name, said in gates.get(gate, {}).items() if isinstance(said, dict)]


def _due(said: Mapping[str, Any]) -> int:
    """Return how many units are to be freed for tasks that want them back; earlier leaders say what those use."""
    return _whole(said.get("due", said.get("back")))


def _whole(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def first_seen(store: Store, conditions: Conditions, kind: str, facts: TypeFacts, file: str) -> list[First]:
    """Return what is known of the tasks before this one that wait for the same budgets. Errors: OSError."""
    names = {name.id: name for one in budget_gate.heads(conditions, kind, facts.more) if (name := parse_task(one))}
    before = {task_id: name for task_id, name in names.items() if name.encode() < file}
    found: list[First] = []
    for task_id, located in locate_many(store, before).items() if before else ():
        with contextlib.suppress(BadFile, Unreadable, FileNotFoundError), readable(located.path):
            task = codec.load_task(store.fs.read(located.path), located.path)
            its = conditions_of(task)
            asked = its.asks(budget_gate.NAME)
            mine = asked if isinstance(asked, AskedUnits) else NOTHING
            found.append(First(before[task_id].encode(), task_id, task.kind, mine, child=its.child))
    return found


def company_seen(store: Store, facts: TypeFacts, name: TaskName, *, waits: bool) -> dict[str, Company]:
    """Return who else uses the counted resources of a task. Lists at most LANES_LISTED lanes of each directory.

    facts: those of its lane; waits: it is in waiting/, so that those before it there count, too. Errors: OSError.
    """
    mine = {one for one in facts.uses if one in facts.stock.capacity or one.startswith(CLASS)}
    resources, place = Resources(store.settings), (name.rank, name.order)
    found = dict.fromkeys(mine, Company())
    for directory in (layout.READY, *([layout.WAITING] if waits else ())) if mine else ():
        lanes = [lane for lane in list_lanes(store.fs, directory) if mine & resources.uses(lane).keys()]
        for lane in lanes[:LANES_LISTED]:
            uses = resources.uses(lane)
            others = list_tasks(store.fs, layout.join(directory, lane), set()).values()
            before = sum((other.rank, other.order) < place for other in others) if directory == layout.WAITING else 0
            ready = tuple(other.id for other in others) if directory == layout.READY else ()
            for one in mine & uses.keys():
                so_far, units = found[one], uses[one] * len(ready)
                ids = (*so_far.ready, *ready)
                more = len(lanes) > LANES_LISTED
                found[one] = Company(so_far.units + units, ids, so_far.ahead + before, more)
    return found


# All that `explain` has to know of one task that waits or is ready.


class Queued:
    """A look at the task. requests: all that stand; dead: the nodes that are not alive."""

    def __init__(
        self,
        store: Store,
        located: Located,
        name: TaskName,
        requests: Collection[Request],
        picture: Snapshot,
        dead: Collection[str],
    ) -> None:
        self._store, self._located, self._name = store, located, name
        self._requests, self._picture, self._dead = requests, picture, dead

    def case(self, case: Case, since: float | None) -> Case:
        """Return the case with what the gates and the workers say. since: as of `rest_of`. Errors: OSError."""
        lane, name, batch = parse_lane(self._located.lane), self._name, None
        try:
            task = read_task(self._store, self._located.path)
            batch = task.batch
            case = with_parents(case, self._store, task)
            case = replace(case, above=waiting_above(self._store, task), repo=_repo_of(task))
            lane = lane or task.lane  # attempts that ran out of memory may have raised its demand
        except BadFile as error:
            case = replace(case, problem=error)
        if lane is None:
            return case
        seen = (case.now, self._store.settings, asked_now(self._store, (), self._requests), self._picture)
        file, home = name.encode(), own_lane(lane.encode())
        facts = facts_seen(*seen, file)
        waits, own = self._located.state is not State.READY, facts.of(lane.encode())
        first = first_seen(self._store, case.conditions, lane.type, own, file) if waits else []
        if first or not isinstance(judge_type(lane.type, own, ready=not waits), Pass):
            company = company_seen(self._store, own, name, waits=waits)
            facts = facts_seen(*seen, file, first, company)
        case = self._with_workers(self._with_lane(case, lane, name), lane)
        awake = [seen.capabilities for seen in case.workers if seen.alive and not (seen.draining or seen.asleep)]
        others = lanes_instead(lane.encode(), lists_of(awake))
        return replace(
            case,
            type=facts.of(lane.encode()),
            home=facts.of(home) if lane.instead_of else None,
            others=tuple((kind_in(other), facts.of(other)) for other in others),
            asked=told(self._store, self._requests),
            rest_s=rest_of(name, since, case.now),
            file=file,
            turn=self._turn(batch, case.now) if waits else "",
            disk=self._store.room(),
        )

    def _turn(self, batch: str | None, now: float) -> str:
        """Whose turn it is, and when that of this task comes. Errors: OSError."""
        settings, owner = self._store.settings.fair, None
        if settings.by == "owner" and "fair" in self._picture.gates:
            owner = self._store.fs.stat(self._located.path).owner
        return whose_turn(self._picture.gates, share_of(settings, batch, owner), now)

    def _with_lane(self, case: Case, lane: Lane, name: TaskName) -> Case:
        ready = self._tasks_in(layout.READY, lane)
        waits = self._located.state is State.WAITING
        queue = self._tasks_in(layout.WAITING, lane) if waits else []
        mine, turn = urgency_in(name.encode()), turn_of(name.encode())
        ahead = sum(urgency_in(file) < mine for file in (queue if waits else ready))
        locks = case.conditions.asks(lock_gate.NAME) is not None
        in_line = sum(comes_before(file, turn) for file in queue) if locks else 0
        return replace(case, lane=lane, ahead=ahead, in_line=in_line, standing=len(ready))

    def _tasks_in(self, directory: str, lane: Lane) -> list[str]:
        """The names of the tasks of a lane; they are not taken apart, since there may be a million."""
        return [file for file in names_shown(self._store.fs, layout.join(directory, lane.encode())) if is_task(file)]

    def _with_workers(self, case: Case, lane: Lane) -> Case:
        nodes = [beat for _, beat in sorted(heartbeats.read_all(self._store.fs).items()) if beat.role == "worker"]
        seen = [self._seen(beat, can, lane) for beat in nodes if (can := beat.capabilities) is not None]
        mute = [beat.node for beat in nodes if beat.capabilities is None and beat.node not in self._dead]
        return replace(case, workers=tuple(seen), mute=tuple(mute))

    def _seen(self, beat: Heartbeat, can: Capabilities, lane: Lane) -> Seen:
        """A worker, with its claims as they are now: a beat may be some seconds old."""
        alive = beat.node not in self._dead
        claims = list_tasks(self._store.fs, layout.join(layout.CLAIMED, beat.node), set()) if alive else {}
        hungry = (lane.cpus or lane.mem_mb or lane.gpus) and unfit(lane, can) is None
        return Seen(
            beat.node,
            can,
            slots=beat.slots,
            running=len(claims) - sum(run.lent for run in beat.running),
            alive=alive,
            draining=beat.status == "draining" or is_drained(beat.node, self._requests),
            asleep=beat.at if beat.status == ASLEEP else "",
            lanes=tuple(self._lanes(beat.node, list(claims))) if hungry else (),
            notes=bounded(beat.notes),
            avoids=beat.avoids,
            keeps=beat.keeps,
        )

    def _lanes(self, worker: str, names: list[str]) -> list[Lane]:
        lanes = []
        for path in (layout.claimed(worker, file) for file in sorted(names)[:CLAIMS_READ]):
            with contextlib.suppress(BadFile, FileNotFoundError), readable(path):
                lanes.append(codec.load_task(self._store.fs.read(path), path).lane)
        return lanes


def with_parents(case: Case, store: Store, task: Task) -> Case:
    """Return the case with the state of all tasks that this one waits for. Errors: OSError."""
    conditions = conditions_of(task)
    parents, places = parents_seen(store, parents_of(conditions))
    return replace(case, conditions=conditions, parents=parents, places=places)


def _repo_of(task: Task) -> str:
    """Return the repository that the input of a merge names; '' for any other task."""
    said = task.input.get("repo") if task.kind == MERGE and isinstance(task.input, dict) else None
    return legible(said)[:300] if isinstance(said, str) else ""


# The state of what a task waits for: other tasks, and batches.


NAMED = 3


def parents_seen(store: Store, wanted: Iterable[str]) -> tuple[dict[str, Parent], dict[str, str]]:
    """Return the state of each of these parents, and its place in words. Errors: OSError."""
    batches = {parent: batch for parent in wanted if (batch := batch_in(parent)) is not None}
    tasks = set(wanted) - batches.keys()
    found = locate_many(store, tasks) if tasks else {}
    parents = {p: parent_in(found[p].state) if p in found else Parent.UNKNOWN for p in tasks}
    places = {p: _place(where) for p, where in found.items()}
    gone = vanished(store, tasks - found.keys())
    places |= {p: f"{gone[key(p)]}, and another program removed its file" for p in tasks if key(p) in gone}
    for parent, batch in batches.items():
        parents[parent], places[parent] = _batch(store, batch)
    return parents, places


def _batch(store: Store, batch: str) -> tuple[Parent, str]:
    """The state of a batch, and how many of its tasks have not ended; without archived tasks if there are others."""
    found = list(select(store, Selection(batches=(batch,)))) or list(
        select(store, Selection(batches=(batch,)), archived=True)
    )
    if not found:
        return Parent.UNKNOWN, ""
    still = [one.id for one in found if one.state not in ENDED and not _waits_itself(store, one, batch)]
    if not still:
        return Parent.COMPLETED, ""
    return Parent.OPEN, f"not ended: {len(still)} of {amount(len(found), 'task')}: {some(still, NAMED)}"


def _waits_itself(store: Store, located: Located, batch: str) -> bool:
    """Whether a task of the batch waits for all others of it."""
    if located.name is None or not located.name.conditional:
        return False
    return key(text_in(read_content(store, located), "after_batch")) == key(batch)


def _place(located: Located) -> str:
    return f"claimed by {located.node}" if located.state is State.CLAIMED else located.state.value


# What tasks lend while they wait, for `explain`: what one wants back, in words, and who above another one waits.


def wanted_back(store: Store, located: Located, picture: Snapshot, now: float) -> tuple[str, ...]:
    """Return what a task waits for that wants back what it lent; empty where it cannot be read. now: s since 1970."""
    with contextlib.suppress(BadFile, Unreadable, FileNotFoundError), readable(located.path):
        lane = codec.load_task(store.fs.read(located.path), located.path).lane
        facts = facts_seen(now, store.settings, Asked(), picture).of(lane.encode())
        return tuple(told_of_lent(facts.uses, facts.stock)) or ("the leader's answer",)
    return ()


def waiting_above(store: Store, task: Task) -> tuple[str, ...]:
    """Return the keys of the tasks above a task that locks something whose slots are lent. Errors: OSError."""
    found: dict[str, bool] = {}
    lent = None
    above = task.parent if task.locks.write or task.locks.read else None
    while above and key(above) not in found:
        lent = lent_slots(store) if lent is None else lent
        located = locate_many(store, [above]).get(above)
        if located is None:
            break
        waits = located.state is State.CLAIMED and (key(located.id), located.attempt) in lent
        found[key(located.id)] = waits
        above = text_in(read_content(store, located), "parent")
    return tuple(task_key for task_key, waits in found.items() if waits)


def lent_slots(store: Store) -> set[tuple[str, int]]:
    """Return the attempts whose slot is lent, as their workers say: key and number."""
    return {
        (key(run.id), run.attempt)
        for beat in heartbeats.read_all(store.fs).values()
        for run in beat.running
        if run.lent
    }
