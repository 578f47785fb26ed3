"""A worker that cannot import a task's callable costs no task anything while another one can."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.pool import Pool, wait_for

MODULE = "import time\ndef run(number): time.sleep(0.5); return number\n"
TASKS = 8


def config(pool: Pool, name: str, path: Path) -> str:
    """A worker's file that allows the module, wherever it may be."""
    file = pool.path(f"{name}.toml")
    file.write_text(
        f'[python]\nallow = ["farmhand"]\npath = ["{path}"]\n[handlers.farm]\npython = "farmhand:run"\n', "utf-8"
    )
    return str(file)


def test_callables_run_where_their_module_is(pool: Pool) -> None:
    there, nowhere = pool.path("lib"), pool.path("none")
    there.mkdir()
    (there / "farmhand.py").write_text(MODULE)
    pool.master()
    pool.worker("lacking", "--config", config(pool, "lacking", nowhere))
    pool.ready("lacking")
    pool.drop("alone.json", {"id": "alone", "type": "farm", "input": 1})
    why = "no worker alive can run it: lacking-"
    wait_for(lambda: why in pool.run("explain", "alone").stdout, "it is explained")
    assert "it lacks the Python module farmhand" in pool.run("explain", "alone").stdout
    pool.worker("having", "--config", config(pool, "having", there), slots=1)
    pool.ready("having")
    for number in range(TASKS):
        pool.drop(f"c{number}.json", {"id": f"c{number}", "python": "farmhand:run", "args": [number]})
    assert pool.finish("alone")["output"] == 1
    for number in range(TASKS):
        result = pool.finish(f"c{number}")
        assert (result["output"], result["worker_id"].startswith("having-")) == (number, True)
        assert all(each["error"]["code"] == "SPAWN_FAILED" for each in pool.results(f"c{number}")[:-1])
    tries = [each for number in range(TASKS) for each in pool.results(f"c{number}") if each["status"] != "success"]
    assert len(tries) <= 4, "it leaves the module to the other, not only each task"
    names = [name for state in ("completed", "failed") for name in pool.listing(state)]
    assert json.dumps(names).count('"c') == TASKS
