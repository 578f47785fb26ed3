"""Laws of leaders, broken: leadership, who is dead, admission, gates, what is remembered and what is forgotten."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from spoold.master.intake import admission_directories, batch_admission
from spoold.master.intake.batch_admission import Batches, Staging
from spoold.master.listing import refresh as listing
from spoold.master.people import requests
from spoold.master.state import rejecting
from spoold.master.state.leader_state import Desk
from spoold.master.state.leadership import Leadership, _path
from spoold.master.state.tree_view import EVERYTHING, Changes, Found, Place, View, Wanted, _parse_returned
from spoold.master.tasks import reaping, scheduler
from spoold.protocol import layout
from spoold.protocol.admission_names import parse_batch
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import LeaseName, key, parse_ended, parse_task
from spoold.rules.cluster import election
from spoold.rules.entry.admission import Admit
from spoold.rules.gates import dependency_gates, registry
from spoold.rules.gates.facts import TypeFacts
from spoold.rules.gates.resources import Stock
from spoold.store import control, heartbeats
from spoold.store.lanes_and_archive import list_lanes
from spoold.system.filesystem import FileSystem
from tests.sim.mutation import Mutations, Swap

leader = Mutations()


@leader.add("counters, not clocks", "A node is dead when its last beat is old by the leader's own clock.")
def reaping_by_wall_clock() -> list[Swap]:
    def stamp_is_old(desk: Desk, beat: Heartbeat | None) -> bool:
        if beat is None or not beat.at:  # what cannot be read has no stamp
            return False
        age_s = desk.step.now.wall - datetime.fromisoformat(beat.at).timestamp()
        return age_s >= desk.store.settings.heartbeat.dead_after_s

    def watch(desk: Desk, *_: Collection[str]) -> list[str]:
        read = {node: heartbeats.read(desk.store.fs, beat) for node, beat in desk.view.beats.items()}
        return sorted({n for n, beat in read.items() if stamp_is_old(desk, beat)} - {desk.store.writer})

    return [(reaping, "watch", watch)]


def _forgotten(try_rmdir: bool) -> list[Swap]:
    """A dead worker's claims are taken back once, and its directory is never looked at again."""
    watch, seen = reaping.watch, dict[int, set[str]]()

    def reap_once(desk: Desk, worker: str) -> bool:
        directory = layout.join(layout.CLAIMED, worker)
        for name, task in sorted(desk.view.claimed[worker].items()):
            reaping._take_back(desk, Place(State.CLAIMED, directory, name), task, worker, None, set)
        if try_rmdir:
            with contextlib.suppress(OSError):
                desk.store.fs.rmdir(directory)
        seen.setdefault(id(desk.store.fs), set()).add(worker)
        return True

    def watch_others(desk: Desk, *said: Collection[str]) -> list[str]:
        return [node for node in watch(desk, *said) if not any(node in forgotten for forgotten in seen.values())]

    return [(reaping, "_reap_claims", reap_once), (reaping, "watch", watch_others)]


@leader.add("the door is shut", "A dead worker's claims are taken back, and its directory is left as it is.")
def reaped_without_rmdir() -> list[Swap]:
    return _forgotten(try_rmdir=False)


@leader.add("the door is shut", "A dead worker's directory is removed if that works the first time, and forgotten.")
def rmdir_once_and_forget() -> list[Swap]:
    return _forgotten(try_rmdir=True)


@leader.add("the door is shut", "A new leader takes over what stands in another's door, and leaves the door open.")
def door_left_open() -> list[Swap]:
    def leave(desk: Desk, door: str) -> None:
        for name in desk.store.fs.list(door):
            if parse_task(name) or parse_batch(name):
                desk.store.move(Mover.LEADER, "RECEIVED", layout.join(door, name), desk.door.at(name))

    return [(admission_directories, "_shut", leave)]


@leader.add("one token", "A drop that names its id is admitted without going through the leader's own door.")
def admitted_past_the_door() -> list[Swap]:
    def admit(desk: Desk, drop: str, verdict: Admit) -> None:
        scheduler.place_admitted(desk, layout.join(layout.PENDING, drop), verdict, drop)

    return [(admission_directories, "admit", admit)]


@leader.add("durable before published", "The lines of a batch are published before they are durable.")
def batch_not_durable() -> list[Swap]:
    def expand(self: Batches, desk: Desk, under_way: Any) -> bool:
        try:
            lines = list(islice(under_way.lines, batch_admission.PER_STEP))
            for line in lines:
                if not desk.view.known(line.name.id):
                    self._staging.stage(desk, line)
            for staged in list(self._staging.lines):
                self._staging.publish(desk, staged)
            return len(lines) == batch_admission.PER_STEP or self._finish(desk, under_way.name)
        except BaseException:
            self._open = None
            raise

    return [(Batches, "_expand", expand)]


@leader.add("leadership is one token", "A leader renews by writing its token anew under the same name.")
def lease_rewritten() -> list[Swap]:
    swap = Leadership._swap

    def renew(self: Leadership, token: LeaseName, to: LeaseName, now: float) -> bool:
        if to.epoch != token.epoch:
            return swap(self, token, to, now)
        self._store.fs.write(_path(token), b"", durable=False)
        self.token, self._renewed_at = token, now
        return True

    return [(Leadership, "_swap", renew)]


