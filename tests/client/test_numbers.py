"""A number is given once: what seemed to fail, and is carried out late, replaces nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from spoold.client.connection import Numbers
from spoold.client.context import SharedContext
from spoold.client.spool_client import SpoolClient
from spoold.client.steps import Steps
from spoold.protocol.errors import Unavailable
from tests.client.cluster import Cluster
from tests.support.faults import FaultyFileSystem


def test_a_number_is_above_what_is_listed_and_what_was_given() -> None:
    numbers = Numbers()
    assert numbers.above("context/x", []) == 1
    assert numbers.above("context/x", []) == 2
    assert numbers.above("context/x", [7, 3]) == 8
    assert numbers.above("context/y", [3]) == 4


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
