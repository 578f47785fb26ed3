"""`from spoold import Spool, SpoolExecutor`: a spool inside one program, and callables on workers that allow them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from concurrent.futures import wait
from functools import partial
from pathlib import Path

import pytest

from spoold import Spool, SpoolExecutor, TaskFailed
from tests.e2e.pool import Pool, processes, wait_for


def test_a_local_spool_runs_commands_and_callables_and_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "local ünï"
    with Spool.local(directory, workers=2, slots=2) as spool:
        ids = spool.submit_many([{"command": ["echo", str(n)]} for n in range(6)])
        results = spool.wait(ids, timeout=40)
        assert [result.output for result in results.values()] == [f"{n}\n" for n in range(6)]
        with SpoolExecutor(spool, retry={"max": 0}) as pool:
            assert list(pool.map(os.path.basename, ["a/b", "c/d"])) == ["b", "d"]
            far = pool.submit(os.getpid)
            assert far.result(timeout=40) != os.getpid()
            broken = pool.submit(os.listdir, "/no/such/folder")
            with pytest.raises(TaskFailed, match="No such file"):
                broken.result(timeout=40)
        assert processes(str(directory))
    wait_for(lambda: not processes(str(directory)), "master and workers are gone")


def test_a_local_spool_ends_with_its_program(tmp_path: Path) -> None:
    directory = tmp_path / "local"
    script = (
        "import os, sys\nfrom spoold import Spool\n"
        f"spool = Spool.local({str(directory)!r}, slots=1)\nspool.submit(command=['sleep', '77'])\n"
        "print('up', flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "up\n", done.stderr
    wait_for(lambda: not processes(str(directory)), "master and workers are gone")


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "sys.exit()"])
def test_a_local_spool_in_a_temporary_directory_is_gone_with_its_program(end: str, tmp_path: Path) -> None:
    script = (
        "import os, sys\nfrom spoold import Spool\nspool = Spool.local(slots=1)\n"
        f"print(spool.directory, flush=True)\n{end}\n"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, env=environ
    )
    assert done.stdout.startswith(f"{tmp_path}/spoold-local-"), done.stderr
    wait_for(lambda: not list(tmp_path.glob("spoold-local-*")), "its directory is gone")


def test_a_spool_that_a_process_has_from_its_parent_submits_under_a_name_of_its_own(tmp_path: Path) -> None:
    # A program of its own, since a test's process has threads, and fork with threads is a warning.
    script = (
        "import os\nfrom spoold import Spool\n"
        "with Spool.local(slots=2) as spool:\n"
        "    spool.submit(command='true')\n"
        "    child = os.fork()\n"
        "    for number in range(30):\n"
        "        spool.submit(id=f'{child > 0}-{number}', command=['echo', f'{child > 0}-{number}'])\n"
        "    if child:\n"
        "        code = os.waitpid(child, 0)[1]\n"
        "        ids = [f'{who}-{number}' for who in (True, False) for number in range(30)]\n"
        "        results = spool.wait(ids, timeout=40)\n"
        "        print(code, sum(result.output.strip() == name for name, result in results.items()))\n"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, env=environ
    )
    assert (done.stdout, done.returncode) == ("0 60\n", 0), done.stderr


def test_an_executor_over_a_shared_spool(shared: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(shared.desk))
    callables = importlib.import_module("callables")  # it is made by the fixture

    with SpoolExecutor(str(shared.root), retry={"max": 0}) as pool:
        futures = [pool.submit(callables.double, number) for number in range(8)]
        wait(futures, timeout=40)
        assert [future.result() for future in futures] == [2 * number for number in range(8)]
        failing = pool.submit(callables.fail, "no luck")
        with pytest.raises(TaskFailed, match="no luck"):
            failing.result(timeout=40)


def test_a_map_in_chunks_over_a_shared_spool(shared: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(shared.desk))
    callables = importlib.import_module("callables")

    with SpoolExecutor(str(shared.root)) as pool:
        assert list(pool.map(callables.double, range(25), chunksize=4)) == [2 * number for number in range(25)]
        # What cannot be doubled fails in its place: {} * 2 is a TypeError.
        results = pool.map(callables.double, [1, 2, {}, 4, 5], chunksize=4)
        assert [next(results), next(results)] == [2, 4]
        with pytest.raises(TaskFailed, match="call 3 of 4: TypeError"):
            next(results)


def waits(pool: Pool, task_id: str) -> bool:
    return any(f".{task_id}." in name for name in pool.files("waiting"))


def test_only_callables_on_the_list_run(shared: Pool) -> None:
    shared.drop("allowed.json", {"id": "allowed", "python": "callables:double", "args": [21]})
    shared.drop("forbidden.json", {"id": "forbidden", "python": "os:getcwd"})
    shared.drop("many.json", {"id": "many", "python": "os:getcwd", "calls": [[], []]})
    assert shared.finish("allowed")["output"] == 42
    for name in ("forbidden", "many"):
        wait_for(partial(waits, shared, name), "it waits for a worker")
        told = str(shared.json("explain", name))
        assert "os" in told
        assert "allow" in told
        shared.cli("cancel", name)
        assert shared.finish(name)["status"] == "cancelled"


def test_a_local_spool_says_nothing_on_stderr_while_all_is_well(tmp_path: Path) -> None:
    script = (
        "from spoold import Spool\nwith Spool.local(slots=1) as spool:\n"
        "    task = spool.submit(command='true')\n    print(spool.wait([task], timeout=60)[task].status)\n"
    )
    environ = {name: value for name, value in os.environ.items() if name != "SPOOL_LOG_LEVEL"}
    for level, silent in (({}, True), ({"SPOOL_LOG_LEVEL": "info"}, False)):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={**environ, **level, "TMPDIR": str(tmp_path)},
        )
        assert done.stdout == "success\n"
        assert (done.stderr == "") is silent
        assert "Ctrl-C" not in done.stderr
