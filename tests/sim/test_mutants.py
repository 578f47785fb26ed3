"""A simulator that notices nothing proves nothing: some of the laws, broken one at a time; `--mutants` breaks all."""

from __future__ import annotations

import inspect
from argparse import ArgumentTypeError
from typing import Any

import pytest

from spoold.protocol.names import TaskName
from tests.sim.mutants import BY_NAME, MUTANTS, hunt
from tests.sim.mutation import Mutant
from tests.sim.universe import simulate
from tools.turns import Part, part

BUDGET = 12
QUICK = {
    "commit-before-result": "result before commit",
    "attempt-number-reused": "fencing",
    "shared-claim-directory": "own directory",
    "heartbeat-replaced": "written once",
    "reaping-by-wall-clock": "silence or liveness",  # also who left without a stamp is then never reaped
    "takeover-without-swap": "one token",
    "dependencies-skipped": "dependencies",
    "duplicates-not-checked": "one token",
    "cancel-ignored-by-leader": "cancel",
    "charged-where-it-cannot-run": "elsewhere",
    "lock-not-taken": "one token or leadership",
    "claim-without-lock": "one token",
}


@pytest.mark.parametrize("name", QUICK)
def test_a_broken_law_is_noticed_within_a_few_seeds(name: str) -> None:
    found = hunt(BY_NAME[name], budget=BUDGET)
    assert found.broken is not None
    assert found.broken.partition(":")[0] in QUICK[name].split(" or ")


def _signature(member: Any) -> inspect.Signature | None:
    if isinstance(member, staticmethod | classmethod):
        member = member.__func__
    elif isinstance(member, property):
        member = member.fget
    return inspect.signature(member) if callable(member) else None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_puts_there_can_be_called_as_what_it_replaces(mutant: Mutant) -> None:
    for owner, name, substitute in mutant.swaps():
        real, other = _signature(vars(owner)[name]), _signature(substitute)
        if real is None or other is None:
            continue
        taken = real.parameters.values()  # those with a default, too: some call hands them over
        by_name = [one.name for one in taken if one.kind is one.KEYWORD_ONLY]
        in_order = [one for one in taken if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        other.bind(*in_order, **dict.fromkeys(by_name))


def test_every_mutant_has_a_name_of_its_own_and_says_what_it_breaks() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.says.endswith(".") and mutant.law for mutant in MUTANTS)


@pytest.mark.parametrize("parts", [1, 2, 5, 7])
def test_the_parts_together_are_all_mutants_and_none_is_in_two(parts: int) -> None:
    played = [name for index in range(parts) for name in Part(index + 1, parts).among([*BY_NAME])]
    assert sorted(played) == sorted(BY_NAME)


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1", "a/b", "1/0", "-1/2"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    assert part("2/5") == Part(2, 5)
    with pytest.raises(ArgumentTypeError, match="no part"):
        part(text)


def test_a_mutant_leaves_the_product_as_it_was() -> None:
    before = {(owner, name): vars(owner)[name] for mutant in MUTANTS for owner, name, _ in mutant.swaps()}
    for mutant in MUTANTS:
        with mutant.alive():
            assert any(vars(owner)[name] is not kept for (owner, name), kept in before.items())
    assert all(vars(owner)[name] is kept for (owner, name), kept in before.items())
    assert TaskName(1, "o", "t").again().attempt == 2


def test_the_product_as_it_is_breaks_none_of_them() -> None:
    assert [simulate(seed).broken for seed in range(3)] == [None, None, None]
