"""May this task run now? Each gate alone, then which of them speaks."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules import gates
from spoold.rules.gates import NO_CONDITIONS, PASS, Conditions, Facts, LaneFacts, Parent, Refuse, Verdict, Wait

NOW = 1_770_000_000.0


def facts(rest_s: float = 0.0, **parents: Parent) -> Facts:
    return Facts(NOW, lambda task_id: parents.get(task_id, Parent.UNKNOWN), rest_s)


def ask(conditions: Conditions, known: Facts) -> Verdict:
    """What all gates say together of a task that asks for this alone."""
    return gates.judge(conditions, known)


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
    ("state", "words"), [(Parent.UNKNOWN, "nobody has submitted yet"), (Parent.OPEN, "it waits for p to end")]
)
def test_a_dependency_that_has_not_ended_is_waited_for_by_name(state: Parent, words: str) -> None:
    for conditions in (Conditions(needs=("p",)), Conditions(needs_ended=("p",))):
        found = ask(conditions, facts(p=state))
        assert isinstance(found, Wait)
        assert words in found.reason
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
    assert isinstance(verdict, Refuse) == (late or failed)
    clear = (
        all(state(p) is Parent.COMPLETED for p in needs)
        and all(state(p) in (Parent.COMPLETED, Parent.FAILED) for p in ended)
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
    assert gates.conditions_of(task) == Conditions(("a",), ("b",), stamp, stamp)
    assert gates.conditions_of(Task.model_validate({"command": "x"})) is NO_CONDITIONS
    assert gates.conditions_of(Task.model_validate({"command": "x", "after": "a"})) == Conditions(("a",))


@pytest.mark.parametrize(
    ("known", "gate", "words"),
    [
        (LaneFacts(halted=True, paused=frozenset({"+all", "t"})), "halt", "`spool resume`"),
        (LaneFacts(paused=frozenset({"+all", "t"})), "pause", "the whole spool"),
        (LaneFacts(paused=frozenset({"t"}), limit=0), "pause", "`spool resume t`"),
        (LaneFacts(limit=2, active=2), "limit", "2 of [types.t] max_concurrent = 2"),
        (LaneFacts(limit=0), "limit", "max_concurrent = 0"),
    ],
)
def test_what_holds_a_whole_type_back_says_how_to_go_on(known: LaneFacts, gate: str, words: str) -> None:
    found = gates.judge_type("t", known)
    assert isinstance(found, Wait)
    assert found.gate == gate
    assert words in found.reason


@pytest.mark.parametrize(
    "known", [LaneFacts(), LaneFacts(limit=2, active=1), LaneFacts(active=10**6), LaneFacts(frozenset({"other"}))]
)
def test_a_type_that_nothing_holds_back_passes(known: LaneFacts) -> None:
    assert gates.judge_type("t", known) == PASS
