"""The id of a task follows from its key, and from nothing else but the scope."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spoold.faces.mcp.delegation import id_of
from spoold.protocol.names import is_id

TEXTS = st.text(min_size=1, max_size=200)


@given(TEXTS, TEXTS, st.text(max_size=120))
def test_every_key_gives_an_id(scope: str, key: str, part: str) -> None:
    made = id_of(scope, key, part)
    assert is_id(made)
    assert made == id_of(scope, key, part)


def test_another_scope_key_or_part_is_another_task() -> None:
    made = {id_of("user a", "k"), id_of("user b", "k"), id_of("user a", "l"), id_of("user a", "k", "p")}
    assert len(made) == 4
    assert id_of("a", "bc") != id_of("ab", "c")
    assert id_of("s", "Make the API") == "Make-the-API-" + id_of("s", "Make the API")[-16:]


def test_an_id_stays_what_it_was() -> None:
    # Another release must find the task that this one made.
    assert id_of("user root@vm", "k1") == "k1-lv7ohpq114t4vm10"
