"""A table is laid over another by the shape of its model: tables are merged, values are replaced."""

from typing import Annotated, Any

import pytest

from spoold.protocol.fields import ByWord, Strict, Whole
from spoold.protocol.settings import Settings
from spoold.protocol.settings_change import CHANGEABLE, dotted, leaves, overlaid, restored, spelled, table_of, within


class Rate(Strict):
    count: Whole
    per_s: Whole = 1


class Limit(Strict):
    max: Whole | None = None
    rate: Annotated[Rate | None, "of starts"] = None


class Sections(Strict):
    limits: ByWord[Limit] = {}
    uses: ByWord[Whole] = {}
    names: tuple[str, ...] = ()
    rate: Rate = Rate(count=1)


LIMITS: dict[str, Any] = {"a": {"max": 1, "rate": {"count": 5, "per_s": 2}}, "b": {"max": 2}}
OURS: dict[str, Any] = {
    "limits": LIMITS,
    "uses": {"x": 1},
    "names": ["n"],
    "rate": {"count": 3, "per_s": 4},
}


@pytest.mark.parametrize(
    ("said", "there"),
    [
        (
            {"limits": {"A": {"rate": {"count": 6}}}},
            {"a": {"max": 1, "rate": {"count": 6, "per_s": 2}}, "b": {"max": 2}},
        ),
        ({"limits": {"a": {"rate": None}}}, {"a": {"max": 1, "rate": None}, "b": {"max": 2}}),
        ({"limits": {"b": {"rate": {"count": 1}}}}, LIMITS | {"b": {"max": 2, "rate": {"count": 1}}}),
        ({"limits": {"c": {}}}, LIMITS | {"c": {}}),
        ({"limits": 7}, 7),
    ],
)
def test_of_a_table_only_what_is_given_changes(said: dict[str, Any], there: Any) -> None:
    assert overlaid(OURS, said, Sections) == OURS | {"limits": there}


def test_a_value_is_replaced_as_a_whole() -> None:
    said = {"uses": {"y": 2}, "names": [], "rate": {"count": 1}, "unknown": {"z": 1}}
    assert overlaid(OURS, said, Sections) == OURS | said | {"rate": {"count": 1, "per_s": 4}}
    assert OURS["uses"] == {"x": 1}, "neither is changed"
    assert overlaid({"rate": None}, said, Sections)["rate"] == {"count": 1}


def test_names_that_differ_by_case_alone_reach_the_check() -> None:
    assert overlaid({}, {"limits": {"a": {}, "A": {"max": 1}}}, Sections) == {"limits": {"a": {}, "A": {"max": 1}}}


@pytest.mark.parametrize(
    ("path", "there"),
    [
        (("limits", "A", "rate", "count"), {"a": {"max": 1, "rate": {"per_s": 2}}, "b": {"max": 9}}),
        (("limits", "b"), {"a": {"max": 1, "rate": {"count": 5, "per_s": 2}}, "b": {"max": 2}}),
        (("limits", "a"), {"b": {"max": 9}}),
        (("limits", "c", "max"), LIMITS | {"b": {"max": 9}}),
    ],
)
def test_what_is_restored_is_as_in_the_base(path: tuple[str, ...], there: Any) -> None:
    ours = OURS | {"limits": LIMITS | {"b": {"max": 9}}}
    base = {"limits": {"b": {"max": 2}}}
    assert restored(ours, base, path, Sections) == OURS | {"limits": there}


def test_a_table_that_nobody_set_is_gone_with_its_last_setting() -> None:
    assert restored({"rate": {"count": 1}}, {}, ("rate", "count"), Sections) == {}
    assert restored({"rate": 1}, {"rate": {"count": 2}}, ("rate", "count"), Sections) == {"rate": {"count": 2}}


def test_each_setting_has_its_place() -> None:
    assert dict(leaves(OURS, Sections)) == {
        ("limits", "a", "max"): 1,
        ("limits", "a", "rate", "count"): 5,
        ("limits", "a", "rate", "per_s"): 2,
        ("limits", "b", "max"): 2,
        ("uses",): {"x": 1},
        ("names",): ["n"],
        ("rate", "count"): 3,
        ("rate", "per_s"): 4,
    }
    assert spelled(("limits", "A", "rate", "count"), Sections) == ("limits", "a", "rate", "count")
    assert (
        spelled(("uses", "x"), Sections)
        is spelled(("no",), Sections)
        is spelled(("rate", "count", "x"), Sections)
        is None
    )
    assert dotted(("types", "a b", "max")) == 'types."a b".max'
    assert within(("a", "b"), ("a",))
    assert not within(("a",), ("a", "b"))


def test_every_section_that_can_be_changed_is_one_of_the_settings() -> None:
    assert set(CHANGEABLE) <= set(Settings.model_fields)
    table = {"timeout": 5.0, "types": {"a": {"priority": 10}}, "retry": {"max": 1}}
    assert table_of(Settings.model_validate(table | {"types": {"A": {"priority": "high"}}})) == table
