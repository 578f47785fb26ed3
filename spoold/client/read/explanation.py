"""Gathers the facts about one task, so that `rules.answers.why_not_running` can say why it is not running.

Law: looks and never touches. It reads the task, its results and the claims of workers that might take it only.
Touches: the clock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable
from dataclasses import replace

from spoold.client.read.attempt_logs import ended, ending
from spoold.client.read.gate_facts import (
    asked_now,
    company_seen,
    facts_seen,
    first_seen,
    parents_seen,
    rest_of,
    waiting_above,
    wanted_back,
)
from spoold.client.read.task_file import fault_in, read_task
from spoold.client.read.task_info import sent_back
from spoold.client.spool.living_nodes import Sleep
from spoold.client.spool.offline_status import with_silence
from spoold.client.spool.spool_status import judged_at, silent, status, sure_lease
from spoold.client.spool.standing_requests import told
from spoold.client.spool.waiting import read_result
from spoold.protocol import codec, layout
from spoold.protocol.admission_names import BatchName
from spoold.protocol.agent_fields import MERGE
from spoold.protocol.errors import BadFile, NotFound, legible
from spoold.protocol.event import Event
from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.lanes import Lane, kind_in, own_lane, parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import (
    UNIQUE,
    TaskName,
    concerns_us,
    id_in,
    is_our_batch,
    is_unique,
    key,
    parse_ended,
    parse_events,
)
from spoold.protocol.request import Verb
from spoold.protocol.result import Code, Result
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.task import Task
from spoold.protocol.timestamps import moment
from spoold.rules.answers.task_facts import Case, Claim, Explanation, Seen
from spoold.rules.answers.why_not_running import explain as judge_case
from spoold.rules.cluster.node_status import ASLEEP, bounded
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Accepted, Admit
from spoold.rules.gates.gate import Pass
from spoold.rules.gates.lock_gate import NAME
from spoold.rules.gates.lock_holders import turn_of
from spoold.rules.gates.registry import conditions_of, judge_type, parents_of
from spoold.rules.scheduling.fallback_types import lanes_instead, lists_of
from spoold.rules.workers.matching import unfit
from spoold.rules.workers.readiness import is_drained
from spoold.store import control, heartbeats, task_location
from spoold.store.attempt_records import read_record
from spoold.store.contained_faults import told_of as fault_of
from spoold.store.existence import Unreadable, readable
from spoold.store.lanes_and_archive import list_tasks
from spoold.store.leader_files import list_standing
from spoold.store.path_conflicts import WAITED_FOR, obstacle, refused_of
from spoold.store.store import Store
from spoold.store.task_location import Located, locate, locate_many
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem, NotRegularError
from spoold.system.host import Host

CLAIMS_READ, TRIES = 64, 3


def explain(store: Store, host: Host, clock: Clock, ref: str, *, sleep: Sleep = time.sleep) -> Explanation:
    """Return why the task is in its state, and what would change that. Errors: NotFound, OSError."""
    return judge_case(gather(store, host, clock, ref, sleep=sleep))


def gather(store: Store, host: Host, clock: Clock, ref: str, *, sleep: Sleep = time.sleep) -> Case:
    """Return the facts about the task. Errors: NotFound, OSError."""
    picture = status(store, host, clock, sleep=sleep)
    nodes, leads = heartbeats.read_all(store.fs), picture.master.leader is not None
    token = leads or sure_lease(store.fs, sleep) is not None
    dead = silent(store, host, clock, nodes, leads=leads, sleep=sleep)
    now = judged_at(store, clock, nodes) if leads else clock.wall()
    for _ in range(TRIES):
        located = locate(store, ref)
        with contextlib.suppress(FileNotFoundError):
            case = _Gathering(store, now, located, picture, dead).case()
            case = replace(case, token=token, read_only=store.read_only, twin=twin(store.fs, located))
            said = (*picture.warnings, *(note for beat in nodes.values() for note in beat.notes))
            case = replace(case, fault=fault_of(located.id, said))
            return with_silence(case, store, host, clock, nodes, sleep=sleep)
    raise NotFound(f"task {ref!r} keeps moving; ask again.")


class _Gathering:
    """One look at one task."""

    def __init__(self, store: Store, now: float, located: Located, picture: Snapshot, dead: Collection[str]) -> None:
        self._store, self._dead, self._located, self._picture = store, dead, located, picture
        self._requests = control.list_requests(store.fs)
        self._base = Case(
            id=located.id,
            order="" if located.name is None else located.name.order,
            requested=control.about_task(store.fs, located.id, self._requests),
            sent_back=sent_back(store, located, self._requests),
            state=State.RETURNED if located.path.startswith(f"{layout.RETURNED}/") else located.state,
            now=now,
            attempt=located.attempt,
            leader=picture.master.leader,
            standbys=picture.master.standbys,
            dead_after_s=store.settings.heartbeat.dead_after_s,
            window=store.settings.ready.window,
            grace_s=store.settings.drop.grace_s,
        )

    def case(self) -> Case:
        """The case. Errors: FileNotFoundError when the task moved meanwhile; OSError."""
        found = {State.PENDING: self._pending, State.REJECTED: self._rejected, State.CLAIMED: self._claimed}
        found |= dict.fromkeys((State.COMPLETED, State.FAILED, State.SKIPPED), self._ended)
        return found.get(self._located.state, self._queued)()

    def _pending(self) -> Case:
        fs, settings, drop = self._store.fs, self._store.settings, self._located.drop
        if not self._located.path.startswith(f"{layout.PENDING}/"):
            return replace(self._base, awaits=told_of(self._located.path, self._picture.warnings))
        before = sum(name < drop for name in fs.list(layout.PENDING) if concerns_us(name))
        self._base = replace(self._base, disk=self._store.room(), ahead=before)
        if not (drop.endswith(UNIQUE) or is_our_batch(drop)):
            with contextlib.suppress(OSError):
                self._base = replace(self._base, held=fs.has_writer(self._located.path) is True)
        seen = fs.stat(self._located.path)
        try:
            verdict = admission.judge_kind(drop, seen.kind, seen.size, settings) or self._judge(drop)
        except Unreadable as error:
            return replace(self._base, hidden=error)
        if isinstance(verdict, admission.Reject | admission.Young):
            return replace(self._base, problem=verdict.error, young=isinstance(verdict, admission.Young))
        return replace(self._base, awaits=awaited(fs, drop, verdict, self._picture.warnings))

    def _judge(self, drop: str) -> object:
        """Judge the drop as the leader does. Errors: Unreadable, OSError."""
        settings, path = self._store.settings, self._located.path
        with readable(path):
            data = self._store.fs.read(path, settings.drop.max_batch_bytes + 1)
        if drop.lower().endswith(".jsonl"):
            return admission.check(data, drop, settings)
        return admission.judge_content(drop, data, *admission.settle(drop, 0, 0), settings)

    def _rejected(self) -> Case:
        reason = task_location.read_reason(self._store.fs, self._located.path)
        return replace(self._base, problem=task_location.problem_in(reason), young=reason.get("unfinished") is True)

    def _ended(self) -> Case:
        case = replace(
            self._base, retried=self._located.state in (State.FAILED, State.SKIPPED) and self._asked(Verb.RETRY)
        )
        with contextlib.suppress(NotFound, BadFile):
            case = replace(case, last=ending(self._store, self._located, read_result(self._store, self._located)))
        with contextlib.suppress(BadFile):
            case = self._with_parents(case, self._read())
        if case.last is not None and case.last.code == Code.DEPENDENCY_FAILED:
            case = replace(case, origins=origins(self._store, self._located), batch=self._batch())
        return case

    def _batch(self) -> str:
        """The batch of the task; '' where it has none, or that cannot be read."""
        with contextlib.suppress(BadFile, FileNotFoundError):
            return self._read().batch or ""
        return ""

    def _claimed(self) -> Case:
        worker, task_id, fs = self._located.node, self._located.id, self._store.fs
        beat = heartbeats.read_all(fs).get(worker)
        claim = Claim(
            worker,
            # A node that sleeps holds nothing; a claim that the network delivered late is taken back.
            alive=beat is not None and beat.status != ASLEEP and worker not in self._dead,
            cancel=self._asked(Verb.CANCEL),
            ranked=self._asked(Verb.PRIORITY),
            stuck=refused_of(task_id, self._located.path, self._picture.warnings),
        )
        running, attempt = beat.running if beat is not None else (), self._located.attempt
        if run := next((r for r in running if (key(r.id), r.attempt) == (key(task_id), attempt)), None):
            back = wanted_back(self._store, self._located, self._requests, self._picture, self._base.now)
            claim = replace(
                claim,
                since=run.since,
                progress=run.progress,
                progress_problem=run.progress_problem,
                frozen_s=run.frozen_s,
                lent=run.lent,
                back=back,
                kind=run.type if run.instead_of else "",
            )
        elif self._located.name is not None:
            # Beats are some seconds apart; the worker's journal has a claim at once.
            claim = replace(claim, since=self._told_at(worker, "CLAIMED", self._located.name))
        case = replace(self._base, claim=claim, disk=self._store.room(), blocked=obstacle(fs, layout.RESULTS))
        if self._located.name is not None and (last := self._last_attempt(self._located.name)) is not None:
            case = replace(case, last=ended(last))
        return replace(case, problem=fault_in(self._store, self._located))

    def _asked(self, verb: Verb) -> bool:
        """Whether a request about this task stands."""
        return any(r.verb is verb and key(r.target) == key(self._located.id) for r in self._requests)

    def _queued(self) -> Case:
        name = self._located.name
        assert name is not None
        lane, case = parse_lane(self._located.lane), self._base
        try:
            task = self._read()
            case = self._with_parents(case, task)
            case = replace(case, above=waiting_above(self._store, task), repo=_repo_of(task))
            lane = lane or task.lane  # attempts that ran out of memory may have raised its demand
        except BadFile as error:
            case = replace(case, problem=error)
        if lane is None:
            return case
        seen = (self._base.now, self._store.settings, asked_now(self._store, (), self._requests), self._picture)
        file, home = name.encode(), own_lane(lane.encode())
        facts = facts_seen(*seen, file)
        waits, own = self._located.state is not State.READY, facts.of(lane.encode())
        first = first_seen(self._store, case.conditions, lane.type, own, file) if waits else []
        if first or not isinstance(judge_type(lane.type, own, ready=not waits), Pass):
            company = company_seen(self._store, own, name, waits=waits)
            facts = facts_seen(*seen, file, first, company)
        last = self._last_attempt(name)
        case = self._with_workers(self._with_lane(case, lane, name), lane)
        awake = [seen.capabilities for seen in case.workers if seen.alive and not (seen.draining or seen.asleep)]
        others = lanes_instead(lane.encode(), lists_of(awake))
        return replace(
            case,
            type=facts.of(lane.encode()),
            home=facts.of(home) if lane.instead_of else None,
            others=tuple((kind_in(other), facts.of(other)) for other in others),
            asked=told(self._store, self._requests),
            last=ended(last) if last is not None else None,
            rest_s=self._rest_s(name, last),
            file=file,
            disk=self._store.room(),
        )

    def _read(self) -> Task:
        return read_task(self._store, self._located.path)

    def _with_parents(self, case: Case, task: Task) -> Case:
        """The case with the state of all tasks that this one waits for."""
        conditions = conditions_of(task)
        parents, places = parents_seen(self._store, parents_of(conditions))
        return replace(case, conditions=conditions, parents=parents, places=places)

    def _with_lane(self, case: Case, lane: Lane, name: TaskName) -> Case:
        fs, lane_name = self._store.fs, lane.encode()
        ready = list_tasks(fs, layout.join(layout.READY, lane_name), set()).values()
        waits = self._located.state is State.WAITING
        queue = list_tasks(fs, layout.join(layout.WAITING, lane_name), set()) if waits else {}
        others, turn = queue.values() if waits else ready, turn_of(name.encode())
        ahead = sum((other.rank, other.order) < (name.rank, name.order) for other in others)
        locks = case.conditions.asks(NAME) is not None
        in_line = sum(turn_of(file) < turn for file in queue) if locks else 0
        return replace(case, lane=lane, ahead=ahead, in_line=in_line, standing=len(ready))

    def _last_attempt(self, name: TaskName) -> Result | None:
        """The result of the attempt before this one; a worker that died left none."""
        if name.attempt == 1:
            return None
        for found in map(parse_ended, sorted(self._store.fs.list(layout.RESULTS))):
            if found is not None and key(found.id) == key(name.id) and found.attempt == name.attempt - 1:
                return read_record(self._store.fs, layout.join(layout.RESULTS, found.encode()))
        return None

    def _rest_s(self, name: TaskName, last: Result | None) -> float:
        """Return how long (s) the retry delay still lasts, by the stamp of the node that ended the last attempt. The
        leader's clock says nearly the same; it counts from the moment when the leader saw the hand-back."""
        if not name.delay_ms:
            return 0.0
        stamp = last.completed_at if last is not None else self._told_at(self._base.leader or "", "WAITING", name)
        return rest_of(name, moment(stamp), self._base.now)

    def _told_at(self, writer: str, event: str, name: TaskName) -> str:
        """Return when a node wrote that event of this attempt; '' when its newest journal does not have it."""
        listed = (parse_events(file) for file in self._store.fs.list(layout.EVENTS))
        newest = max((events for events in listed if events is not None and events.writer == writer), default=None)
        if newest is None:
            return ""
        try:
            data = self._store.fs.read(layout.join(layout.EVENTS, newest.encode()))
        except (PermissionError, NotRegularError):
            return ""
        for line in reversed(data.splitlines()):
            if name.id.encode() in line and event.encode() in line:
                with contextlib.suppress(BadFile):
                    told = codec.load_model(Event, line, newest.encode())
                    if (told.event, told.task, told.attempt) == (event, name.id, name.attempt):
                        return told.at
        return ""

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


