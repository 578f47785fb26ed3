"""The claims of dead workers: each goes back for another attempt, or fails at its crash limit.

Law: a node is called dead only in a step that has listed everything. Reaping goes on until the worker's claim
directory is removed: only that blocks a claim that the network carries out late. All later moves of the dead worker
then find no source and no directory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache, partial

from spoold.master.listing.task_metadata import lanes_of
from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import has_completed, reject_directory, reject_file, reject_twin, take_away
from spoold.master.state.tree_view import Place
from spoold.protocol import layout
from spoold.protocol.agent_fields import is_errand
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import TaskName, is_node, key, parse_task
from spoold.protocol.request import Verb
from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules.attempts import retry_rule
from spoold.rules.attempts.attempt_costs import last_seen
from spoold.rules.attempts.attempt_outcome import worker_died
from spoold.rules.attempts.task_policy import retry_policy
from spoold.rules.gates.resources import RATE
from spoold.store import control, heartbeats
from spoold.store.attempt_records import ASIDE
from spoold.store.existence import names_in, stands
from spoold.store.path_conflicts import named, remove_link
from spoold.store.store import clear_directory


def reported(desk: Desk) -> set[str]:
    """Return the nodes that a request calls gone."""
    return {request.target for request in desk.view.requests if request.verb is Verb.REAP}


def watch(
    desk: Desk, asleep: Collection[str] = (), gone: Collection[str] = (), here: Collection[str] = ()
) -> list[str]:
    """Look at all beats; return the nodes that are dead, by silence, which their own host's report shortens.

    Errors: OSError.

    Heartbeats were listed, and this leader has just written: the look is trusted. No node is called dead in a step
    that has not listed everything, claim directories above all.
    asleep: nodes whose last beat says so. They are not reaped as long as there is nothing to take back.
    gone: masters of this host whose process has ended. (A worker's tasks may still have processes: its successor ends
    those first, and then reports it.)
    here: nodes that a request calls gone, and that run on this host: only silence counts of them.
    """
    present = [worker for worker in desk.view.claimed if is_node(worker)]
    if desk.step.listed.beats:
        # Of two machines that are one node the lower beat may be the one that moves: their sum changes in any case.
        shown = {node: sum(name.beat for name in names) for node, names in desk.view.standing.items()}
        desk.watch.look(shown, present, desk.step.now.monotonic, desk.store.clock.monotonic())
    silent = [node for node in desk.watch.dead() if node not in asleep or not _may_sleep(desk, node)]
    if returning := desk.watch.returning():
        away_s = desk.watch.absence.away_s
        desk.report.notice(
            f"this leader saw nothing of the share for {away_s:.0f} s; not back yet: {', '.join(returning)}. Their "
            "tasks stay with them for as long again (at most 5 min), because a lost connection is slow to come back"
        )
    told = {*reported(desk), *gone} - {desk.store.writer}
    confirmed = desk.watch.gone(told)
    # On a local disk all nodes are on one machine, whose word counts at once: unless this host finds the process.
    told = {*(confirmed if desk.store.fs.remote else told)} - {*here}
    dead = sorted({*silent, *told} - {desk.store.writer})
    if dead:
        desk.step.doubt()
    return dead if desk.step.listed.everything else []


def _may_sleep(desk: Desk, node: str) -> bool:
    """Whether a sleeper may go on sleeping: one without claims delays nothing. A claim that the network carried out
    late, into its directory, is taken back as from any silent worker. A sleeper is forgotten after the time for which
    dead clients are remembered.
    """
    return not desk.view.claimed.get(node) and desk.watch.silent_s(node) < desk.store.settings.retention.tmp_s


def reap(desk: Desk, dead: list[str]) -> None:
    """Take back the claims of dead nodes, then remove the rest of their files. Errors: OSError."""
    for node in desk.some(_still_silent(desk, dead), "dead"):
        if node in desk.view.claimed and not _reap_claims(desk, node):
            continue
        if not _remove_traces(desk, node):
            continue
        desk.journal.note("REAPED", node=node, silent_s=round(desk.watch.silent_s(node), 1))
        desk.step.change()


def _still_silent(desk: Desk, dead: list[str]) -> list[str]:
    """Return the nodes among `dead` that have not beaten again since their claims were listed.

    A worker that comes back beats, then gives its claims new names, then goes on with them. So for each name that was
    listed before this look, either the worker has not gone on under it, or its beat shows here.
    """
    if not dead:
        return []
    before = desk.view.standing
    desk.view.see_beats(heartbeats.list_standing(desk.store.fs))
    return [node for node in dead if desk.view.standing.get(node) == before.get(node)]


def _remove_traces(desk: Desk, node: str) -> bool:
    """Remove all files of a node but its claims; True when none is left. Errors: OSError."""
    tmp = layout.join(layout.TMP, node)
    try:
        if not clear_directory(desk.store.fs, tmp, partial(take_away, desk)) and not reject_file(desk, tmp):
            desk.report.notice(f"{tmp} of a dead node cannot be removed: it is not empty")
    except PermissionError:
        desk.view.blocked.add(tmp)
    for path in heartbeats.paths(desk.store.fs, node):
        if not take_away(desk, path):
            return False
    desk.view.see_beats({other: names for other, names in desk.view.standing.items() if other != node})
    requests = [r for r in desk.view.requests if r.target == node and r.verb in (Verb.REAP, Verb.DRAIN)]
    taken = [take_away(desk, control.path(request)) for request in desk.some(requests)]
    return all(taken) and len(taken) == len(requests)  # else those that are left call it gone in the next step


def _reap_claims(desk: Desk, worker: str) -> bool:
    """Take back the worker's claims; True once its claim directory is gone. Errors: OSError."""
    directory, last = layout.join(layout.CLAIMED, worker), desk.view.beats.get(worker)
    wanted = last is not None and desk.view.claimed[worker]
    beat = heartbeats.read(desk.store.fs, last) if last is not None and wanted else None
    outlived = cache(partial(_all_outlived, desk))  # of all nodes, so read once for all claims, and only if one asks
    for name, task in desk.some(sorted(desk.view.claimed[worker].items()), f"claims {worker}"):
        if reject_directory(desk, layout.join(directory, name)):
            continue  # only a file was ever claimed
        place = Place(State.CLAIMED, directory, name)
        desk.contained("claimed task", place, task, partial(_take_back, desk, place, task, worker, beat, outlived))
    if desk.step.cut:
        return False  # the next step goes on, after it has looked for a beat again
    try:
        held = names_in(desk.store.fs, directory)
    except PermissionError:
        desk.view.blocked.add(directory)
        return False
    for name in desk.some(sorted(held), f"held {worker}"):
        path, token = layout.join(directory, name), parse_task(name)
        if token is not None and has_completed(desk, token.id):
            reject_twin(desk, path, token.id)
        elif name.endswith(ASIDE):
            _clear_aside(desk, path)
    try:
        desk.store.fs.rmdir(directory)
    except NotADirectoryError:
        # A link or a file that another process put there: it can hold no claim, and its target is not ours.
        return remove_link(desk.store.fs, directory) or reject_file(desk, directory)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not stands(desk.store.fs, directory):
            return True
        # It still holds an entry, or one has come late: the next step lists it again.
        desk.report.notice(*_left_in(desk, directory, error))
        if worker in desk.view.beats and held and not any(map(parse_task, held)):
            _remove_traces(desk, worker)  # it has no task left: its last beat need not stay until people act
        return False
    return True


