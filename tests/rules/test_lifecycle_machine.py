"""The life of tasks under every outcome, pause, limit and retry, against a model of the tokens.

The model is the tree: a set of (directory, name), changed by moves of the table alone. The real rules decide.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spoold.protocol.lifecycle import Mover, State, allowed
from spoold.protocol.names import TaskName, encode_order, key, parse_returned, parse_task
from spoold.protocol.result import Code
from spoold.rules.attempts import attempt_outcome
from spoold.rules.attempts.attempt_outcome import Charge, Outcome
from spoold.rules.attempts.retry_rule import Again, decide
from spoold.rules.attempts.task_policy import RetryPolicy
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Parent, TypeFacts
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.promotion import LaneView, holdbacks, promotions
from spoold.rules.scheduling.waiting_task import Entry
from tests.rules import strategies as some
from tests.rules.strategies import limited

POLICY = RetryPolicy(max=2, backoff_s=1, factor=2, jitter=0.25, max_backoff_s=30, crash_limit=2)
LANE, KIND, WINDOW, LIMIT = "type=a", "a", 1, 4
PARENTS = {State.COMPLETED: Parent.COMPLETED, State.FAILED: Parent.FAILED}
DIED, BROKEN = attempt_outcome.worker_died("gone"), attempt_outcome.failure(Code.EXIT_NONZERO, "exit code 1")
finite_outcomes = some.outcomes.filter(lambda ended: ended.retry_after_s is None)


class Lives(RuleBasedStateMachine):
    """Submit, promote, claim, end, place again, pause, retry, and let time pass, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = Now(100.0, 1_770_000_000.0)
        self.micros = 0
        self.paused = False
        self.where: dict[str, tuple[State, str]] = {}
        self.needs: dict[str, tuple[str, ...]] = {}
        self.history: dict[str, list[TaskName]] = {}
        self.backlog = Backlog(self.parent)

    def parent(self, task_id: str) -> Parent:
        place = self.where.get(key(task_id))
        return Parent.UNKNOWN if place is None else PARENTS.get(place[0], Parent.OPEN)

    def move(self, task_id: str, target: State, name: str, mover: Mover) -> None:
        """One rename: there is a line for it, and the name is one that no token ever had in that directory."""
        source, old = self.where[task_id]
        assert any(line.mover is mover for line in allowed(source, target)), (source, target, mover)
        assert (target, name) not in self.where.values()
        assert (source, old) != (target, name)
        self.where[task_id] = (target, name)

    def wait(self, task_id: str, name: TaskName) -> None:
        """A token came to waiting/: into the backlog, resting from now on."""
        needs = self.needs[task_id]
        rest_until = self.now.monotonic + name.delay_ms / 1000 if name.delay_ms else 0.0
        conditions = Conditions(needs=needs) if needs else NO_CONDITIONS
        self.backlog.add(Entry(name.encode(), LANE, conditions, rest_until), self.now)

    def tokens(self, state: State) -> list[str]:
        return sorted(task_id for task_id, (place, _) in self.where.items() if place is state)

    def task_names(self, state: State) -> list[TaskName]:
        parsed = [parse_task(self.where[task_id][1]) for task_id in self.tokens(state)]
        assert None not in parsed
        return [name for name in parsed if name is not None]

    def facts(self) -> TypeFacts:
        active = len(self.tokens(State.READY)) + len(self.tokens(State.CLAIMED))
        return limited(KIND, LIMIT, active, paused={KIND} if self.paused else ())

    def end(self, task_id: str, state: State, decider: str, name: TaskName, mover: Mover) -> None:
        self.move(task_id, state, name.ended(decider).encode(), mover)
        self.backlog.remove(task_id)
        self.backlog.parent_changed(task_id, self.now)

    @precondition(lambda self: len(self.where) < 6)
    @rule(data=st.data(), rank=st.integers(4995, 5005))
    def submit(self, data: st.DataObject, rank: int) -> None:
        task_id = f"t{len(self.where)}"
        needs = data.draw(st.lists(st.sampled_from([*self.where, "t5"]), max_size=2, unique=True))
        self.needs[task_id] = tuple(parent for parent in needs if parent != task_id)
        self.where[task_id] = (State.PENDING, f"{task_id}.json")
        self.micros += 1
        name = TaskName(rank, encode_order(self.micros, 1), task_id, conditional=bool(self.needs[task_id]))
        self.move(task_id, State.WAITING, name.encode(), Mover.LEADER)
        self.history[task_id] = [name]
        self.wait(task_id, name)
        self.backlog.parent_changed(task_id, self.now)

    @rule(seconds=st.sampled_from([0.0, 0.5, 40.0]))
    def lead(self, seconds: float) -> None:
        """One step of a leader, in its order, some time after the last one."""
        self.now = Now(self.now.monotonic + seconds, self.now.wall + seconds)
        self.place_returned()
        self.backlog.tick(self.now)
        self.hold_back()
        self.fill_ready()

    def fill_ready(self) -> None:
        for entry, _ in self.backlog.refused():
            self.end(key(entry.name.id), State.FAILED, "master-1", entry.name, Mover.LEADER)
        ranks = tuple(name.rank for name in self.task_names(State.READY))
        for entry in promotions(self.backlog, {LANE: LaneView(KIND, ranks)}, {LANE: self.facts()}, WINDOW, self.now):
            task_id = key(entry.name.id)
            assert all(self.parent(parent) is Parent.COMPLETED for parent in self.needs[task_id])
            assert not entry.rest_until or entry.rest_until <= self.now.monotonic + 0.01
            self.backlog.remove(task_id)
            self.move(task_id, State.READY, entry.name.encode(), Mover.LEADER)

    def hold_back(self) -> None:
        for _, name in holdbacks({LANE: self.task_names(State.READY)}, {LANE: self.facts()}):
            self.move(key(name.id), State.WAITING, name.encode(), Mover.LEADER)
            self.wait(key(name.id), name)

    @precondition(lambda self: self.tokens(State.READY))
    @rule()
    def claim_first(self) -> None:
        """Names sort by urgency, so the first name is what a worker takes."""
        first = min(self.tokens(State.READY), key=lambda task_id: self.where[task_id][1])
        self.move(first, State.CLAIMED, self.where[first][1], Mover.WORKER)

    @precondition(lambda self: self.tokens(State.CLAIMED))
    @rule(data=st.data(), ended=st.one_of(st.just(DIED), st.just(BROKEN), finite_outcomes), reaped=st.booleans())
    def finish(self, data: st.DataObject, ended: Outcome, reaped: bool) -> None:
        task_id = data.draw(st.sampled_from(self.tokens(State.CLAIMED)))
        mover = Mover.LEADER if reaped and ended.charge is Charge.CRASH else Mover.WORKER
        name = parse_task(self.where[task_id][1])
        assert name is not None
        verdict = decide(name, ended, POLICY)
        if isinstance(verdict, Again):
            self.move(task_id, State.RETURNED, verdict.name.encode_returned("someone-1"), mover)
        else:
            self.end(task_id, verdict.state, "someone-1", name, mover)

    def place_returned(self) -> None:
        for task_id in self.tokens(State.RETURNED):
            parsed = parse_returned(self.where[task_id][1])
            assert parsed is not None
            self.move(task_id, State.WAITING, parsed[0].encode(), Mover.LEADER)
            self.history[task_id].append(parsed[0])
            self.wait(task_id, parsed[0])

    @precondition(lambda self: self.tokens(State.FAILED))
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        """A person asks for another try: the next attempt with a fresh budget and a new order."""
        task_id = data.draw(st.sampled_from(self.tokens(State.FAILED)))
        last = self.history[task_id][-1]
        self.micros += 1
        name = TaskName(
            last.rank, encode_order(self.micros, 1), task_id, last.attempt + 1, conditional=last.conditional
        )
        self.move(task_id, State.WAITING, name.encode(), Mover.LEADER)
        self.history[task_id].append(name)
        self.wait(task_id, name)
        self.backlog.parent_changed(task_id, self.now)

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.paused = paused

    @invariant()
    def what_waits_is_what_the_backlog_knows(self) -> None:
        waiting = self.tokens(State.WAITING)
        assert len(self.backlog) == len(waiting)
        assert all(task_id in self.backlog for task_id in waiting)

    @invariant()
    def limits_hold(self) -> None:
        assert len(self.tokens(State.READY)) <= 2 * WINDOW
        assert len(self.tokens(State.READY)) + len(self.tokens(State.CLAIMED)) <= LIMIT

    @invariant()
    def budgets_hold_and_attempts_rise(self) -> None:
        for names in self.history.values():
            attempts = [name.attempt for name in names]
            assert attempts == sorted(set(attempts))
            assert all(name.failures <= POLICY.max and name.crashes < POLICY.crash_limit for name in names)

    def teardown(self) -> None:
        """Whatever happened, once nothing stands in the way and attempts succeed, every task ends."""
        self.paused = False
        for _ in range(40):
            self.lead(60.0)
            for task_id in self.tokens(State.READY):
                self.move(task_id, State.CLAIMED, self.where[task_id][1], Mover.WORKER)
            for name in self.task_names(State.CLAIMED):
                self.end(key(name.id), State.COMPLETED, "someone-1", name, Mover.WORKER)
        left: set[Any] = {state for state, _ in self.where.values()} - {State.COMPLETED, State.FAILED}
        unknown = any(parent not in self.where for needs in self.needs.values() for parent in needs)
        assert not left or (unknown and left == {State.WAITING})


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=200, stateful_step_count=60)
