"""`after_failed` and `after_batch`: when each passes, waits and refuses; and what many tasks behind them cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.names import NODE_MAX, EndedName, is_node, is_skipped, parse_ended, skipper
from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules.gates import dependency_gates
from spoold.rules.gates.dependency_gates import batch_in, parent_of
from spoold.rules.gates.facts import OVER, Conditions, Facts, Parent
from spoold.rules.gates.gate import PASS, Pass, Refuse, Verdict, Wait
from spoold.rules.gates.registry import conditions_of, judge, parts
from spoold.rules.scheduling.batch_members import KNOWN_MAX, UNREAD_MAX, Members, Phase
from tests.rules.strategies import name
from tests.rules.test_backlog import NOW, World

MANY = 100_000
states = st.sampled_from(Parent)


def ask(conditions: Conditions, **parents: Parent) -> Verdict:
    return judge(conditions, Facts(NOW.wall, lambda task_id: parents.get(task_id, Parent.UNKNOWN)))


@given(st.dictionaries(st.sampled_from("abc"), states), st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
def test_a_clean_up_runs_after_a_failure_alone_and_is_skipped_only_when_none_can_come(
    parents: dict[str, Parent], named: list[str]
) -> None:
    known = [parents.get(one, Parent.UNKNOWN) for one in named]
    verdict = ask(Conditions(needs_failed=tuple(named)), **parents)
    assert isinstance(verdict, Pass) == (Parent.FAILED in known)
    skipped = Parent.FAILED not in known and all(state in OVER for state in known)
    assert (isinstance(verdict, Refuse) and verdict.code is Code.SKIPPED) == skipped


def test_the_words_name_what_is_waited_for() -> None:
    asks = Conditions(needs_failed=("a", "b"))
    assert ask(asks, a=Parent.OPEN) == Wait("after_failed", "it waits for b, which this spool does not know")
    waits = ask(asks, a=Parent.OPEN, b=Parent.COMPLETED)
    assert waits == Wait("after_failed", "it waits for a to end, and runs if one of them has failed")
    ended = {"a": Parent.COMPLETED, "b": Parent.SKIPPED}
    assert ask(asks, **ended) == Refuse("after_failed", Code.SKIPPED, "none of a, b failed")
    assert ask(Conditions(needs_failed=("a",)), **ended) == Refuse("after_failed", Code.SKIPPED, "a did not fail")
    known = Facts(NOW.wall, lambda _: Parent.FAILED)
    assert [verdict for verdict, _ in parts(asks, known) if verdict != PASS] == [], "a part waits for nothing more"


def test_behind_a_skipped_dependency_a_task_is_skipped_unless_another_has_failed() -> None:
    asks = Conditions(("a", "b"))
    assert ask(asks, a=Parent.SKIPPED) == Refuse("dependencies", Code.SKIPPED, "dependency a was skipped")
    both = ask(asks, a=Parent.SKIPPED, b=Parent.FAILED)
    assert both == Refuse("dependencies", Code.DEPENDENCY_FAILED, "dependency b failed")
    assert ask(Conditions(needs_ended=("a",)), a=Parent.SKIPPED) == PASS


def test_a_batch_is_waited_for_until_it_is_known_and_over() -> None:
    asks, parent = Conditions(needs_batch="Nightly"), parent_of("Nightly")
    assert batch_in(parent) == "nightly"
    assert batch_in("nightly") is None
    unknown = ask(asks)
    assert isinstance(unknown, Wait)
    assert "batch Nightly, of which no task is known yet" in unknown.reason
    assert ask(asks, **{parent: Parent.OPEN}) == Wait("after_batch", "it waits for all tasks of batch Nightly to end")
    assert ask(asks, **{parent: Parent.COMPLETED}) == PASS


def test_a_task_says_both() -> None:
    task = Task.model_validate({"command": "x", "after_failed": "a", "after_batch": "b"})
    assert task.conditional
    assert conditions_of(task) == Conditions(needs_failed=("a",), needs_batch="b")
    assert Task.model_validate({"command": "x", "after_batch": "b"}).conditional
    with pytest.raises(ValueError, match="depends on itself"):
        Task.model_validate({"id": "a", "command": "x", "after_failed": ["a"]})


@pytest.mark.parametrize("node", ["m-1", "a" * NODE_MAX, f"{'a' * 7}-{'b' * 32}", "master-laptop_1-9z9zz"])
def test_the_name_of_a_skipped_task_says_so_and_is_a_name(node: str) -> None:
    decider = skipper(node)
    assert is_node(decider)
    assert decider.removesuffix("_skipped") == node[-32:].lstrip("-_"), "the end of a node id is its unique part"
    ended = EndedName("clean-up", 2, decider)
    assert ended.skipped
    assert is_skipped(ended.encode())
    assert parse_ended(ended.encode()) == ended
    assert not EndedName("clean-up_skipped", 2, node).skipped
    assert not is_skipped(EndedName("clean-up_skipped", 2, node).encode())


def test_a_clean_up_with_other_conditions_starts_though_a_task_that_counts_no_more_never_ends() -> None:
    world = World()
    for task in ("a", "b", "c"):
        world.parents[task] = Parent.OPEN
    world.add("clean-up", needs=("c",), needs_failed=("a", "b"))
    world.end("a", Parent.FAILED)
    assert world.promote() == []
    world.end("c")
    assert world.promote() == ["clean-up"]
    world.add("late", needs=("d",), needs_failed=("a", "b"))
    world.end("d")
    assert world.promote() == ["late"], "also when the failure came before the task"


def test_a_clean_up_waits_again_when_the_failure_is_retried() -> None:
    world = World()
    world.parents |= {"a": Parent.OPEN, "b": Parent.OPEN}
    world.add("clean-up", needs_failed=("a", "b"))
    world.end("a", Parent.FAILED)
    world.end("a", Parent.OPEN)
    assert world.promote() == []
    world.end("a")
    world.end("b")
    assert [verdict.code for _, verdict in world.backlog.refused()] == [Code.SKIPPED]


class Batch:
    """What a leader does about batch b: one call for each of its steps."""

    def __init__(self, members: Members | None = None) -> None:
        self.members = members or Members()
        self.behind: set[str] = set()
        self.pending: list[str] = []
        self.door: set[object] = set()

    def step(self, *, listed: bool = True) -> Parent:
        drops = self.pending if listed else None
        self.members.advance("b", lambda: self.behind, drops, lambda: frozenset(self.door))
        return self.members.state("b")

    def steps_until_over(self, most: int = 5) -> int:
        for number in range(1, most + 1):
            if self.step() is Parent.COMPLETED:
                return number
        return 0


def watched(*tasks: str) -> Batch:
    batch = Batch()
    batch.members.watch("B")
    for task in tasks:
        batch.members.see(task, "B")
    return batch


def test_a_batch_is_over_when_all_have_ended_and_the_drops_of_a_later_listing_were_judged() -> None:
    batch = watched("t1", "t2")
    batch.members.left("t1")
    assert batch.steps_until_over() == 0
    batch.members.left("t2")
    assert batch.step() is Parent.OPEN
    assert batch.step(listed=False) is Parent.OPEN, "the drops are to be listed after the last end was seen"
    batch.pending = ["x.jsonl"]
    assert batch.steps_until_over() == 0
    batch.pending, batch.door = ["later.json"], {"x"}
    assert batch.step(listed=False) is Parent.OPEN
    assert batch.steps_until_over() == 0, "it is judged, and no task yet"
    batch.door = {"later"}
    assert batch.step() is Parent.OPEN, "the next step must show that the leader still leads"
    assert batch.step() is Parent.COMPLETED


def test_a_task_that_came_and_went_while_the_drops_were_awaited_changes_nothing() -> None:
    batch = watched("t1")
    batch.members.left("t1")
    batch.pending = ["x.jsonl"]
    assert batch.steps_until_over() == 0
    batch.members.see("t2", "B")
    batch.members.left("t2")
    assert batch.step() is Parent.OPEN
    batch.pending = []
    assert batch.steps_until_over() > 0


def test_a_further_task_opens_the_batch_again() -> None:
    batch = watched("t1")
    batch.members.left("t1")
    assert batch.steps_until_over() == 3
    batch.members.see("t2", "b")
    assert batch.step() is Parent.OPEN
    batch.members.left("t2")
    assert batch.steps_until_over() == 3


def test_an_unknown_batch_waits_and_a_task_that_was_met_ended_makes_it_known() -> None:
    batch = watched()
    assert batch.members.strange() == ["b"]
    assert batch.steps_until_over() == 0
    assert batch.members.state("b") is Parent.UNKNOWN
    batch.members.met("b")
    assert batch.members.strange() == []
    assert batch.steps_until_over() == 3


def test_a_task_that_was_not_read_keeps_every_batch_open() -> None:
    members = Members()
    members.begin(7, last=1000)
    batch = Batch(members)
    members.watch("b")
    old, own, other = (name(task, micros=micros).encode() for task, micros in (("o", 1000), ("p", 1001), ("q", 1001)))
    own, other = own.replace("-1.", "-7."), other.replace("-1.", "-8.")
    members.gather(lambda: iter([("o", old), ("p", own), ("q", other)]))
    members.gather(lambda: iter([("r", old)]))
    assert members.unread() == ["o", "q"], "it has noted the batch of what it admitted itself"
    members.met("b")
    assert batch.steps_until_over() == 0
    members.see("o", None)
    members.forget("q")
    members.forget("q")
    members.came("o", old)
    assert members.unread() == [], "it is of no batch"
    assert batch.steps_until_over() == 3
    members.doubt("o")
    members.doubt("o")
    assert batch.step() is Parent.OPEN
    members.see("o", "b")
    assert dict(members.counts()) == {"b": 1}
    members.left("o")
    assert batch.steps_until_over() == 3


def test_tasks_that_wait_for_the_batch_do_not_hold_it_open() -> None:
    batch = watched("t1", "notify")
    batch.behind = {"notify", "stranger"}
    assert batch.steps_until_over() == 0
    batch.members.left("t1")
    assert batch.steps_until_over() == 3


def test_nothing_is_kept_of_a_batch_that_nobody_waits_for_and_of_others_little() -> None:
    members = Members()
    for number in range(KNOWN_MAX + 10):
        members.see(f"t{number}", f"b{number}")
        members.left(f"t{number}")
    members.watch("b1")
    members.watch(f"b{KNOWN_MAX}")
    assert members.strange() == ["b1"], "of the oldest it looks for a task among those that ended"
    members.unwatch("b1")
    assert members.watched() == [f"b{KNOWN_MAX}"]
    for number in range(UNREAD_MAX + 1):
        assert not members.pressing
        members.doubt(f"t{number}")
    assert members.pressing


def test_a_task_that_came_and_ended_between_two_looks_has_the_drops_listed_anew() -> None:
    """A leader's step was long: it admitted one of the drops that it awaited, and saw that it had ended."""
    batch = watched("a")
    batch.members.left("a")
    batch.step()
    batch.pending = ["hand-0.json"]
    assert batch.step() is Parent.OPEN, "that drop is awaited"
    batch.pending = ["hand-1.json"]
    batch.members.see("h0", "b")
    batch.members.left("h0")
    assert batch.steps_until_over() == 0, "the drop was there when the last one ended"
    batch.pending = []
    assert batch.steps_until_over() == 2