def _repo_of(task: Task) -> str:
    """Return the repository that the input of a merge names; '' for any other task."""
    said = task.input.get("repo") if task.kind == MERGE and isinstance(task.input, dict) else None
    return legible(said)[:300] if isinstance(said, str) else ""


# The batch in a leader's door that a drop waits for, as far as a client can see it.


def awaited(fs: FileSystem, drop: str, verdict: object, warnings: Iterable[str]) -> str:
    """Return a sentence on the batch that a sound drop waits for; '' where there is none. Errors: OSError.

    warnings: those of the leader; they name the batch that it cannot read.
    """
    if not _names_ids(drop, verdict):
        return ""
    unread = next((said for said in warnings if WAITED_FOR in said), "")
    if unread:
        return unread
    for found in list_standing(fs, set()):
        with contextlib.suppress(FileNotFoundError):
            if isinstance(found.name, BatchName) and fs.stat(found.path).kind == "file":
                return f"{found.path} may have an id that it names, and is not all tasks yet"
    return ""


def told_of(path: str, warnings: Iterable[str]) -> str:
    """Return the leader's warning about a path in its door; '' where it has none."""
    return next((said for said in warnings if path in said), "")


def _names_ids(drop: str, verdict: object) -> bool:
    """Whether the drop names an id that another one may have."""
    if isinstance(verdict, Accepted):
        return bool(verdict.named)
    task_id = verdict.task.id if isinstance(verdict, Admit) else None
    return task_id is not None and not is_unique(drop, task_id)