@leader.add("leadership is one token", "A standby takes over by writing a new token and removing the old one.")
def takeover_without_swap() -> list[Swap]:
    swap = Leadership._swap

    def seize(self: Leadership, token: LeaseName, to: LeaseName, now: float) -> bool:
        if to.epoch == token.epoch:
            return swap(self, token, to, now)
        self._store.fs.write(_path(to), b"", durable=False)
        with contextlib.suppress(OSError):
            self._store.fs.unlink(_path(token))
        self.token, self._renewed_at = to, now
        return True

    return [(Leadership, "_swap", seize)]


@leader.add("a leader holds the token", "A master plans whether it holds the token or not.")
def plans_without_lease() -> list[Swap]:
    hold = Leadership.hold

    def always(self: Leadership, *args: Any) -> bool:
        hold(self, *args)
        return True

    return [(Leadership, "hold", always)]


@leader.add("(policy alone)", "A standby takes over at once: leaders change all the time.", harmless=True)
def standby_does_not_wait() -> list[Swap]:
    decide = election.decide

    def impatient(tokens: list[LeaseName], me: str, *, silent_s: float, **more: Any) -> election.Decision:
        # Not quite at once: two who take the token from each other at every step leave no time for any work.
        return decide(tokens, me, silent_s=math.inf if silent_s >= 1.0 else silent_s, **more)

    return [(election, "decide", impatient)]


@leader.add("a child starts after its parents", "The gate of dependencies is always open.")
def dependencies_skipped() -> list[Swap]:
    others = [gate for gate in registry.TASK_GATES if gate is not dependency_gates.COMPLETED]
    return [(registry, "TASK_GATES", others)]


@leader.add("limits hold under one leader", "The limit of a type is not asked.")
def limit_ignored() -> list[Swap]:
    facts = scheduler.lane_facts

    def unlimited(desk: Desk, lanes: Any) -> dict[str, TypeFacts]:
        found = facts(desk, lanes)
        return {lane: replace(fact, stock=Stock()) for lane, fact in found.items()}

    return [(scheduler, "lane_facts", unlimited)]


@leader.add("listed as tokens flow", "A leader that believes one listing lists against the flow.")
def listed_against_the_flow() -> list[Swap]:
    # Three listings in a row hardly ever miss the same token: that is the second line of defence, and down, too. With
    # that alone no law was broken in 150 seeds.
    def refresh(self: View, fs: FileSystem, wanted: Wanted = EVERYTHING) -> Changes:
        found = self._found
        self._differ(State.FAILED, layout.FAILED, self.failed, parse_ended, fs.list(layout.FAILED), found)
        self._differ(State.COMPLETED, layout.COMPLETED, self.completed, parse_ended, fs.list(layout.COMPLETED), found)
        self._differ(State.RETURNED, layout.RETURNED, self.returned, _parse_returned, fs.list(layout.RETURNED), found)
        self._refresh_branches(fs, State.CLAIMED, self.claimed, fs.list(layout.CLAIMED), found)
        self._refresh_branches(fs, State.READY, self.ready, list(list_lanes(fs, layout.READY)), found)
        self.pending = sorted(fs.list(layout.PENDING))
        self.requests, self.beats = control.list_requests(fs), heartbeats.list_beats(fs)
        found.changes.missing = [k for k, place in found.gone.items() if self.where.get(k) == place]
        self._found = Found()
        return found.changes

    return [(View, "refresh", refresh), (listing, "VANISHED_AFTER", 1)]


@leader.add("written once", "A line is staged once more while the file that was staged first may still be published.")
def line_staged_again() -> list[Swap]:
    def forgotten(self: Staging, _: Desk) -> bool:
        self.lines.clear()
        return True

    return [(Staging, "resolve", forgotten)]


@leader.add("one token", "Nobody asks whether the id of a drop is taken.")
def duplicates_not_checked() -> list[Swap]:
    return [(View, "known", lambda *_: False)]


@leader.add("discover by listing", "A task that cannot be opened just now is taken for one that does not exist.")
def unopened_twin_is_none() -> list[Swap]:
    duplicate, known = rejecting.judge_duplicate, View.known
    unopened: set[str] = set()

    def hasty(desk: Desk, drop: str, admit: Admit, new: Any) -> Any:
        verdict = duplicate(desk, drop, admit, new)
        if verdict is None:
            unopened.add(key(admit.name.id))
        return admit if verdict is None else verdict

    def seen(self: View, task_id: str) -> bool:
        return key(task_id) not in unopened and known(self, task_id)

    return [(rejecting, "judge_duplicate", hasty), (View, "known", seen)]


@leader.add("requests are carried out", "The leader removes a cancel without carrying it out.")
def cancel_ignored_by_leader() -> list[Swap]:
    return [(requests, "_cancel", lambda *_: True)]


@leader.add("no accepted task vanishes", "What was handed back is left where it is.")
def returned_left() -> list[Swap]:
    return [(scheduler, "place_returned", lambda _: None)]


@leader.add("gone is believed late", "A token that one listing does not show is forgotten at once.")
def missing_is_forgotten() -> list[Swap]:
    def forget(desk: Desk) -> None:
        for task_key in sorted(desk.missing.keys):
            desk.view.where.pop(task_key, None)
            desk.ended(task_key)
        desk.missing.keys.clear()

    return [(listing, "settle_missing", forget)]
