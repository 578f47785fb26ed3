"""The tree: paths are spelled in one place, and every directory is named on every server."""

import re

from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol import layout
from tests.protocol import strategies as some


def test_every_directory_has_a_purpose_and_a_plain_name() -> None:
    assert all(re.fullmatch("[a-z]+", name) and purpose for name, purpose in layout.TREE.items())


def test_paths_are_relative_and_within_their_directory() -> None:
    assert layout.join("a", "b", "c") == "a/b/c"
    assert layout.waiting("lane", "name") == "waiting/lane/name"
    assert layout.ready("lane", "name") == "ready/lane/name"
    assert layout.claimed("worker", "name") == "claimed/worker/name"
    assert layout.tmp("writer", "name") == "tmp/writer/name"


@given(st.lists(some.ids, min_size=1, max_size=20))
def test_an_id_has_one_archive_directory_whatever_its_case(ids: list[str]) -> None:
    for task_id in ids:
        assert re.fullmatch("archive/[0-9a-f]{2}", layout.bucket(task_id))
        assert layout.bucket(task_id) == layout.bucket(task_id.upper())


def test_ids_are_spread_over_the_archive() -> None:
    assert len({layout.bucket(f"task-{number}") for number in range(5000)}) == 256
