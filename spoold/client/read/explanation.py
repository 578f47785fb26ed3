"""Gathers the facts about one task, so that `rules.answers.why_not_running` can say why it is not running.

What a drop is, and what the gates and the workers say of a task that waits, `task_file` and `gate_facts` gather: each
is loaded only where the state asks for it.

Law: looks and never touches. It reads the task, its results and the claims of workers that might take it only.
Touches: the clock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection
from dataclasses import replace

from spoold.client.read.attempt_logs import ended, ending
from spoold.client.read.task_info import sent_back
from spoold.client.spool.living_nodes import Sleep
from spoold.client.spool.spool_status import judged_at, silent, status, sure_lease
from spoold.client.spool.waiting import read_result
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, NotFound
from spoold.protocol.event import Event
from spoold.protocol.lifecycle import State
from spoold.protocol.names import (
    TaskName,
    id_in,
    key,
    parse_events,
)
from spoold.protocol.request import Verb
from spoold.protocol.result import Code, Result
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.timestamps import moment
from spoold.rules.answers.task_facts import Case, Claim, Explanation
from spoold.rules.answers.why_not_running import explain as judge_case
from spoold.store import control, heartbeats, task_location
from spoold.store.contained_faults import told_of as fault_of
from spoold.store.path_conflicts import obstacle, refused_of
from spoold.store.store import Store
from spoold.store.task_location import Located, locate, locate_many
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem, NotRegularError
from spoold.system.host import Host

TRIES = 3


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
            if case.claim is None:
                return case
            from spoold.client.spool.offline_status import with_silence

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
        from spoold.client.read.task_file import with_drop

        return with_drop(self._base, self._store, self._located, self._picture.warnings)

    def _rejected(self) -> Case:
        reason = task_location.read_reason(self._store.fs, self._located.path)
        return replace(self._base, problem=task_location.problem_in(reason), young=reason.get("unfinished") is True)

    def _ended(self) -> Case:
        retried = self._located.state in (State.FAILED, State.SKIPPED) and self._asked(Verb.RETRY)
        case = replace(self._base, retried=retried)
        with contextlib.suppress(NotFound, BadFile):
            case = replace(case, last=ending(self._store, self._located, read_result(self._store, self._located)))
        if case.last is None:
            self._store.fs.stat(self._located.path)  # it may have gone to the archive since it was listed
        others = case.last is not None and case.last.code == Code.DEPENDENCY_FAILED
        if others or retried:
            from spoold.client.read.gate_facts import with_parents
            from spoold.client.read.task_file import read_task

            with contextlib.suppress(BadFile):
                task = read_task(self._store, self._located.path)
                case = replace(with_parents(case, self._store, task), batch=(task.batch or "") if others else "")
        return replace(case, origins=origins(self._store, self._located)) if others else case

    def _claimed(self) -> Case:
        from spoold.client.read.task_file import fault_in
        from spoold.rules.cluster.node_status import ASLEEP

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
            claim = replace(
                claim,
                since=run.since,
                progress=run.progress,
                progress_problem=run.progress_problem,
                frozen_s=run.frozen_s,
                lent=run.lent,
                back=self._back(),
                kind=run.type if run.instead_of else "",
            )
        elif self._located.name is not None:
            # Beats are some seconds apart; the worker's journal has a claim at once.
            claim = replace(claim, since=self._told_at(worker, "CLAIMED", self._located.name))
        case = replace(self._base, claim=claim, disk=self._store.room(), blocked=obstacle(fs, layout.RESULTS))
        if self._located.name is not None and (last := self._last_attempt(self._located.name)) is not None:
            case = replace(case, last=ended(last))
        return replace(case, problem=fault_in(self._store, self._located))

    def _back(self) -> tuple[str, ...]:
        if not self._asked(Verb.REGAIN):
            return ()
        from spoold.client.read.gate_facts import wanted_back

        return wanted_back(self._store, self._located, self._picture, self._base.now)

    def _asked(self, verb: Verb) -> bool:
        """Whether a request about this task stands."""
        return control.asks(self._store.fs, self._requests, verb, self._located.id)

    def _queued(self) -> Case:
        from spoold.client.read.gate_facts import Queued  # with all gates, which no other state needs

        name = self._located.name
        assert name is not None
        last, ended_at = self._last_attempt(name), ""
        if last is not None:
            ended_at = last.completed_at
        elif name.delay_ms:
            ended_at = self._told_at(self._base.leader or "", "WAITING", name)
        case = replace(self._base, last=None if last is None else ended(last))
        one = Queued(self._store, self._located, name, self._requests, self._picture, self._dead)
        return one.case(case, moment(ended_at))

    def _last_attempt(self, name: TaskName) -> Result | None:
        """The result of the attempt before this one; a worker that died left none."""
        if name.attempt == 1:
            return None
        from spoold.store.attempt_records import Ledger

        last = next(Ledger(self._store.fs).before(name.id, name.attempt), None)
        return last if last is not None and last.attempt == name.attempt - 1 else None

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
