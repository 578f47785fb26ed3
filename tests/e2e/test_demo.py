"""tools/demo on a tiny tree: it ends well and says so, it leaves nothing behind, and its proof can fail."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from spoold.protocol.event import Event
from spoold.protocol.snapshot import Node, Snapshot, TaskCounts
from tests.e2e.pool import wait_for
from tools.demonstration.dag import NoSources, build, find_sources
from tools.demonstration.ledger import Attempt
from tools.demonstration.proof import prove
from tools.demonstration.screen import Screen, tell

CHECKOUT = Path(__file__).resolve().parents[2]
WITHIN_S = 100
GOOD = '''"""A module."""


def outer(values: list[int]) -> int:
    total = 0
    for value in values:
        if value and value > 1:
            total += value
    return total
'''
BAD = "def broken(:\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project with code, twins, something that is no Python, and things that are none of its own."""
    root = tmp_path / "project"
    files = {"a.py": GOOD, "b/c.py": GOOD.replace("outer", "other").replace("total", "sum_"), "b/no.py": BAD}
    foreign = {
        ".hidden/x.py": GOOD,
        "venv/pyvenv.cfg": "",
        "venv/x.py": GOOD,
        "__pycache__/x.py": GOOD,
        "README": "no",
    }
    for name, text in {**files, **foreign}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def start(scratch: Path, *arguments: str, stdout: int = subprocess.PIPE, **variables: str) -> subprocess.Popen[str]:
    """The Python part of tools/demo, from another folder, with no terminal unless stdout is one."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tools.demonstration", *arguments],
        cwd=scratch.parent,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(scratch), "CI": "true", **variables},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def of(scratch: Path) -> list[psutil.Process]:
    """All processes that work in the scratch folder."""
    return [each for each in psutil.process_iter(["cmdline"]) if str(scratch) in " ".join(each.info["cmdline"] or [])]


def test_it_ends_well_and_says_so(tree: Path, scratch: Path) -> None:
    demo = start(scratch, "--keep", os.path.relpath(tree, scratch.parent))
    out, err = demo.communicate(timeout=WITHIN_S)
    assert demo.returncode == 0, out + err
    assert "3 Python files" in out
    assert "6 tasks submitted, 6 completed" in out
    assert "2 files, 1 that this Python cannot read, 18 lines, 2 functions, docstrings on 2 of 4" in out
    for part in (
        "a.py:4 outer, b/c.py:4 other",
        "No Python of this version",
        "b/no.py",
        "kill -9 of lap",
        "worker died",
    ):
        assert part in out, part
    assert "clean: 6 completed" in out
    assert "all claims hold" in out
    assert not of(scratch)
    (folder,) = scratch.iterdir()
    kept = sorted(path.name.partition(".")[0] for path in (folder / "spool" / "completed").iterdir())
    assert kept == ["cautions", "measure-001-a", "measure-002-b-c", "measure-003-b-no", "report", "twins"]


def end_in_the_middle(
    demo: subprocess.Popen[str], begun: str, number: int, scratch: Path, within_s: float = WITHIN_S
) -> None:
    """End a demonstration by a signal once it has told a line with `begun`: nothing of it lives on."""
    assert demo.stdout is not None
    assert any(begun in line for line in demo.stdout)
    # The demonstration does not count itself: a master, three workers, which begin one by one, what they started.
    processes = wait_for(lambda: found if len(found := of(scratch)) > 3 else None, "all of it runs", within_s)
    demo.send_signal(number)
    out, err = demo.communicate(timeout=within_s)
    assert demo.returncode == (130 if number == signal.SIGINT else -number), out + err
    psutil.wait_procs(processes, timeout=within_s)
    assert not of(scratch)
    if number == signal.SIGINT:
        assert not list(scratch.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_in_the_middle_it_leaves_nothing_running(tree: Path, scratch: Path, number: int) -> None:
    demo = start(scratch, str(tree))
    end_in_the_middle(demo, "tasks submitted", number, scratch)


@pytest.mark.parametrize(("make", "why"), [(False, "does not exist"), (True, "has no Python files")])
def test_nothing_to_work_on_is_said_with_the_mend(tmp_path: Path, scratch: Path, make: bool, why: str) -> None:
    if make:
        (tmp_path / "empty").mkdir()
    demo = start(scratch, "empty")
    out, err = demo.communicate(timeout=WITHIN_S)
    assert (demo.returncode, out) == (2, "")
    assert why in err
    assert "tools/demo PATH" in err
    assert not list(scratch.iterdir())


def test_files_are_chosen_evenly_where_there_are_too_many(tree: Path) -> None:
    assert find_sources(tree, 9).files == ("a.py", "b/c.py", "b/no.py")
    some = find_sources(tree, 2)
    assert (some.files, some.found) == (("a.py", "b/c.py"), 3)
    assert "2 Python files" in str(some)
    with pytest.raises(NoSources, match="is not a folder"):
        find_sources(tree / "a.py", 9)


def test_the_report_waits_for_every_other_task(tree: Path) -> None:
    tasks = build(find_sources(tree, 9), tree / "report.md", 0.0)
    assert tasks[-1]["dependencies"] == [task["id"] for task in tasks[:-1]]
    assert len({task["id"].lower() for task in tasks}) == len(tasks)


SUBMITTED = ["twins", "cautions", "measure-001-a", "report"]
ATTEMPTS = [
    Attempt("twins", "twins", 1, "lap1-x", 0.0, 2.0, "WORKER_DIED"),
    Attempt("twins", "twins", 2, "lap2-x", 5.0, 6.0, "COMPLETED"),
    Attempt("cautions", "cautions", 1, "lap1-x", 0.0, 0.1, "EXIT_NONZERO"),
    Attempt("cautions", "cautions", 2, "lap2-x", 1.0, 0.1, "COMPLETED"),
]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Path]:
    """What the tree of a spool looks like when all has gone well."""
    root = tmp_path / "spool"
    for state in ("pending", "waiting/l", "ready/l", "claimed/lap2-x", "completed", "failed", "rejected", "results"):
        (root / state).mkdir(parents=True)
    for name in ("twins.2", "cautions.2", "measure-001-a.1", "report.1"):
        (root / "completed" / f"{name}.lap2-x.json").write_text("{}")
        output = {"results": 3, "measured": 1} if name.startswith("report") else None
        (root / "results" / f"{name}.lap2-x.json").write_text(json.dumps({"output": output}))
    yield root
    shutil.rmtree(root)


def broken(root: Path, attempts: list[Attempt], killed: str = "lap1") -> list[str]:
    return [claim.sentence for claim in prove(root, SUBMITTED, attempts, killed, 1) if not claim.holds]


def test_the_proof_holds_for_a_whole_tree(spool: Path) -> None:
    assert broken(spool, ATTEMPTS) == []


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (("completed/measure-001-a.1.lap2-x.json", "gone"), "1 lost: measure-001-a"),
        (("completed/measure-001-a.1.lap2-x.json", "failed/measure-001-a.1.lap2-x.json"), "1 failed, 0 rejected"),
        (
            ("results/twins.2.lap2-x.json", "results/twins.1.lap1-x.json"),
            "1 completed without a result: twins.2.lap2-x",
        ),
        (("completed/twins.2.lap2-x.json", "claimed/lap2-x/0512.t.twins.a2f0c1.json"), "1 left over on the way"),
    ],
)
def test_the_proof_sees_what_is_out_of_place(spool: Path, move: tuple[str, str], said: str) -> None:
    (spool / move[0]).rename(spool / move[1])
    assert said in broken(spool, ATTEMPTS)


def test_the_proof_sees_a_task_that_is_there_twice(spool: Path) -> None:
    for state in ("completed", "results"):
        shutil.copy(spool / state / "twins.2.lap2-x.json", spool / state / "twins.3.lap3-x.json")
    assert "1 doubled: twins" in broken(spool, ATTEMPTS)


def test_the_proof_sees_that_nothing_was_killed_or_retried(spool: Path) -> None:
    assert len(broken(spool, [ATTEMPTS[1], ATTEMPTS[3]])) == 2
    assert len(broken(spool, ATTEMPTS, killed="lap3")) == 1


def test_the_screen_shows_states_laptops_and_events() -> None:
    text = io.StringIO()
    node = Node(
        worker="lap1-x", host="h", state="working", slots=2, running=1, cpus=1, mem_mb=1, mem_available_mb=1, load=0,
        tasks=({"id": "twins", "attempt": 2, "progress": {"done": 3, "of": 9}},),
    )  # fmt: skip
    picture = Snapshot(generated_at="", spool_id="s", tasks=TaskCounts(claimed=1, completed=4), nodes=(node,))
    gone = {"code": "WORKER_DIED", "worker": "lap3-x"}
    event = Event(at="", writer="m-desk-x", seq=1, event="RETURNED", task="twins", attempt=1, detail=gone)
    with Screen(Console(file=text, force_terminal=True, width=100), 8, live=True) as screen:
        screen.update(picture, [event, event])
    shown = text.getvalue()
    for part in ("4/8", "lap1", "twins 3/9 (attempt 2)"):
        assert part in shown
    assert tell(event) == "twins: attempt 1 died with lap3; another one follows"
    assert shown.rstrip().endswith("another one follows\x1b[0m")
