"""Which entries of a batch's context count, and which do not know each other."""

from spoold.protocol.context_entry import EntryName
from spoold.rules.tree.context_versions import latest, rivals, unseen, version


def entry(number: int, base: int = 0, node: str = "a", name: str = "x") -> EntryName:
    """One entry."""
    return EntryName(number, node, name, base)


def test_the_highest_number_counts_and_of_several_the_last_author() -> None:
    there = [entry(2, 1, "b"), entry(1), entry(2, 1, "a"), entry(9, name="y")]
    assert latest(there) == {"x": entry(2, 1, "b"), "y": entry(9, name="y")}
    assert latest([entry(1, name="X"), entry(2, name="x")]) == {"x": entry(2)}
    assert (version(there, "X"), version(there, "y"), version(there, "z")) == (2, 9, 0)


def test_who_had_not_seen_whom() -> None:
    mine, other = entry(2, 1, "a"), entry(2, 1, "b")
    there = [entry(1), mine, other, entry(3, name="y")]
    assert rivals(there, mine) == [other]
    assert rivals(there, other) == [mine]
    assert rivals([entry(1), mine], mine) == []


def test_two_that_took_different_numbers_are_rivals_too() -> None:
    slow, quick = entry(2, 1), entry(3, 1)
    assert rivals([entry(1), slow, quick], slow) == [quick]
    assert unseen([entry(1), slow, quick], "x") == [slow]


def test_a_conflict_is_settled_by_one_who_has_seen_both() -> None:
    there = [entry(1), entry(2, 1, "a"), entry(2, 1, "b")]
    assert unseen(there, "x") == [entry(2, 1, "a")]
    assert unseen([*there, entry(3, 2)], "x") == []
    assert unseen([], "x") == []