def _clear_aside(desk: Desk, path: str) -> None:
    """Remove entries that the worker set aside, as far as possible; it never sets aside a file. Errors: OSError."""
    fs = desk.store.fs
    with contextlib.suppress(FileNotFoundError):
        found = fs.stat(path)
        if found.kind == "dir":
            with contextlib.suppress(OSError):  # an empty one can be removed, also another user's
                fs.rmdir(path)
            if not found.shut:
                reject_directory(desk, path)
        elif found.kind != "file":
            fs.unlink(path)


def _left_in(desk: Desk, directory: str, error: OSError) -> list[str]:
    """Return why a claim directory could not be removed: the entries in it, with the fix. Errors: OSError."""
    said = f"{directory} of a dead worker cannot be removed"
    left = [layout.join(directory, name) for name in sorted(names_in(desk.store.fs, directory))]
    strange = [path for path in left if parse_task(path.rpartition("/")[2]) is None]
    if not strange:
        return [f"{said}: {error.strerror}"]
    fix = "its owner (or root) removes it"
    each = [f"{said}, since {path} stands in it; {fix} (`rm -r {path}`)" for path in strange]
    return named(each, f"things that are no task in {directory}")


def _all_outlived(desk: Desk) -> set[str]:
    """Return the attempts that were lost with a worker whose process beats again. Errors: OSError."""
    return {one for beat in heartbeats.read_all(desk.store.fs).values() for one in beat.outlived}


