"""A number is given once: what seemed to fail, and is carried out late, replaces nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.client.context_and_steps import SharedContext, Steps
from spoold.client.spool.connection import Numbers
from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import BadFile, Unavailable
from spoold.protocol.names import COUNT_MAX, NUMBER_MOST
from spoold.protocol.settings_change import ChangeName
from tests.client.cluster import Cluster
from tests.support.faults import FaultyFileSystem


def named(*listed: int) -> list[ChangeName]:
    return [ChangeName(number, "x") for number in listed]


def test_a_number_is_above_what_is_listed_and_what_was_given() -> None:
    numbers = Numbers()
    assert numbers.above("context/x", []) == 1
    assert numbers.above("context/x", []) == 2
    assert numbers.above("context/x", named(7, 3)) == 8
    assert numbers.above("context/y", named(3)) == 4


@given(st.sets(st.integers(1, 60)), st.integers(NUMBER_MOST - 60, COUNT_MAX), st.integers(0, 5))
def test_of_files_that_leave_no_room_the_one_is_named_from_which_all_others_were_counted_on(
    before: set[int], strange: int, after: int
) -> None:
    """Names-a: the name that did not fit was told, and neither the file that was the cause nor a fix."""
    numbers, listed = Numbers(), {*before, *range(strange, min(strange + after, COUNT_MAX) + 1)}
    if max(listed) <= NUMBER_MOST:
        assert numbers.above("steps/t", named(*listed)) == max(listed) + 1
        return
    for _ in range(2):
        with pytest.raises(BadFile) as told:
            numbers.above("steps/t", named(*listed))
        assert told.value.file == f"steps/t/{strange}.x.json"
        assert f"at most {NUMBER_MOST:,} does. Fix: rename it to a lower number" in str(told.value)
    assert numbers.above("steps/t", named(*before)) == max(before, default=0) + 1, "nothing was given meanwhile"


def test_a_writer_that_gave_the_last_number_with_room_goes_on_once_the_file_is_gone() -> None:
    numbers = Numbers()
    for turn in range(1, 4):
        assert numbers.above("steps/t", named(NUMBER_MOST)) == NUMBER_MOST + turn
        with pytest.raises(BadFile):
            numbers.above("steps/t", named(NUMBER_MOST + turn))
    assert numbers.above("steps/t", []) == NUMBER_MOST + 4


class Slow(FaultyFileSystem):
    """The network keeps one change, says that it failed, and fails to remove the file that was to be published."""

    kept: tuple[str, str] | None = None
    room = "nowhere"

    def rename(self, src: str, dst: str) -> None:
        if self.kept is None and dst.startswith(self.room):
            self.kept = src, dst
            raise OSError(errno.EIO, os.strerror(errno.EIO), src)
        super().rename(src, dst)

    def unlink(self, path: str) -> None:
        if self.kept is not None and path == self.kept[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        super().unlink(path)


@pytest.mark.parametrize("what", ["context", "steps"])
def test_what_was_published_late_replaces_nothing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    for name, value in (("ROOT", "spool"), ("TASK_ID", "t"), ("ATTEMPT", "1")):
        monkeypatch.setenv(f"SPOOL_{name}", value)
    mount = Slow(cluster.fs)
    with SpoolClient("spool", filesystem=mount, clock=cluster.clock) as spool:
        context, steps = SharedContext(spool, "b"), Steps(spool)
        add: Callable[[str], object] = {
            "context": lambda text: context.put("plan", text.encode()),
            "steps": steps.save,
        }[what]
        add("before")
        mount.room = what
        with pytest.raises(Unavailable):
            add("late")
        add("after")
        assert mount.kept is not None
        src, dst = mount.kept
        assert dst not in cluster.fs.files()
        cluster.fs.rename(src, dst)
        assert len(cluster.fs.files(what)) == 3
        assert (context.get("plan")[1] if what == "context" else steps.last()) in (b"after", (3, "after"))
