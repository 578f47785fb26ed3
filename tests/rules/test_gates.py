"""May this task run now? Each gate alone, then which of them speaks."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.approval import Approval
from spoold.protocol.request import Request, Verb
from spoold.protocol.result import Code
from spoold.protocol.settings import BreakerSettings, Settings
from spoold.protocol.task import Task
from spoold.rules.gates.breaker_gate import Book as Failures
from spoold.rules.gates.breaker_gate import Row, Seen
from spoold.rules.gates.budget_gate import Book, Purse
from spoold.rules.gates.budget_usage import Asked
from spoold.rules.gates.facts import NO_CONDITIONS, OVER, Conditions, Facts, Held, Known, LaneFacts, Parent, TypeFacts
from spoold.rules.gates.gate import PASS, Refuse, TaskGate, Tasks, TypeGate, Verdict, Wait, Wake
from spoold.rules.gates.lock_holders import Book as Locks
from spoold.rules.gates.lock_holders import Demand
from spoold.rules.gates.registry import (
    OF_EVERY_TASK,
    TASK_GATES,
    TYPE_GATES,
    change,
    conditions_of,
    detail,
    gather,
    groups,
    judge,
    judge_arrived,
    judge_ready,
    judge_step,
    judge_type,
    moments,
    parents_of,
    parts,
    register,
    registered,
    unregister,
)
from spoold.rules.gates.resources import Capacity, Resources, Shares, Stock
from spoold.rules.gates.standing_requests import Closed
from tests.rules.strategies import limited, name

NOW = 1_770_000_000.0


def facts(rest_s: float = 0.0, **parents: Parent) -> Facts:
    return Facts(NOW, lambda task_id: parents.get(task_id, Parent.UNKNOWN), rest_s)


def ask(conditions: Conditions, known: Facts) -> Verdict:
    """What all gates say together of a task that asks for this alone."""
    return judge(conditions, known)


def test_a_task_that_asks_for_nothing_passes() -> None:
    assert ask(NO_CONDITIONS, facts()) == PASS
    assert ask(Conditions(), facts()) == PASS


def test_a_deadline_refuses_from_its_moment_on() -> None:
    assert ask(Conditions(deadline=NOW + 0.001), facts()) == PASS
    assert ask(Conditions(deadline=NOW), facts()) == Refuse("deadline", Code.DEADLINE, "its deadline is over")


def test_not_before_waits_until_its_moment() -> None:
    assert ask(Conditions(not_before=NOW), facts()) == PASS
    found = ask(Conditions(not_before=NOW + 60), facts())
    assert isinstance(found, Wait)
    assert (found.gate, found.until) == ("not_before", NOW + 60)


def test_a_rest_waits_until_it_is_over() -> None:
    assert ask(NO_CONDITIONS, facts(rest_s=-1)) == PASS
    found = ask(NO_CONDITIONS, facts(rest_s=60))
    assert isinstance(found, Wait)
    assert (found.gate, found.until) == ("retry_delay", NOW + 60)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (Parent.UNKNOWN, ("which this spool does not know", "which this spool does not know")),
        (Parent.OPEN, ("it waits for p to complete", "it waits for p to end")),
    ],
)
def test_a_dependency_that_has_not_ended_is_waited_for_by_name(state: Parent, words: tuple[str, str]) -> None:
    for conditions, said in zip((Conditions(needs=("p",)), Conditions(needs_ended=("p",))), words, strict=True):
        found = ask(conditions, facts(p=state))
        assert isinstance(found, Wait)
        assert said in found.reason
        assert "p" in found.reason
        assert found.until is None


def test_a_dependency_must_complete_where_after_any_takes_either_end() -> None:
    needs, ended = Conditions(needs=("p",)), Conditions(needs_ended=("p",))
    assert ask(needs, facts(p=Parent.COMPLETED)) == PASS
    assert ask(ended, facts(p=Parent.COMPLETED)) == PASS
    assert ask(ended, facts(p=Parent.FAILED)) == PASS
    assert ask(needs, facts(p=Parent.FAILED)) == Refuse("dependencies", Code.DEPENDENCY_FAILED, "dependency p failed")


def test_one_failed_dependency_among_open_ones_refuses_at_once() -> None:
    found = ask(Conditions(needs=("open", "failed")), facts(open=Parent.OPEN, failed=Parent.FAILED))
    assert isinstance(found, Refuse)


def test_many_names_are_cut_short() -> None:
    found = ask(Conditions(needs=tuple("abcde")), facts())
    assert isinstance(found, Wait)
    assert "a, b, c and 2 more" in found.reason


def test_a_refusal_speaks_before_any_wait() -> None:
    both = Conditions(needs=("p",), not_before=NOW + 60, deadline=NOW - 1)
    assert isinstance(ask(both, facts(rest_s=5)), Refuse)


def test_of_several_waits_the_first_speaks() -> None:
    found = ask(Conditions(needs=("p",), not_before=NOW + 60), facts(rest_s=5))
    assert isinstance(found, Wait)
    assert found.gate == "dependencies"


states = st.sampled_from(Parent)


@given(
    st.dictionaries(st.sampled_from("abcd"), states),
    st.lists(st.sampled_from("abcd"), max_size=4),
    st.lists(st.sampled_from("abcd"), max_size=4),
    st.one_of(st.none(), st.floats(-100, 100)),
    st.one_of(st.none(), st.floats(-100, 100)),
    st.floats(-10, 10),
)
def test_a_task_passes_exactly_when_nothing_stands_in_its_way(
    parents: dict[str, Parent],
    needs: list[str],
    ended: list[str],
    not_before: float | None,
    deadline: float | None,
    rest_s: float,
) -> None:
    def state(name: str) -> Parent:
        return parents.get(name, Parent.UNKNOWN)

    conditions = Conditions(
        tuple(needs),
        tuple(ended),
        None if not_before is None else NOW + not_before,
        None if deadline is None else NOW + deadline,
    )
    verdict = ask(conditions, Facts(NOW, state, rest_s))
    late = conditions.deadline is not None and conditions.deadline <= NOW
    failed = any(state(p) is Parent.FAILED for p in needs)
    skipped = any(state(p) is Parent.SKIPPED for p in needs)
    assert isinstance(verdict, Refuse) == (late or failed or skipped)
    clear = (
        all(state(p) is Parent.COMPLETED for p in needs)
        and all(state(p) in OVER for p in ended)
        and (conditions.not_before is None or conditions.not_before <= NOW)
        and rest_s <= 0
        and not late
    )
    assert (verdict == PASS) == clear


def test_conditions_are_what_the_task_says() -> None:
    moment = datetime(2026, 1, 31, 18, tzinfo=UTC)
    task = Task.model_validate(
        {"command": "x", "after": "a", "after_any": ["b"], "deadline": moment, "not_before": moment}
    )
    stamp = moment.timestamp()
    assert conditions_of(task) == Conditions(("a",), ("b",), stamp, stamp)
    assert conditions_of(Task.model_validate({"command": "x"})) is NO_CONDITIONS
    assert conditions_of(Task.model_validate({"command": "x", "after": "a"})) == Conditions(("a",))


def using_llm(used: int = 0, tried: int = 0, closed: Closed | None = None) -> TypeFacts:
    """The facts of a task that uses the limit llm: its rate, a trial of its quota, and whether it is closed."""
    capacity = {"rate:llm": Capacity(3, "limit llm", "[limits.llm] rate.count")}
    if tried:
        capacity["quota:llm"] = Capacity(1, "limit llm", "-")
    stock = Stock(capacity, {"rate:llm": used, "quota:llm": tried})
    shut = {} if closed is None else {"llm": closed}
    return TypeFacts(
        uses={"type:t": 1, "rate:llm": 1, "quota:llm": 1}, stock=stock, closed=shut, opens={"rate:llm": NOW}
    )


@pytest.mark.parametrize(
    ("known", "gate", "words"),
    [
        (TypeFacts(halted=True, paused=dict.fromkeys({"+all", "t"})), "halt", "`spool resume`"),
        (TypeFacts(paused=dict.fromkeys({"+all", "t"})), "pause", "the whole spool"),
        (limited("t", 0, paused={"t"}), "pause", "`spool resume t`"),
        (TypeFacts(paused={"t": None, "+all": NOW}), "pause", "type t is paused; `spool resume` lets"),
        (TypeFacts(paused={"t": NOW, "+all": None}), "pause", "the whole spool is paused; `spool resume` lets"),
        (limited("t", 2, 2), "limit", "type t runs at its limit: 2 of [types.t] max_concurrent = 2"),
        (limited("t", 0), "limit", "max_concurrent = 0"),
        (limited("t", 2, 1, 1), "limit", "max_concurrent = 2; tasks in doubt count as well: 1"),
        (using_llm(used=3), "rate", "limit llm is at its rate: 3 of [limits.llm] rate.count = 3"),
        (using_llm(closed=Closed(NOW + 9, quota=True)), "quota", "quota of llm"),
        (using_llm(closed=Closed(None, quota=False)), "quota", "limit llm is closed"),
        (using_llm(tried=1), "quota", "the quota of llm was used up"),
    ],
)
def test_what_holds_a_whole_type_back_says_how_to_go_on(known: TypeFacts, gate: str, words: str) -> None:
    found = judge_type("t", known)
    assert isinstance(found, Wait)
    assert found.gate == gate
    assert words in found.reason


@pytest.mark.parametrize(
    "known",
    [
        TypeFacts(),
        limited("t", 2, 1),
        limited("t", 3, 1, 1),
        limited("t", None, 10**6, 10**6),
        TypeFacts(dict.fromkeys({"other"})),
    ],
)
def test_a_type_that_nothing_holds_back_passes(known: TypeFacts) -> None:
    assert judge_type("t", known) == PASS


LOCKS = Demand(("src/**",))
MANY = Conditions(
    ("done", "open", "gone"),
    ("open",),
    NOW + 60,
    NOW + 120,
    (("hold", "not yet"), ("approval", Approval(ask="Deploy?")), ("budget", Asked(budgets=("small",)))),
    needs_failed=("open",),
    needs_batch="Nightly",
)
SPENT = Settings.model_validate({"budgets": {"small": {"cost_usd": 0}}})
ALL = replace(MANY, more=(*MANY.more, ("locks", LOCKS)))
FILE = name("t1").encode()
HELD = Held("t1", "t", TypeFacts(), {"open": Parent.OPEN, "gone": Parent.UNKNOWN}, {"open": "claimed by w1"})


def locked() -> Locks:
    """A book in which another task holds the locks."""
    book = Locks()
    book.hold("other", LOCKS)
    return book


def facts_of_many() -> Facts:
    known = facts(rest_s=5, done=Parent.COMPLETED, open=Parent.OPEN)
    return replace(known, more={"budget": Purse(SPENT, Book(), NOW), "locks": locked()}, file=FILE)


def test_each_gate_says_in_parts_what_it_says_as_a_whole() -> None:
    known = facts_of_many()
    found = [verdict for verdict, _ in parts(ALL, known) if verdict != PASS]
    assert judge(ALL, known) in found
    assert {verdict.gate for verdict in found if isinstance(verdict, Wait)} == {
        gate.name for gate in TASK_GATES if gate.change is not None
    }


def test_every_gate_that_waits_says_what_a_person_can_do_and_is_asked_again() -> None:
    known = facts_of_many()
    waits = [(verdict, about) for verdict, about in parts(ALL, known) if isinstance(verdict, Wait)]
    shut = replace(limited("t", 0, paused={"t"}), halted=True, unserved=True)
    shut = replace(
        shut,
        uses={**shut.uses, "rate:llm": 1, "quota:llm": 1, "class:default": 1, "breaker:t": 1},
        stock=replace(
            shut.stock,
            capacity={**shut.stock.capacity, "rate:llm": Capacity(0, "limit llm", "-")},
            shares=Shares(0, {}, frozenset()),
        ),
        closed={"llm": Closed(NOW, quota=True)},
        more={"breaker": Seen({"t": BreakerSettings()}, NOW, Failures({"t": Row(5, NOW + 9)}))},
    )
    waits += [(verdict, ()) for gate in TYPE_GATES if isinstance(verdict := gate.judge("t", shut), Wait)]
    gates = {gate.name: gate for gate in (*TASK_GATES, *TYPE_GATES)}
    assert {verdict.gate for verdict, _ in waits} == {name for name, gate in gates.items() if gate.change is not None}
    for verdict, about in waits:
        assert "nothing is known" not in change(HELD, verdict, about)
        assert Wake.TIME in gates[verdict.gate].wakes if verdict.until else gates[verdict.gate].wakes - {Wake.TIME}


def test_a_gate_of_a_later_release_is_no_error() -> None:
    told = change(HELD, Wait("moon", "the moon is not full"))
    assert told == "the gate moon is not known here; ask with the release of spoold that the leader runs"


def words(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return f"{held.id} waits for another night"


MOON = TypeGate(
    "moon", "the moon is full", frozenset({Wake.STEP}), words, lambda kind, known: Wait("moon", f"no {kind} tonight")
)
TIDE = TaskGate(
    "tide",
    "the tide is high",
    frozenset({Wake.STEP}),
    words,
    lambda conditions, known: PASS if known.more.get("tide") else Wait("tide", "the tide is low"),
    tasks=Tasks.ALL,
)


def test_a_gate_that_is_registered_decides_and_explains_until_it_is_taken_out() -> None:
    before = list(TASK_GATES), list(TYPE_GATES), list(OF_EVERY_TASK)
    with registered(MOON, TIDE):
        verdict = judge_type("t", TypeFacts())
        assert isinstance(verdict, Wait)
        assert (verdict.reason, change(HELD, verdict)) == ("no t tonight", "t1 waits for another night")
        assert judge_type("t", TypeFacts(), ready=True) == PASS, "it does not say that it holds what is ready"
        assert ask(NO_CONDITIONS, facts()) == Wait("tide", "the tide is low")
        assert ask(NO_CONDITIONS, replace(facts(), more={"tide": True})) == PASS
        assert list(parts(NO_CONDITIONS, facts())) == [(Wait("tide", "the tide is low"), ())]
    assert before == (TASK_GATES, TYPE_GATES, OF_EVERY_TASK)
    assert ask(NO_CONDITIONS, facts()) == PASS


def test_a_gate_that_looks_only_at_tasks_with_conditions_is_not_asked_about_others() -> None:
    choosy = replace(TIDE, tasks=Tasks.ASKING)
    with registered(choosy):
        for known in (facts(), facts(rest_s=5)):
            verdicts = [verdict for verdict, _ in parts(NO_CONDITIONS, known)]
            assert Wait("tide", "the tide is low") not in verdicts
        assert isinstance(ask(Conditions(), facts()), Wait)


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        (replace(MOON, name="pause"), "there is a gate pause already"),
        (replace(MOON, name="dark", wakes=frozenset()), "has no wakes"),
        (replace(MOON, name="dark", wakes=frozenset({Wake.TIME})), "name Wake.STEP"),
        (replace(TIDE, name="dark", wakes=frozenset({Wake.PARENT})), "give it `parents`"),
    ],
)
def test_a_gate_that_could_never_open_again_is_not_registered(gate: TaskGate | TypeGate, problem: str) -> None:
    before = list(TASK_GATES), list(TYPE_GATES), list(OF_EVERY_TASK)
    with pytest.raises(ValueError, match=problem), registered(TIDE, gate):
        raise AssertionError("it was registered")
    assert before == (TASK_GATES, TYPE_GATES, OF_EVERY_TASK)


def test_what_is_registered_is_taken_out_by_hand_as_well() -> None:
    choosy = replace(TIDE, name="choosy", tasks=Tasks.ASKING)
    for gate in (MOON, TIDE, choosy):
        register(gate)
        unregister(gate)
        with pytest.raises(ValueError, match="not in list"):
            unregister(gate)


def test_every_gate_of_spoold_could_be_registered() -> None:
    """What holds for a new one holds for them."""
    known: list[TaskGate | TypeGate] = [*TASK_GATES, *TYPE_GATES]
    for gate in known:
        with registered(replace(gate, name=f"another-{gate.name}")):
            pass


def test_each_gate_gathers_its_own_facts_and_is_asked_what_the_task_says_of_it() -> None:
    def asks(task: Task) -> str | None:
        return task.meta.get("moon")

    full = replace(MOON, gather=lambda known: known.now > NOW)
    harbour = replace(TIDE, tasks=Tasks.ASKING, asks=asks)
    with registered(full, harbour):
        nothing = dict.fromkeys(("breaker", "budget", "locks"))
        assert gather(Known(NOW + 1, Settings(), ())) == {"moon": True, **nothing}
        task = Task.model_validate({"command": "x", "after": "a", "meta": {"moon": "new"}})
        assert conditions_of(task) == Conditions(("a",), more=(("tide", "new"),))
        assert conditions_of(task).asks("tide") == "new"
        assert conditions_of(task).asks("moon") is None
        assert conditions_of(task.model_copy(update={"meta": {}})).more == ()


def test_tasks_are_grouped_by_the_gates_that_are_asked_in_every_step() -> None:
    known = replace(facts(), kind="t")
    assert groups(MANY, known) == ()
    choosy = replace(TIDE, name="choosy", group=lambda conditions, facts: conditions.deadline)
    with registered(TIDE, choosy):
        assert groups(NO_CONDITIONS, known) == (("tide", ("t", NO_CONDITIONS)),), "the other does not look at it"
        assert groups(MANY, known) == (("tide", ("t", MANY)), ("choosy", NOW + 120))


def test_gates_that_are_asked_in_every_step_are_asked_apart_from_the_others() -> None:
    with registered(TIDE, replace(TIDE, name="not-this-one", group=lambda conditions, facts: None)):
        assert judge_step(groups(MANY, facts()), MANY, facts()) == Wait("tide", "the tide is low")
        assert judge_step((), MANY, facts()) == PASS
        other = judge_arrived(replace(MANY, more=()), facts(done=Parent.COMPLETED, gone=Parent.COMPLETED))
        assert isinstance(other, Wait)
        assert other.gate == "dependencies"


def test_a_task_wakes_with_its_parents_and_at_its_moments() -> None:
    assert parents_of(MANY) == {"done", "open", "gone", "batch:nightly"}
    assert list(moments(MANY)) == [NOW + 120]
    assert not parents_of(NO_CONDITIONS)
    assert not list(moments(NO_CONDITIONS))


def test_the_facts_of_a_type_are_what_was_asked_for_and_what_is_counted() -> None:
    requests = (Request(Verb.PAUSE, "t", "1"), Request(Verb.HALT, "+all", "2"))
    stock = limited("t", 2).stock
    found = LaneFacts(Known(NOW, Settings(), requests), Resources(Settings()), stock, {"moon": 1}, {"x": 2.0}).of(
        "type=t"
    )
    assert found == TypeFacts({"t": None}, True, {"type:t": 1}, stock, opens={"x": 2.0}, more={"moon": 1})


def test_what_is_ready_is_held_by_its_deadline_and_by_a_hold_alone() -> None:
    assert judge_ready(replace(MANY, more=MANY.more[1:]), facts()) == PASS
    assert judge_ready(MANY, facts()) == Wait("hold", "it was submitted on hold: not yet")
    assert isinstance(judge_ready(Conditions(("open",), deadline=NOW), facts()), Refuse)


def test_members_of_a_cycle_are_refused_and_one_whole_cycle_is_named() -> None:
    found = ask(Conditions(needs=("b",), deadline=NOW), replace(facts(), ring=("a", "b")))
    reason = "dependency cycle: a → b → a; take one dependency out of it"
    assert found == Refuse("cycle", Code.INVALID_TASK, reason)


def test_a_gate_says_what_else_a_person_wants_to_know() -> None:
    asked = {("pause", "t"): "by ada", ("pause", "+all"): "by bob", ("halt", "+all"): "by eve"}
    held = replace(HELD, asked=asked, before="attempt 1 ended as TIMEOUT")
    for known, said in (
        (TypeFacts(halted=True), "by eve"),
        (TypeFacts(dict.fromkeys({"t"})), "by ada"),
        (TypeFacts(dict.fromkeys({"t", "+all"})), "by bob"),
        (limited("t", 0), ""),
    ):
        verdict = judge_type("t", known)
        assert isinstance(verdict, Wait)
        assert detail(replace(held, type=known), verdict) == said
    assert detail(held, Wait("retry_delay", "it rests")) == "attempt 1 ended as TIMEOUT"
    assert detail(held, Wait("new_moon", "of a later release")) == ""


@pytest.mark.parametrize(
    ("paused", "words", "until"),
    [
        ({"t": NOW + 60}, "type t is paused", NOW + 60),
        ({"+all": NOW + 60}, "the whole spool is paused", NOW + 60),
        ({"t": NOW + 60, "+all": NOW + 30}, "type t is paused", NOW + 60),
        ({"t": NOW + 60, "+all": NOW + 90}, "the whole spool is paused", NOW + 90),
    ],
)
def test_a_pause_that_ends_by_itself_says_when(paused: dict[str, float | None], words: str, until: float) -> None:
    verdict = judge_type("t", TypeFacts(paused))
    assert verdict == Wait("pause", words, until)
    told = change(Held("t1", "t", TypeFacts(paused)), verdict)
    assert told == f"time; or `spool resume{'' if '+all' in paused else ' t'}`"
