"""Worker.step, which a daemon loops on and a simulator drives.

Law: a step takes in endings, beats, lists the claims, obeys requests, commits, adopts late claims, and claims. An
error of the environment ends it; the next one begins again from the listings. Nothing here keeps time for a task: the
supervisors do that, on a clock and in processes that never touch the share. A step beats on time however long it
takes, since it may beat before each of its calls to the share, as long as its lease lasts; and what has a size that
others decide has a Slice of its time.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from spoold.protocol import layout
from spoold.protocol.errors import ShutOut
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.names import TaskName, key
from spoold.protocol.request import Request, Verb
from spoold.rules.attempts import end_conditions
from spoold.rules.attempts.attempt_outcome import Outcome, handed_back
from spoold.runner.job import RunnerPort
from spoold.store import control
from spoold.store.journal import Journal
from spoold.store.own_heartbeat import Presence
from spoold.store.predecessors import Predecessors
from spoold.store.step_timing import OwnTime, Polling, Slice
from spoold.store.store import Store, make_directory
from spoold.system.beating_filesystem import Breather, breathing
from spoold.system.hardware import Inhibitor
from spoold.system.host import Host
from spoold.system.scratch import Scratch
from spoold.system.slot_loans import NO_LOANS, Loans
from spoold.worker.attempts.agent_messages import Telling
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.attempt_output import Losses
from spoold.worker.attempts.claims import Claims
from spoold.worker.attempts.lease import OwnLease, Resuming
from spoold.worker.attempts.lent_slots import Lending, Units, demand
from spoold.worker.attempts.reporting import OwnBudget, measured
from spoold.worker.attempts.settling import Settling, Writers
from spoold.worker.attempts.starting import Starting
from spoold.worker.attempts.worker_limits import Allowance
from spoold.worker.handlers.handler_notes import HandlerNotes
from spoold.worker.handlers.worker_config import WorkerConfig
from spoold.worker.intake.claiming import Claiming, Cooldown, Vacancies
from spoold.worker.intake.readiness import NOTHING_LACKS, HandlersFound, Offering, Pressure, Standing

log = logging.getLogger("spoold")

# After a commit that the share refused, trying again at once would only load it more.
REFUSED_RETRY_S = 0.5
# So many attempts of which it was not the fault that they were lost does a process remember.
OUTLIVED_MOST = 100
# How often (s) requests are listed, where that costs a round trip: while tasks run, and while none does.
REQUESTS_S, REQUESTS_IDLE_S = 0.5, 2.0
# A beat within a step that failed is tried again after so long (s).
BEAT_AGAIN_S = 0.5


class Worker:
    """One worker on one spool, under one id, from start to reaping or leaving."""

    def __init__(
        self,
        store: Store,
        host: Host,
        runner: RunnerPort,
        scratch: Scratch,
        config: WorkerConfig,
        can: Capabilities,
        slots: int,
        *,
        root: str,
        environ: Mapping[str, str],
        inhibitor: Inhibitor | None = None,
        writers: Writers | None = None,
        found: HandlersFound = NOTHING_LACKS,
        loans: Loans = NO_LOANS,
        outlived: tuple[str, ...] = (),
    ) -> None:
        """found: what of its handlers is on this machine (see `worker.handlers.availability`). outlived: the attempts
        that this process lost when it was taken for dead."""
        self._breather = Breather(store.clock)
        store.fs = breathing(store.fs, self._breather)
        self._own_time, self._beating, self._beat_at = OwnTime(store.clock, self._breather), False, 0.0
        self.store, self.host, self.runner, self.scratch, self.config = store, host, runner, scratch, config
        self.slots, self._offering, self._presence = slots, Offering(can, found), Presence(store, host, "worker")
        self._journal, self._units, self._lease = (journal := Journal(store)), Units(store), OwnLease(store.clock)
        store.faults.note = journal.note
        self._claims, self._allowance = Claims(store, journal), Allowance(store, journal, config.crowds)
        orders = (self._claims.doubt, self._allowance, slots, self._claims.order)
        self._claiming = Claiming(store, self._offering, *orders)
        self._lending = Lending(loans, runner, slots, config.max_lent, self._units, self._allowance.lets_back)
        self._telling = Telling(store, scratch, journal)
        parts = (runner, scratch, config, journal, self._lease, self._allowance, self._lending, self._telling)
        self._starting = Starting(store, *parts, root=root, environ=environ)
        self._settling = Settling(store, scratch, journal, writers, self._allowance, config.log_max_mb << 20)
        self._resuming = Resuming(store, runner, self._claims, journal, self._settling, self._lease)
        self._attempts, self._cooldown, self._polling = dict[str, Attempt](), Cooldown(store.clock), Polling(store)
        self.vacancies, self._losses = Vacancies(runner, slots, self._lending), Losses()
        self._standing, self._requests = Standing(store, host, config, inhibitor), list[Request]()
        self._status, self._heard, self.notes = "", False, tuple[str, ...]()
        self._left = HandlerNotes(config.handlers.values(), root, store.clock)
        self._outlived, self._predecessors = outlived, Predecessors(store, host, "worker")
        self._pressure, self._own_budget = Pressure(store, host, config, can.cpus), OwnBudget(scratch)

    def register(self, left: Collection[str] = ()) -> None:
        """Make this worker's directories, and report predecessors that are gone. Errors: OSError.

        left: those whose traces were found on this machine's disk; none of their processes is left. The claim
        directory comes before the first beat, so that a worker that shows itself can be given work.
        """
        self.store.open_tmp()
        make_directory(self.store.fs, layout.join(layout.CLAIMED, self.store.writer))
        with self.store.faults.current():
            self._beat(self.store.clock.monotonic())
            self._journal.note("WORKER_JOINED", slots=self.slots, host=self.host.identity().hostname)
            self._predecessors.step(left)

    def drain(self, grace_s: float) -> None:
        """Take nothing new; finish running tasks, or hand them back after the grace; later calls may shorten it."""
        self._standing.drain(grace_s)

    def fall_asleep(self) -> None:
        """Before the machine sleeps: finish running tasks, hand them back after the grace, then only beat."""
        self._standing.fall_asleep()

    def wake_up(self) -> None:
        """The machine is awake: go on under the same name, unless this worker was reaped meanwhile."""
        self._standing.wake_up()

    @property
    def asleep(self) -> bool:
        """Whether the spool knows that this worker sleeps, so that its machine may."""
        return self._status == "asleep"

    @property
    def outlived(self) -> tuple[str, ...]:
        """The attempts that this process has lost, with those that it runs, if it was taken for dead just now."""
        running = [f"{key(attempt.name.id)}.{attempt.name.attempt}" for attempt in self._attempts.values()]
        return (*self._outlived, *running)[-OUTLIVED_MOST:]

    @property
    def shortage(self) -> str | None:
        """The reason why nothing is started on a share that is full; None if it is not, as far as that was asked."""
        return self._pressure.why if self._pressure.full else None

    @property
    def running(self) -> list[Attempt]:
        """The attempts on this worker that are not committed yet."""
        return list(self._attempts.values())

    def step(self) -> WorkerStep:
        """Do one round. Errors: OSError (the next step goes on), ShutOut (reaped: begin again under a new name)."""
        now = self.store.clock.monotonic()
        try:
            with self.store.faults.current():
                return self._round(now)
        except ShutOut:
            if self.store.shared:
                self.host.doubt()
            raise
        finally:
            self._journal.flush()

    def close(self) -> None:
        """Leave: nothing runs here any more. Never raises OSError."""
        self.runner.close(self.config.kill_grace_s)
        self._standing.close()
        for attempt in self._attempts.values():
            self._journal.note("FENCED", attempt.name.id, attempt.name.attempt)
        self._journal.note("WORKER_LEFT")
        self._journal.flush(last=True)
        with contextlib.suppress(OSError):
            # Only a worker without claims removes its heartbeat; else its silence makes the leader reap.
            if self._claims.close():
                self._presence.leave()
        self.store.close_tmp()
        self.scratch.remove()

    def _round(self, now: float) -> WorkerStep:
        self._heard = False
        self._hear(now)
        if self._lease.over:  # a suspend, which `now` slept through
            self._claims.doubt()
            self._beat(now)
        elif self._presence.due(now) or self._status != self._word():
            self._beat(now)
        with contextlib.suppress(OSError):  # its silence shows, too
            self._predecessors.step()
        with self._breather.during(self._breathe):
            changed = self._work(now)
        logs, fitness = self._settling.logs, self._starting.fitness
        rooms = (
            *(self._losses, logs, self._standing, self._pressure, fitness, self._claiming, self._claims),
            *(self.scratch, self.store.faults),
        )
        notes = [note for room in rooms for note in room.notes]
        self.notes = (*notes, *(note for attempt in self._attempts.values() for note in attempt.notes))
        unsettled = any(attempt.over or attempt.next is not None for attempt in self._attempts.values())
        retry = now + REFUSED_RETRY_S if unsettled else math.inf
        due = min(self._presence.next_due(), self.vacancies.due(now, len(self._attempts)), retry)
        preparing = any(attempt.preparing is not None for attempt in self._attempts.values())
        if preparing or self._settling.left or self._status != self._word():
            due = now
        return WorkerStep(changed, due, self._standing.leaving and not self._attempts)

    def _work(self, now: float) -> bool:
        """Do the parts of a round that make calls to the share, in their order; return whether anything changed."""
        part = self._own_time.of
        with part("late claims"):
            late = self._late_claims()
        with part("resume"):
            resumed = self._resuming.resume(self._attempts.values()) if self._presence.alone else 0
        with part("requests"):
            self._hear_people(now, REQUESTS_S if self._attempts else REQUESTS_IDLE_S)
        with part("settle"):
            settled = self._settle() + self._lend()
        time = Slice(self.store.clock)
        with part("prepare"):
            if self._presence.alone:
                self._prepare(time)
        with part("adopt"):
            adopted = self._adopt(late, time) if self._is_mine(late) else 0
        with part("claim"):
            claimed = self._claim(now, time) if self._presence.alone else 0
        with part("scratch"):
            self.scratch.look()
        self._left.look()
        with part("logs"):
            self._settling.logs.bring_all(self._attempts.values())
        with part("standing"):
            self._standing.mind(now, bool(self._attempts))
        return bool(resumed or settled or adopted or claimed)

    def _breathe(self) -> None:
        """Beat within a step, if it is time. Not once the lease is over: then the claims have to be looked at first.

        An error is left to the beat of the next round. Errors: ShutOut.
        """
        now = self.store.clock.monotonic()
        if self._beating or now < self._beat_at or not self._presence.due(now) or self._lease.over:
            return
        self._beat_at = now + BEAT_AGAIN_S
        with contextlib.suppress(OSError):
            self._beat(now, within=True)

    def _word(self) -> str:
        return self._standing.word(bool(self._attempts))

    def _beat(self, now: float, *, within: bool = False) -> None:
        """Publish a beat and then extend the lease of running tasks, counted from before the beat was written."""
        before, standing = self.store.clock.boottime(), self._word()
        self._beating = True
        try:
            self._publish(now, standing or ("working" if self._attempts else "idle"), within=within)
        finally:
            self._beating = False
        self._status = standing
        self._lease.extend(before + self.store.settings.heartbeat.lease_s)
        self.runner.extend(self._lease.until)

    def _publish(self, now: float, word: str, *, within: bool) -> None:
        """Publish a beat. A fault in what tasks say of themselves costs their words, and no beat."""
        said = {
            "slots": self.slots,
            "capabilities": self._offering.now,
            "notes": self.notes,
            "left": self._left.told,
            "avoids": self._cooldown.avoids(),
            "keeps": self._claiming.keeps if self.vacancies.free(len(self._attempts)) > 0 else None,
            "outlived": self._outlived,
            **self._settling.told(),
            **measured(self._attempts.values(), self.runner, self.scratch, self.host, self.store.faults),
        }
        with self.store.faults.handling("heartbeat of", self.store.writer) as handling:
            self._presence.beat(now, word, within=within, **said)
        if handling.fault is not None:  # better a beat without the words of tasks than none
            said["running"] = tuple(
                run.model_copy(update={"progress": None, "progress_problem": ""}) for run in said["running"]
            )
            self._presence.beat(now, word, within=within, **said)

    def _late_claims(self) -> set[str]:
        """List the claims: stop attempts without one, return claims without an attempt. Errors: ShutOut."""
        if not self._claims.take(working=bool(self._attempts)):
            return set()
        try:
            claims = self._claims.list()
        except ShutOut:
            self._fence(set())
            raise
        if self._fence(claims):
            self._presence.doubt()  # while the directory stands, only a process that acts as this node takes a claim
        return self._claims.files(claims.difference(*(attempt.files for attempt in self._attempts.values())))

    def _hear_people(self, now: float, every_s: float) -> None:
        if self._heard:
            return
        if self._polling.take("requests", every_s * self._claims.patience(bool(self._attempts))):
            self._requests, self._heard = control.list_requests(self.store.fs), True
            self._allowance.hear(self._requests)
            self._units.hear(self._requests)
            self._telling.hear(self._requests)
        self._obey(self._requests, now)

    def _hear(self, now: float) -> None:
        endings = self.runner.poll()
        for ending in endings:
            attempt = self._attempts.get(key(ending.key.rpartition(".")[0]))
            with self.store.faults.handling("words of attempt", ending.key) as handling:
                if attempt is not None and attempt.key == ending.key:
                    attempt.ending = attempt.redacting.ending(ending)
                self._starting.fitness.hear(ending)
            if handling.fault is not None and attempt is not None and attempt.key == ending.key:
                # What it said was not masked, so nothing of it may leave this machine.
                said = f"what it said is not kept: {handling.fault.cause}"
                attempt.ending = replace(ending, message=said, tail="", stdout="", value=None)
        self._losses.look(now, endings)
        self.vacancies.look(now, endings, len(self._attempts))

    def _obey(self, requests: list[Request], now: float) -> None:
        """Take in requests and the machine's state, and stop running tasks accordingly."""
        self._standing.obey(requests, now)
        cancels = {key(request.target): request for request in requests if request.verb is Verb.CANCEL}
        recall = self._standing.recall(now)
        for attempt in self._attempts.values():
            name = attempt.name
            with self.store.faults.handling("running task", name.id, name.id, name.attempt):
                attempt.hear(requests)
                self._telling.look(attempt)
                cancel = cancels.get(key(name.id)) if attempt.stopping is None else None
                told = None if cancel is None else control.read(self.store.fs, cancel).told
                why = end_conditions.why_stop(told, recall, self.store.common.left_s(attempt.deadline))
                self._stop(attempt, why)
            with self.store.faults.handling("budget of the task", name.id, name.id, name.attempt):
                self._stop(attempt, self._own_budget.why_stop(attempt, now))

    def _stop(self, attempt: Attempt, why: Outcome | None) -> None:
        if why is not None and attempt.stopping is None and not attempt.over:
            attempt.stopping = why
            if attempt.preparing is not None:
                attempt.give_up(why)
            else:
                self.runner.stop(attempt.key, why.message, self.config.kill_grace_s)

    def _fence(self, claims: set[str]) -> bool:
        """Stop every attempt whose token is not in this worker's directory; nothing of it may be committed.

        Return whether one is gone of which no commit of this worker may have taken effect late.
        """
        taken = False
        for attempt in self._attempts.values():
            if claims.isdisjoint(attempt.files) and not attempt.fenced:
                attempt.fenced, taken = True, taken or not attempt.result_written
                attempt.stopping = attempt.stopping or handed_back("its claim was taken away")
                if attempt.preparing is not None:
                    attempt.give_up(attempt.stopping)
                self.runner.stop(attempt.key, "its claim was taken away", 0.0)
        return taken

    def _settle(self) -> int:
        over = [attempt for attempt in self._attempts.values() if attempt.settleable]
        if not self._presence.alone:  # nothing is committed, and what has no claim to commit need not wait
            over = [attempt for attempt in over if attempt.fenced and not attempt.result_written]
        done = self._settling.settle(over)
        for attempt in done:
            del self._attempts[key(attempt.name.id)]
            self._claims.end(attempt.name, attempt.files)
            if not attempt.fenced:
                self._telling.note(attempt)
            with self.store.faults.handling("lesson of the task", attempt.name.id, attempt.name.id):
                self._cooldown.learn(attempt)
        return len(done)

    def _prepare(self, time: Slice) -> None:
        """Go on with the tasks that are being prepared; those whose lease is over begin anew, as late claims."""
        for attempt in [attempt for attempt in self._attempts.values() if attempt.preparing is not None]:
            here = [other for other in self._attempts.values() if other is not attempt]
            idle = len(here) - self._lending.lent < self.slots
            if not self._starting.go_on(attempt, time, idle=idle, here=here):
                del self._attempts[key(attempt.name.id)]
                self._claims.doubt()

    def _lend(self) -> bool:
        """Take in loans. What tasks wrote there is theirs: where spoold cannot handle it, no slot changes hands."""
        with self.store.faults.handling("loans of", self.store.writer):
            return self._lending.look(self._attempts.values(), self._offering.now)
        return False

    def _is_mine(self, late: set[str]) -> bool:
        """Whether the late claims are this worker's; one that it never ordered may be a twin's of the same name."""
        if strange := self._claims.never_ordered(late):
            log.warning("%s has claims that it did not make: %s", self.store.writer, ", ".join(strange))
            self._presence.doubt()
        return self._presence.alone

    def _adopt(self, late: set[str], time: Slice) -> int:
        back, mine = self._resuming.adopt(late, self._attempts)
        return back + sum(self._start(name, time) for name in mine)

    def _claim(self, now: float, time: Slice) -> int:
        """Fill the free slots; return how many moves were made, with failed ones that are to be looked into."""
        free = self.vacancies.free(len(self._attempts))
        if not self._standing.takes or self._starting.fitness.lacking() or free <= 0:
            return 0
        offers = self._claiming.offers(self._cooldown.shuns())
        if offers:
            self._hear_people(now, REQUESTS_S)
        if self._pressure.lost(bool(offers)) or not self._standing.takes:
            return 0
        claimed, lost, skip = 0, self._claiming.lost, self._cooldown.keys() | self._attempts.keys()
        idle, here = self.slots - len(self._attempts) + self._lending.lent, self._attempts.values()
        limits, full = self._allowance.room(self._lending.counted(here), idle), self._lending.full
        running = {held: demand(attempt) for held, attempt in self._attempts.items()}
        # An id that is here already is an old attempt that still ends; its task was removed and came again.
        waits = {held for held, attempt in self._attempts.items() if attempt.lent}
        for mine in self._claiming.claim(offers, free, running, skip, limits, waits, full):
            self._claims.took(mine.name, mine.lane)
            self._journal.note("CLAIMED", mine.name.id, mine.name.attempt)
            claimed += 1
            self._start(mine.name, time)
            if self._starting.fitness.lacking():
                break
        return claimed + self._claiming.lost - lost

    def _start(self, name: TaskName, time: Slice) -> bool:
        """Start a claimed task. False when it cannot be read just now, or is a copy of one that is over."""
        idle, here = len(self._attempts) - self._lending.lent < self.slots, self._attempts.values()
        spent, kinds = self._claims.is_spent(name), self._claims.kinds(name)
        attempt = None if spent else self._starting.start(name, kinds, time, idle=idle, here=here)
        if attempt is None:
            self._claims.doubt()
            return False
        self._attempts[key(name.id)] = attempt
        return True


# The result of one step of a worker, for its loop.


@dataclass(frozen=True, slots=True)
class WorkerStep:
    """Whether anything changed, when (monotonic, s) the next is due, and whether to leave."""

    busy: bool
    next_due: float | None
    done: bool = False
