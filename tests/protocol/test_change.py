"""A change of settings says only what changes, and nothing that all nodes must agree on at one moment."""

import json

import pytest

from spoold.protocol.change import CHANGEABLE, changed, load_change, merged
from spoold.protocol.errors import BadFile
from spoold.protocol.settings import RetrySettings, Settings, TypeSettings

BASE = Settings.model_validate({"timeout": 60, "retry": {"max": 5, "factor": 3}, "types": {"review": {"timeout": 9}}})


def test_of_a_section_and_of_a_type_only_what_is_given_changes() -> None:
    change = changed({"retry": {"max": 1}, "types": {"Review": {"max_concurrent": 2}, "new": {"timeout": 3}}}, "c")
    found = merged(BASE, change)
    assert found.retry == RetrySettings(max=1, factor=3)
    assert found.types == {"review": TypeSettings(timeout=9, max_concurrent=2), "new": TypeSettings(timeout=3)}
    assert (found.timeout, found.drop, found.heartbeat) == (60, BASE.drop, BASE.heartbeat)
    assert merged(found, changed({"timeout": 7, "types": {"review": {"max_concurrent": None}}}, "c")).types == {
        "review": TypeSettings(timeout=9),
        "new": TypeSettings(timeout=3),
    }
    assert merged(BASE, changed({}, "c")) == BASE


@pytest.mark.parametrize("section", sorted({*Settings.model_fields} - {*CHANGEABLE}))
def test_what_nodes_must_agree_on_cannot_be_changed(section: str) -> None:
    with pytest.raises(BadFile, match="cannot be changed while nodes run") as caught:
        changed({section: {}}, "settings/1.w.json")
    assert (caught.value.file, caught.value.field) == ("settings/1.w.json", section)
    assert "spool.toml" in caught.value.mend


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"retyr": {"max": 1}}, "retyr"),
        ({"retry": {"max": -1}}, "retry.max"),
        ({"types": {"review": {"max_concurent": 2}}}, "types.review.max_concurent"),
    ],
)
def test_what_is_wrong_is_named(said: dict[str, object], field: str) -> None:
    data = json.dumps({"by": "ada", "settings": said, "later": 1}).encode()
    with pytest.raises(BadFile) as caught:
        load_change(data, "settings/1.w.json")
    assert (caught.value.file, caught.value.field) == ("settings/1.w.json", field)


def test_a_change_is_read_whatever_else_a_later_release_says_in_it() -> None:
    found = load_change(b'{"settings": {"ready": {"window": 8}}, "later": 1}', "c")
    assert (found.ready.window, found.model_fields_set) == (8, {"ready"})
    assert load_change(b"{}", "c").model_fields_set == set()
