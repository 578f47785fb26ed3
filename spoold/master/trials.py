"""Limits whose quota was used up: when their time has come, one task tries, and then the others follow.

A quota request stands for each attempt that found the quota used up. While the time of one lies ahead, the limit is
closed. When all have passed, the limit is on trial: one task goes first. When it has ended, or says that the limit
serves it, the requests are listed anew, since its worker publishes the same report before it ends the attempt.
Without a new one the requests are removed, and the others follow, twice as many after each RAMP_S.

Law: the requests alone say that a limit is on trial; what is here is only which task tries. A new leader lets another
task try. May touch: control/.
"""

from __future__ import annotations

import math
from typing import Any

from spoold.master.asked import Asked
from spoold.master.desk import Desk
from spoold.master.rejecting import take_away
from spoold.master.starts import Trial
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, parse_moving, parse_task
from spoold.protocol.request import Request, Verb
from spoold.rules.gates.closing import closed_by
from spoold.rules.scheduling.ramp import RAMP_END_S, ramp
from spoold.rules.scheduling.resources import QUOTA, Capacity
from spoold.store import control


def begin(desk: Desk) -> dict[str, list[Request]]:
    """Begin trials of limits whose time has come; return the quota requests that stand, by limit."""
    standing: dict[str, list[Request]] = {}
    for request in desk.view.requests:
        if request.verb is Verb.QUOTA:
            standing.setdefault(request.target, []).append(request)
    for name, requests in standing.items():
        if all(desk.request_ends.get(request, math.inf) <= desk.step.now.wall for request in requests):
            desk.starts.try_out(name)
        else:
            desk.starts.close_again(name)
    return standing


def look(
    desk: Desk, standing: dict[str, list[Request]], opens: dict[str, float]
) -> tuple[dict[str, Capacity], dict[str, int]]:
    """Decide and end trials; return how many tasks of each limit on trial may start, and have started.

    standing: the requests from `begin`; opens: takes when (s since 1970) more may start. Errors: OSError.
    """
    starts, now = desk.starts, desk.step.now
    for name, trial in list(starts.trials.items()):
        if trial.since is not None:
            over = now.monotonic - trial.since >= RAMP_END_S
        else:
            over = name not in standing  # a person has opened it
        if over:
            starts.close_again(name)
        elif trial.since is None and name not in desk.store.settings.limits:
            _lift(desk, standing[name])  # it was taken out of the settings: nothing would try it
            starts.close_again(name)
        elif trial.since is None and trial.task is not None and _says(desk, trial.task):
            _decide(desk, name, trial, trial.task, standing[name])
        if trial.since is None and trial.task is None:
            ask(desk, trial.asked, f"{QUOTA}{name}")
    _note(desk)
    capacity, used = dict[str, Capacity](), dict[str, int]()
    # The end of a request is read later in a step; if it has passed by then, one task may start, too.
    for name, trial in ({name: Trial() for name in standing} | starts.trials).items():
        units, begun = 1, int(trial.task is not None)
        if trial.since is not None:
            units, left_s = ramp(name, max(0.0, now.monotonic - trial.since))
            begun, opens[f"{QUOTA}{name}"] = trial.begun, now.wall + left_s
        capacity[f"{QUOTA}{name}"] = Capacity(units, f"limit {name}", f"[limits.{name}]", most=0)
        used[f"{QUOTA}{name}"] = begun
    return capacity, used


def _decide(desk: Desk, name: str, trial: Trial, task: TaskName, requests: list[Request]) -> None:
    """Decide a trial whose task has ended, or says that it is served."""
    listed = control.list_requests(desk.store.fs)
    if any(r.verb is Verb.QUOTA and r.target == name and r not in requests for r in listed):
        desk.view.see_requests(listed)
        desk.starts.close_again(name)  # it found the quota used up again
    elif (desk.starts.serves(task) or not _for_nothing(desk, task)) and _lift(desk, requests):
        trial.went_well(desk.store.clock.monotonic())  # the looks of this step may have taken long
        desk.step.change()
    elif not runs(desk, task):
        trial.undecided()  # also where a request could not be removed: while it stands, one at a time goes


def _says(desk: Desk, task: TaskName) -> bool:
    """Whether there may be news of the attempt that tries."""
    return desk.starts.serves(task) or not runs(desk, task)


def _lift(desk: Desk, requests: list[Request]) -> bool:
    """Remove the requests; True when all are gone."""
    gone = [take_away(desk, control.path(request)) for request in requests]
    desk.view.see_requests(control.list_requests(desk.store.fs))
    return all(gone)


def ask(desk: Desk, asked: Asked, resource: str) -> None:
    """See which ready task is to try what the resource counts; if no worker takes it, let another lane be asked."""
    starts, now = desk.starts, desk.step.now.monotonic
    uses = desk.resources.starts
    standing = {task: lane for lane, task in starts.standing.values() if resource in uses(lane)}
    if not standing:
        asked.see_none()
        return
    task = asked.task if asked.task in standing else next(iter(standing))
    asked.see(standing[task], task, now)
    if not asked.in_vain(now, desk.store.settings.heartbeat.interval_s):
        return
    lanes = desk.backlog.lanes()
    others = [n for n in lanes if resource in uses(n) and n != asked.lane and not desk.fleet.unserved(n)]
    if asked.pass_on(others):
        desk.step.change()


def _note(desk: Desk) -> None:
    """Note in the journal which limits have closed or opened, and why; not of names that are no limits.

    Errors: OSError.
    """
    closed = closed_by(desk.view.requests, desk.request_ends, desk.step.now.wall)
    there = (frozenset(closed) | desk.starts.trying().keys()) & desk.store.settings.limits.keys()
    shut, opened = desk.starts.see_shut(there)
    for name in shut:
        verb = Verb.QUOTA if name not in closed or closed[name].quota else Verb.CLOSE
        request = next((one for one in desk.view.requests if (one.verb, one.target) == (verb, name)), None)
        reason = "" if request is None else control.read(desk.store.fs, request).reason
        why: dict[str, Any] = {"why": reason} if reason else {}
        desk.journal.note("LIMIT_CLOSED", limit=name, by="quota" if verb is Verb.QUOTA else "request", **why)
    for name in opened:
        desk.journal.note("LIMIT_OPENED", limit=name)


def runs(desk: Desk, task: TaskName) -> bool:
    """Whether the attempt may still go on."""
    place = desk.view.place(key(task.id))
    if place is None or key(task.id) in desk.missing.keys:
        return key(task.id) in desk.missing.keys
    found = parse_task(place.name)
    return place.state in (State.READY, State.CLAIMED) and found is not None and found.attempt == task.attempt


def _for_nothing(desk: Desk, task: TaskName) -> bool:
    """Whether the attempt ended at no charge: it was handed back, or asked to be tried later."""
    place, entry = desk.view.place(key(task.id)), desk.backlog.get(key(task.id))
    if place is not None:
        name = parse_moving(place.name)
    else:
        name = entry.name if entry is not None else None
    return name is not None and (name.failures, name.crashes) == (task.failures, task.crashes)
