"""The claims of dead workers: each goes back for another attempt, or fails at its crash limit.

Reaping goes on until the worker's claim directory is removed: only that shuts the door on a claim that the network
carries out late. Whatever the dead worker still does then finds its sources and its directories gone.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from spoold.master.desk import Desk
from spoold.master.rejecting import reject_twin, take_away
from spoold.master.view import Place
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, is_node
from spoold.protocol.request import Verb
from spoold.protocol.result import Code
from spoold.rules import retry
from spoold.rules.outcome import worker_died
from spoold.rules.policy import retry_policy
from spoold.store import beats, control
from spoold.store.absence import stands
from spoold.store.lanes import list_tasks
from spoold.store.store import clear_directory


def watch(desk: Desk, asleep: Collection[str] = ()) -> list[str]:
    """Look at all beats; returns the nodes that are dead, by silence or by their own host's word. Errors: OSError.

    Heartbeats were listed, and this leader has just written: the look is trusted. Nobody is called dead in a step
    that has not listed everything, claim directories above all.
    asleep: nodes whose last beat says so. They are left in peace as long as there is nothing to take back.
    """
    present = [worker for worker in desk.view.claimed if is_node(worker)]
    if desk.listed.beats:
        desk.watch.look({node: name.beat for node, name in desk.view.beats.items()}, present, desk.now.monotonic)
    said = [request.target for request in desk.view.requests if request.verb is Verb.REAP]
    silent = [node for node in desk.watch.dead() if node not in asleep or not _may_sleep(desk, node)]
    dead = sorted({*silent, *said} - {desk.store.writer})
    desk.unsure = desk.unsure or bool(dead)
    return dead if desk.listed.everything else []


def _may_sleep(desk: Desk, node: str) -> bool:
    """A sleeper that holds nothing delays nobody. A claim that the network carried out late, into its directory, is
    taken back as from any silent worker; and who sleeps for longer than dead clients are remembered is forgotten.
    """
    return not desk.view.claimed.get(node) and desk.watch.silent_s(node) < desk.store.settings.retention.tmp_s


def reap(desk: Desk, dead: list[str]) -> None:
    """Take back what dead nodes held, then remove what they left. Errors: OSError."""
    for node in dead:
        worker = node in desk.view.claimed
        if worker and not _reap_claims(desk, node):
            continue
        if not _remove_traces(desk, node):
            continue
        if worker:
            desk.dead[node] = desk.now.monotonic
        desk.journal.note("REAPED", node=node, silent_s=round(desk.watch.silent_s(node), 1))
        desk.busy = True


def _remove_traces(desk: Desk, node: str) -> bool:
    """All that is left of a node but its claims; True when nothing is. Errors: OSError."""
    tmp = layout.join(layout.TMP, node)
    if not clear_directory(desk.store.fs, tmp, partial(take_away, desk)):
        desk.notices.append(f"{tmp} of a dead node cannot be removed: it is not empty")
    for path in beats.paths(desk.store.fs, node):
        if not take_away(desk, path):
            return False
    desk.view.beats.pop(node, None)
    requests = [r for r in desk.view.requests if r.target == node and r.verb in (Verb.REAP, Verb.DRAIN)]
    return all(take_away(desk, control.path(request)) for request in requests)


def _reap_claims(desk: Desk, worker: str) -> bool:
    """True once the worker's claim directory is gone."""
    directory = layout.join(layout.CLAIMED, worker)
    for name, task in sorted(desk.view.claimed[worker].items()):
        desk.breathe()
        _take_back(desk, Place(State.CLAIMED, directory, name), task, worker)
    for name, task in list_tasks(desk.store.fs, directory).items():
        if desk.has_completed(task.id):
            reject_twin(desk, layout.join(directory, name), task.id)
    try:
        desk.store.fs.rmdir(directory)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not stands(desk.store.fs, directory):
            return True
        # Something is still in it, or has come late: the next step lists it again.
        desk.notices.append(f"{directory} of a dead worker cannot be removed: {error.strerror}")
        return False
    return True


def _take_back(desk: Desk, place: Place, name: TaskName, worker: str) -> None:
    task = desk.task_at(place, name)
    if task is None:
        return
    outcome = worker_died(f"worker {worker} died or was cut off")
    verdict = retry.decide(name, outcome, retry_policy(task, desk.store.settings))
    if isinstance(verdict, retry.End):
        assert verdict.error is not None
        desk.fail(place, name, verdict.error, outcome.status)
        return
    assert verdict.error is not None
    recorded = desk.record(name, verdict.error, outcome.status)
    back = layout.join(layout.RETURNED, verdict.name.encode_returned(desk.store.writer))
    if desk.went(desk.store.move(place.path, back), name.id):
        desk.recorded.pop(recorded.encode(), None)
        desk.journal.note("RETURNED", name.id, name.attempt, code=Code.WORKER_DIED, worker=worker)
