"""A job starts where its task may start and nowhere else, whatever a link says at that moment."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spoold.runner import running_job
from spoold.runner.job import Call, Command, Ending, Within
from tests.runner.processes import Bench

Start = Callable[[Path, tuple[Path, ...]], Ending]
TABLE = "[handlers.build] in /etc/spoold/lab.toml"


@pytest.fixture(params=["launched", "forked", "called"])
def start(request: pytest.FixtureRequest, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a job in a directory, below some others; by each of the ways in which a job can begin."""
    if request.param == "forked":
        # What a supervisor does where no launcher can be used: it loads this first.
        (bench.where / "sitecustomize.py").write_text("")
        monkeypatch.setattr("spoold.runner.job_runner._BOOT", FORKED)
    run = (
        Call("os:getcwd")
        if request.param == "called"
        else Command((sys.executable, "-c", "import os; print(os.getcwd())"))
    )

    def begin(cwd: Path, tops: tuple[Path, ...]) -> Ending:
        return bench.ended(bench.job(run, cwd=str(cwd), within=Within(tuple(map(str, tops)), TABLE)))

    return begin


FORKED = (
    "import sys; sys.path.append({root!r}); from spoold.runner import running_job; "
    "running_job.launcher_usable = lambda: False; "
    "from spoold.runner.supervisor_boot import main; main({worker}, {where!r}, {calls!r})"
)


def where(ending: Ending) -> str:
    assert ending.exit_code == 0, ending
    return str(ending.value) if ending.returned else ending.tail.strip()


def refused(ending: Ending) -> str:
    assert (ending.kind, ending.exit_code, ending.tail) == ("refused", None, "")
    return ending.message


def test_at_a_directory_or_below_it(start: Start, tmp_path: Path) -> None:
    top, inner = tmp_path / "repo", tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    assert running_job.launcher_usable()
    assert where(start(top, (top,))) == str(top)
    assert where(start(inner, (tmp_path / "none", top))) == str(inner)
    assert where(start(inner, (Path("/"),))) == str(inner)


def test_not_beside_it_however_it_is_called(start: Start, tmp_path: Path) -> None:
    for name in ("repo", "repository", "rep"):
        (tmp_path / name).mkdir()
    for name in ("repository", "rep", ""):
        message = refused(start(tmp_path / name, (tmp_path / "repo",)))
        assert f'add "{tmp_path / name}" to allow_cwd under {TABLE}' in message


def test_not_through_a_link_that_leads_out_of_it(start: Start, tmp_path: Path) -> None:
    top, outside = tmp_path / "repo", tmp_path / "outside" / "deep"
    top.mkdir()
    outside.mkdir(parents=True)
    (top / "link").symlink_to(outside)
    (top / "up").symlink_to("..")
    for cwd, real in ((top / "link", outside), (top / "up" / "outside", outside.parent), (top / "up", tmp_path)):
        assert f"cwd {cwd}, which is {real}, is not" in refused(start(cwd, (top,)))
    (top / "inner").mkdir()
    (top / "loop").symlink_to("inner")
    assert where(start(top / "loop", (top,))) == str(top / "inner")


def test_the_allowed_directory_may_be_a_link_itself(start: Start, tmp_path: Path) -> None:
    (tmp_path / "data" / "a").mkdir(parents=True)
    (tmp_path / "repo").symlink_to(tmp_path / "data")
    for cwd in (tmp_path / "repo" / "a", tmp_path / "data" / "a"):
        assert where(start(cwd, (tmp_path / "repo",))) == str(tmp_path / "data" / "a")


def test_what_is_missing_is_missing_only_where_it_may_be_looked_for(start: Start, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    missing = start(tmp_path / "repo" / "none", (tmp_path / "repo",))
    assert (missing.kind, missing.exit_code) == ("spawn_failed", 127)
    assert "ENOENT" in missing.message
    assert "ENOENT" not in refused(start(tmp_path / "none", (tmp_path / "repo",)))


def test_a_link_that_is_moved_while_it_starts_leads_nowhere_else(start: Start, tmp_path: Path) -> None:
    """Whoever may write in the directory swaps it for a link as fast as possible: no start is ever outside."""
    top, outside = tmp_path / "repo", tmp_path / "outside"
    (top / "dir").mkdir(parents=True)
    outside.mkdir()
    (top / "aside").symlink_to(outside)
    pid = os.fork()
    if pid == 0:
        while True:
            os.rename(top / "dir", top / "away")
            os.rename(top / "aside", top / "dir")
            os.rename(top / "dir", top / "aside")
            os.rename(top / "away", top / "dir")
    try:
        seen = {where(ending) for ending in (start(top / "dir", (top,)) for _ in range(40)) if ending.exit_code == 0}
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    # It may have been renamed since it was entered, within the directory.
    assert seen <= {str(top / "dir"), str(top / "away")}
