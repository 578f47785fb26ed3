"""A share without room: what is submitted waits, and the person at the terminal hears of it."""

from pathlib import Path

from tests.cli.command import make
from tests.cli.commands import spool

FULL = "[disk]\nwarn = 0.0000000001\nstop = 0.0000000001\nenough_free_mb = 1000000000\n"
SAYS = "warning: the share is full; the leader admits what you submit once there is room: free some room"


def test_submit_warns_and_submits_all_the_same(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    done = spool("submit", "--id", "a", "--", "true", root=root)
    assert (done.code, done.out, done.err) == (0, "a\n", "")
    (root / "spool.toml").write_text(FULL)
    done = spool("submit", "--id", "b", "--", "true", root=root)
    assert (done.code, done.out) == (0, "b\n")
    assert SAYS in " ".join(done.err.split())
    assert len(list((root / "pending").iterdir())) == 2
    assert "the share is full, so no drop is admitted" in spool("explain", "b", root=root).out
