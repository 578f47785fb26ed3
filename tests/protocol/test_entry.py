"""What the tasks of a batch share: names that say the order, content of any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.context_entry import Entry, EntryName, content, directory, is_name, parse_entry
from spoold.protocol.errors import BadName


@given(st.binary(max_size=200))
def test_any_content_comes_back(data: bytes) -> None:
    assert Entry(**content(data)).data == data


def test_content_that_is_none_is_empty() -> None:
    assert Entry().data == b""
    assert Entry(base64="%%").data == b""


def test_a_name_says_all_that_decides() -> None:
    name = EntryName(3, "w-laptop1-7f3a", "decisions.v2.md", 1)
    assert name.encode() == "3.1.w-laptop1-7f3a.decisions.v2.md.json"
    assert parse_entry(name.encode()) == name
    with pytest.raises(BadName):
        EntryName(3, "w", "a/b", 1).encode()


@pytest.mark.parametrize("name", ["03.1.w.a.json", "3.1.W.a.json", "3.1.w..json", "3.w.a.json", "3.1.w.a.json.x"])
def test_any_other_name_is_none(name: str) -> None:
    assert parse_entry(name) is None


def test_it_sorts_by_number_and_then_by_author() -> None:
    names = ["10.1.a.x.json", "9.1.b.x.json", "9.1.a.x.json"]
    assert [name.encode() for name in sorted(filter(None, map(parse_entry, names)))] == names[::-1]


@pytest.mark.parametrize(
    ("text", "may"), [("a", True), ("a.md", True), ("", False), ("a.", False), (".a", False), ("a" * 65, False)]
)
def test_what_may_be_a_name(text: str, may: bool) -> None:
    assert is_name(text) is may


def test_batches_that_differ_by_case_are_one() -> None:
    assert directory("Nightly") == directory("nightly") == "context/nightly"