def _outlived(said: set[str], name: TaskName) -> int:
    """Return how many earlier attempts of the task are among these."""
    mine = [attempt for task, _, attempt in (one.rpartition(".") for one in said) if task == key(name.id)]
    return sum(attempt.isdecimal() and 1 <= int(attempt[:10]) < name.attempt for attempt in mine)


def _learn_lanes(desk: Desk, name: TaskName, lanes: list[str]) -> None:
    """Learn of which lanes a lost claim may be. Where it is not sure, its start counts for the rates of each."""
    desk.learned.learn_lanes(key(name.id), lanes)
    for lane in lanes if len(lanes) > 1 else ():
        for resource, units in desk.resources.starts(lane).items():
            if (rate := resource.removeprefix(RATE)) in desk.starts.windows and rate != resource:
                desk.starts.count(rate, key(name.id), desk.store.clock.monotonic(), units)


def _may_be_left(task: Task, worker: str) -> str:
    """Return what a person should know of the work of an agent whose worker died; '' for any other task."""
    if not is_errand(task.input):
        return ""
    brings = (
        "`spool workspace gc` there brings it to its remote, and so does the next task there with that repository"
    )
    return f"; an agent's work may be on {worker} alone: {brings}"


def _take_back(
    desk: Desk, place: Place, name: TaskName, worker: str, beat: Heartbeat | None, outlived: Callable[[], set[str]]
) -> None:
    ran, last = None, desk.view.beats.get(worker)
    if beat is not None and last is not None:
        with desk.faults.handling("last heartbeat", worker):  # of what it says only the account of the task is used
            ran = last_seen(beat, last, name.id, name.attempt)
    task = desk.task_at(place, name)
    if task is None:
        return
    if key(name.id) not in desk.learned.lanes:  # it may never have been seen ready: its start counts
        _learn_lanes(desk, name, lanes_of(desk, name, task, beat))
    outcome = worker_died(f"worker {worker} died or was cut off{_may_be_left(task, worker)}")
    policy = retry_policy(task, desk.store.settings)
    pardon = retry_rule.pardoned(name, _outlived(outlived(), name), policy) if name.crashes else 0
    verdict = retry_rule.decide(replace(name, crashes=name.crashes - pardon), outcome, policy)
    if isinstance(verdict, retry_rule.End):
        assert verdict.error is not None
        desk.fail(place, name, verdict.error, outcome.status, ran)
        return
    assert verdict.error is not None
    try:
        recorded = desk.record(place.path, name, (outcome.status, verdict.error), ran)
    except OSError as error:
        desk.tell(place.path, error)
        return
    if recorded is None:
        return  # the next step lists where it is
    back = layout.join(layout.RETURNED, verdict.name.encode_returned(desk.store.writer))
    if desk.went(desk.store.move(Mover.LEADER, "RETURNED", place.path, back), name.id):
        desk.recorded.pop(recorded.encode(), None)
        desk.report.ended(Code.WORKER_DIED)
        desk.journal.note("RETURNED", name.id, name.attempt, code=Code.WORKER_DIED, worker=worker)
