"""A change of settings says only what changes, and nothing that all nodes must agree on at one moment."""

import json
from typing import Any

import pytest

from spoold.protocol.errors import BadFile
from spoold.protocol.settings import RetrySettings, Settings, TypeSettings
from spoold.protocol.settings_change import CHANGEABLE, Change, load_change, merged, path_of

BASE = Settings.model_validate({"timeout": 60, "retry": {"max": 5, "factor": 3}, "types": {"review": {"timeout": 9}}})
FILE = "settings/1.w.json"


def after(said: dict[str, Any], *unset: str, now: Settings = BASE) -> Settings:
    """The settings with a change that was read from a file."""
    change = load_change(json.dumps({"settings": said, "unset": unset}).encode(), FILE)
    return merged(BASE, now, change, FILE)


def test_of_a_section_and_of_a_type_only_what_is_given_changes() -> None:
    found = after({"retry": {"max": 1}, "types": {"Review": {"max_concurrent": 2}, "new": {"timeout": 3}}})
    assert found.retry == RetrySettings(max=1, factor=3)
    assert found.types == {"review": TypeSettings(timeout=9, max_concurrent=2), "new": TypeSettings(timeout=3)}
    assert (found.timeout, found.drop, found.heartbeat) == (60, BASE.drop, BASE.heartbeat)
    assert after({"timeout": 7, "types": {"review": {"max_concurrent": None}}}, now=found).types == {
        "review": TypeSettings(timeout=9),
        "new": TypeSettings(timeout=3),
    }
    assert after({}) == BASE


def test_a_field_with_two_names_is_one_setting() -> None:
    now = after({"classes": {"a": {"slots": 1}, "b": {"slots": 1}}, "types": {"review": {"class": "a"}}})
    for name in ("class", "bulkhead"):
        assert after({"types": {"review": {name: "b"}}}, now=now).of("review").bulkhead == "b"
        assert after({}, f"types.review.{name}", now=now).of("review").bulkhead is None


def test_what_is_unset_is_again_as_in_spool_toml() -> None:
    now = after({"retry": {"max": 1, "factor": 9}, "types": {"review": {"timeout": 1}, "new": {"timeout": 3}}})
    assert after({}, "retry.max", now=now).retry == RetrySettings(max=5, factor=9)
    assert after({}, "retry", "timeout", now=now).retry == BASE.retry
    assert after({}, "types.Review.timeout", "types.new", now=now).types == BASE.types
    assert after({}, "types", now=now) == after({"retry": {"max": 1, "factor": 9}})
    # `settings` is laid over what `unset` left.
    assert after({"retry": {"max": 2}}, "retry", now=now).retry == RetrySettings(max=2, factor=3)
    # What this release does not know, and what nobody has set, is no loss.
    assert after({}, "retry.maks", "types.none.timeout", "ready.window", "later.field", now=now) == now


@pytest.mark.parametrize(
    ("key", "path"),
    [("retry.max", ("retry", "max")), ('types."a b" . max', ("types", "a b", "max")), ("timeout", ("timeout",))],
)
def test_a_key_is_written_as_in_toml(key: str, path: tuple[str, ...]) -> None:
    assert path_of(key) == path


@pytest.mark.parametrize("key", ["", "a b", "a..b", "a = 1\nb", "a = 1 #", "[a]\nb", "a.b = {c = 0}\nd", "a\0", "#"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(BadFile, match="is no key"):
        path_of(key)
    with pytest.raises(BadFile, match="is no key") as caught:
        load_change(json.dumps({"unset": [key]}).encode(), FILE)
    assert (caught.value.file, caught.value.field) == (FILE, "unset")


@pytest.mark.parametrize("section", sorted({*Settings.model_fields} - {*CHANGEABLE}))
def test_what_nodes_must_agree_on_cannot_be_changed(section: str) -> None:
    changes: list[dict[str, Any]] = [{"settings": {section: {}}}, {"unset": [section]}]
    for said in changes:
        with pytest.raises(BadFile, match="cannot be changed while nodes run") as caught:
            load_change(json.dumps(said).encode(), FILE)
        assert (caught.value.file, caught.value.field) == (FILE, section)
        assert "spool.toml" in caught.value.mend


def test_what_cannot_be_changed_is_named_with_its_value() -> None:
    with pytest.raises(BadFile, match=r"heartbeat\.misses: cannot be changed while nodes run\. Given: 9\."):
        after({"heartbeat": {"misses": 9}})


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"retyr": {"max": 1}}, "retyr"),
        ({"retry": {"max": -1}}, "retry.max"),
        ({"retry": 7}, "retry"),
        ({"types": {"review": {"max_concurent": 2}}}, "types.review.max_concurent"),
        ({"types": {"new": {}, "New": {"timeout": 1}}}, "types"),
    ],
)
def test_what_is_wrong_is_named(said: dict[str, object], field: str) -> None:
    with pytest.raises(BadFile) as caught:
        after(said)
    assert (caught.value.file, caught.value.field) == (FILE, field)


def test_a_change_is_read_whatever_else_a_later_release_says_in_it() -> None:
    found = load_change(b'{"settings": {"ready": {"window": 8}}, "later": 1}', "c")
    assert merged(BASE, BASE, found, "c").ready.window == 8
    assert load_change(b"{}", "c").settings == {} == Change().settings
