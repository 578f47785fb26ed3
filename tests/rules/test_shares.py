"""Slots by class: each has its own, and borrows only what nobody wants who has it reserved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.errors import BadFile
from spoold.protocol.lanes import Lane
from spoold.protocol.task import Task
from spoold.protocol.toml_file import load_settings
from spoold.rules.entry.references import check_names, check_settings_names
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import PASS, Wait
from spoold.rules.gates.limit_gates import CLASS_GATE, judge_class
from spoold.rules.gates.resources import DEFAULT, Resources, Shares, Stock, class_used, shares_of

EIGHT = Shares(8, {"critical": 3, "batch": 2}, frozenset({"critical", "batch"}))
SETTINGS = load_settings(
    b'[classes.critical]\nslots = 3\nborrow = true\n[classes.default]\n[types.deploy]\nclass = "critical"\n',
    "spool.toml",
)


@pytest.mark.parametrize(
    ("name", "used", "wants", "lets"),
    [
        ("critical", {}, (), True),
        ("critical", {"critical": 3}, (), True),
        ("critical", {"critical": 3}, ("default", "batch"), False),
        ("critical", {"critical": 3}, ("batch",), True),
        ("critical", {"critical": 3, "batch": 2, "default": 3}, (), False),
        ("critical", {"critical": 2, "batch": 6}, (), False),
        ("batch", {"batch": 2, "critical": 3}, ("default",), False),
        ("batch", {"batch": 2, "default": 3}, ("critical",), False),
        ("batch", {"batch": 2, "default": 3, "critical": 2}, (), True),
        ("default", {"default": 2}, ("critical",), True),
        ("default", {"default": 3}, (), False),
        ("default", {"default": 2, "": 6}, (), False),
        ("unknown", {}, (), False),
    ],
)
def test_a_class_gets_its_own_and_borrows_what_nobody_wants(
    name: str, used: dict[str, int], wants: tuple[str, ...], lets: bool
) -> None:
    shares = Shares(EIGHT.total, EIGHT.slots, EIGHT.borrow, frozenset(wants))
    assert shares.lets(name, used) is lets


names = st.sampled_from(["a", "b", DEFAULT])


@given(
    st.integers(0, 12),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 8)),
    st.frozensets(names),
    st.frozensets(names),
    st.lists(names, max_size=30),
)
def test_no_class_that_wants_its_own_is_kept_from_it_by_one_that_borrows(
    total: int, slots: dict[str, int], borrow: frozenset[str], wants: frozenset[str], order: list[str]
) -> None:
    shares, used = Shares(total, slots, borrow, wants), dict.fromkeys(["a", "b", DEFAULT], 0)
    for name in order:
        if shares.lets(name, used):
            used[name] += 1
    assert sum(used.values()) <= total
    for name in wants:
        own = shares.of(name)
        if sum(slots.values()) <= total and used[name] < own:
            assert sum(used.values()) < total, f"{name} lacks a slot of its own, and none is free"


def test_the_class_of_a_task_is_its_own_or_that_of_its_type() -> None:
    assert class_used(Lane("deploy"), SETTINGS) == "critical"
    assert class_used(Lane("deploy", bulkhead="default"), SETTINGS) == DEFAULT
    assert class_used(Lane("mail"), SETTINGS) == DEFAULT
    resources = Resources(SETTINGS)
    assert resources.uses("type=deploy") == {"type:deploy": 1, "class:critical": 1}
    assert resources.running("type=mail,class=critical") == {"type:mail": 1, "class:critical": 1}
    shares = shares_of(SETTINGS, 8, frozenset({"critical"}))
    assert shares == Shares(8, {"critical": 3}, frozenset({"critical"}), frozenset({"critical"}))
    assert shares.of(DEFAULT) == 5
    assert shares_of(load_settings(b"", "spool.toml"), 8) is None


def test_a_class_that_the_settings_do_not_name_is_an_error() -> None:
    check_names(Task.model_validate({"command": "x", "class": "default"}), SETTINGS, "t.json")
    with pytest.raises(BadFile, match=r"class: there is no class 'critcal'.*did you mean 'critical'"):
        check_names(Task.model_validate({"command": "x", "class": "critcal"}), SETTINGS, "t.json")
    with pytest.raises(BadFile, match=r"types.a.class: there is no class 'x'.*there is none yet"):
        check_settings_names(load_settings(b'[types.a]\nclass = "x"\n', "spool.toml"), "spool.toml")


def test_the_gate_says_how_many_slots_the_class_uses_and_has() -> None:
    stock = Stock(used={"class:batch": 2, "class:default": 3, "class:critical": 3}, shares=EIGHT)
    facts = TypeFacts(uses={"type:t": 1, "class:default": 1}, stock=stock)
    verdict = judge_class("t", facts)
    assert verdict == Wait("class", "class default uses 3 slots and has 3 of its own; 8 of 8 are in use")
    assert CLASS_GATE.change is not None
    own = "it goes on when a task ends; or start another worker, or raise slots of [classes.default] or let it borrow"
    assert CLASS_GATE.change(Held("t1", "t", facts), Wait("class", ""), ()) == own
    borrows = TypeFacts(uses={"class:batch": 1}, stock=stock)
    assert CLASS_GATE.change(Held("t1", "t", borrows), Wait("class", ""), ()) == own.partition(", or raise")[0]
    assert judge_class("t", TypeFacts(uses={"type:t": 1}, stock=stock)) == PASS
    assert judge_class("t", TypeFacts(uses={"class:default": 1}, stock=Stock(shares=EIGHT))) == PASS
    assert judge_class("t", TypeFacts(uses={"class:default": 1}, stock=Stock(doubtful={"class:default": 9}))) == PASS
    doubt = Stock(used={"": 1}, doubtful={"class:default": 2}, shares=EIGHT)
    assert doubt.slots_used() == {"": 1, "default": 2}


def test_classes_that_reserve_more_than_there_is_are_told_so() -> None:
    """`classes.c1.slots = 1000000` said that c1 has a million of its own, and of all others nothing."""
    shares = Shares(8, {"big": 10**6}, frozenset(), frozenset({"big"}))
    facts = TypeFacts(uses={"class:default": 1}, stock=Stock(shares=shares))
    verdict = judge_class("t", facts)
    assert isinstance(verdict, Wait)
    assert verdict.reason.startswith("class default uses 0 slots and has 0 of its own; all classes together reserve ")
    assert verdict.reason.endswith("1,000,000, more than there are; 0 of 8 are in use")


def test_tasks_without_a_class_borrow_where_nothing_is_left_for_them() -> None:
    """A pool of two slots that reserves four ran no plain task, though both were idle."""
    slots = {"critical": 3, "bulk": 1}
    assert Shares(2, slots, frozenset()).lets(DEFAULT, {})
    assert Shares(2, slots, frozenset()).lets(DEFAULT, {DEFAULT: 1})
    assert not Shares(2, slots, frozenset()).lets(DEFAULT, {DEFAULT: 2})
    assert not Shares(2, slots, frozenset(), frozenset({"critical"})).lets(DEFAULT, {})
    assert not Shares(5, slots, frozenset()).lets(DEFAULT, {DEFAULT: 1}), "one is left, and that is its share"


def test_a_class_that_the_settings_do_not_name_any_more_is_none() -> None:
    assert class_used(Lane("t", "command", bulkhead="gone"), SETTINGS) == DEFAULT
    assert class_used(Lane("t", "command", bulkhead="critical"), SETTINGS) == "critical"