def test_a_task_of_no_batch_that_was_read_meanwhile_does_not_begin_the_wait_anew() -> None:
    batch = watched("a")
    batch.members.left("a")
    batch.pending = ["hand.json"]
    assert batch.steps_until_over() == 0, "that drop is awaited"
    batch.members.doubt("other")
    batch.members.see("other", None)
    batch.pending = []
    assert batch.steps_until_over() == 2, "as if nothing had been read"


def test_a_batch_is_surely_over_when_the_batch_of_each_open_task_is_known() -> None:
    members = Members()
    members.see("own", "b")

    def over() -> bool:
        return members.surely_over("B", lambda: [("own", "0-1.own.json"), ("inherited", "0-1.inherited.json")])

    assert not over()
    assert members.unread() == ["inherited"]
    assert members.pressing, "it is to be read, though no task waits for a batch"
    members.left("own")
    assert not over()
    members.see("inherited", None)
    assert over()
    members.see("late", "b")
    assert not over()
    assert not Members().pressing


def test_a_hundred_thousand_tasks_of_a_batch_cost_one_question_to_what_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    whole = Members._ended

    def ended(self: Members, batch: str, behind: Callable[[], set[str]]) -> bool:
        asked.append(batch)
        return whole(self, batch, behind)

    monkeypatch.setattr(Members, "_ended", ended)
    batch = watched(*(f"t{number}" for number in range(MANY)))
    batch.step()
    asked.clear()
    for _ in range(100):
        batch.step()
    assert asked == [], "a step in which nothing happened asks nothing"
    for number in range(MANY):
        batch.members.left(f"t{number}")
        if not number % 1000:
            batch.step()
    assert len(asked) <= MANY / 1000
    assert batch.steps_until_over() == 3


def test_a_hundred_thousand_tasks_behind_an_open_batch_cost_nothing_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    world = World()
    parent = parent_of("b")
    world.parents[parent] = Parent.OPEN
    for number in range(MANY):
        world.add(f"t{number}", needs_batch="b", micros=number + 1)

    def state(task: str) -> Parent:
        asked.append(task)
        return Parent.OPEN

    monkeypatch.setattr(world.backlog, "_parent", state)
    world.add("plain")
    for _ in range(10):
        world.backlog.tick(NOW)
        world.promote()
    assert asked == []
    assert world.backlog.graph.has_children(parent)


def test_the_phases_are_in_their_order() -> None:
    assert list(Phase) == sorted(Phase)
    assert dependency_gates.AFTER_BATCH.parents is not None
    assert dependency_gates.AFTER_BATCH.parents(Conditions()) == ()


def test_a_batch_with_a_known_task_is_open_under_any_spelling() -> None:
    members = Members()
    members.see("a", "Nightly")
    assert members.has_open("nightly")
    assert members.has_open("NIGHTLY")
    members.left("a")
    assert not members.has_open("nightly")