# The tasks with which a dependency failure began: the task to fix first is seldom the nearest.


TASKS_READ = 64


def origins(store: Store, located: Located) -> dict[str, str]:
    """Return the failed tasks that made this one fail and failed by themselves: id → code, '' where it is lost.

    Reads at most TASKS_READ tasks, the nearest first; of a chain its records name the first one. Errors: OSError from
    listing.
    """
    found: dict[str, str] = {}
    trail, seen = [located], {key(located.id)}
    for _ in range(TASKS_READ):
        if not trail:
            break
        here = trail.pop(0)
        code, origin = _code(store, here)
        behind = _failed_parents(store, here) if code == Code.DEPENDENCY_FAILED else []
        if len(behind) == 1 and origin is not None and origin.state is State.FAILED:
            behind = [origin]  # however long the chain is
        if not behind and here is not located:
            found[here.id] = code
        trail += [parent for parent in behind if key(parent.id) not in seen]
        seen |= {key(parent.id) for parent in behind}
    return found


def _code(store: Store, located: Located) -> tuple[str, Located | None]:
    """Return why a task failed, and where the task is with which its record says that this began."""
    with contextlib.suppress(BadFile, NotFound):
        error = read_result(store, located).error
        if error is not None:
            origin = locate_many(store, [error.origin]).get(error.origin) if error.origin else None
            return str(error.code), origin
    return "", None


def _failed_parents(store: Store, located: Located) -> list[Located]:
    with contextlib.suppress(BadFile, FileNotFoundError):
        needs = codec.load_task(store.fs.read(located.path), located.path).dependencies
        found = locate_many(store, needs)
        return [found[need] for need in needs if need in found and found[need].state is State.FAILED]
    return []


# The drop that was rejected because a task has its id.


def twin(fs: FileSystem, located: Located) -> BadFile | None:
    """Return why the last drop with this task's id was rejected; None where none was. Errors: OSError."""
    if located.state in (State.PENDING, State.REJECTED):
        return None
    wanted = key(located.id)
    for name in sorted(fs.list(layout.REJECTED), reverse=True):  # our names sort by age
        found = id_in(name.removesuffix(layout.REASON)) if name.endswith(layout.REASON) else None
        if found is not None and key(found) == wanted:
            return task_location.problem_in(task_location.read_reason(fs, layout.join(layout.REJECTED, name)))
    return None
