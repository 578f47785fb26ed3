"""The spools that the browser sees: a pool that does everything at once, and one without a task.

Law: real processes on loopback, with data of their own; what a page may change belongs to one test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.test_verbs import put
from tests.e2e.pool import SETTINGS, Pool, wait_for

MANY = 20_000
KINDS = ("build", "code", "review", "test")
NODES = ("desk", "lap1", "lap2")
BATCH = "nightly"
CONFIG = f"""{SETTINGS}
[limits.api]
max = 1

[budgets.daily]
per = "day"
cost_usd = 10.0
"""
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b]0;title\x07\x1b[31mred\x1b[0m"
COSTS = 'echo \'{"cost_usd": 0.25, "tokens_used": 1200, "model": "m1"}\' > "$SPOOL_RESULT_FILE"'


@dataclass(frozen=True)
class Stage:
    """A pool, and the URL that opens its pages once."""

    pool: Pool
    url: str

    @property
    def top(self) -> str:
        """The address of its pages."""
        return self.url.partition("/enter")[0]


def serve(pool: Pool, *options: str) -> Stage:
    """Start `spool web`, and wait for its URL."""
    log = pool.spawn("web", "web", *options).log
    pattern = re.compile(r"http://spool-\w+\.localhost:\d+/enter\?token=\S+(?=\n)")
    url = wait_for(lambda: pattern.search(log.read_text()), "a URL")
    return Stage(pool, url.group())


def counting(pool: Pool, name: str) -> list[str]:
    """A command that writes a line for each line of a file of this test, until it is taken away."""
    file = pool.path(name)
    file.touch()
    code = f"""import pathlib, time
told, file = 0, pathlib.Path({str(file)!r})
print("begun", flush=True)
while file.exists():
    lines = file.read_text().splitlines()
    for line in lines[told:]:
        print(line, flush=True)
    told = len(lines)
    time.sleep(0.05)
"""
    return ["python3", "-c", code, pool.mark]


def batch() -> list[dict[str, Any]]:
    """A batch of every end: success, failure, what needs a failed task, what a person must approve."""
    paid = ["sh", "-c", f"echo fetched; {COSTS}"]
    tasks: list[dict[str, Any]] = [{"id": "fetch", "type": "build", "command": paid}]
    tasks += [
        {"id": f"compile-{part}", "type": "build", "command": ["sh", "-c", "echo compiled"], "after": "fetch"}
        for part in ("core", "web", "docs")
    ]
    tasks += [
        {"id": "lint", "type": "test", "command": ["true"], "after": "compile-core"},
        {
            "id": "check",
            "type": "test",
            "command": ["sh", "-c", f"printf '%s\\n' {_quoted(EVIL)}; echo no such host >&2; exit 3"],
            "after": "compile-core",
            "max_retries": 0,
        },
        {"id": "publish", "type": "deploy", "command": ["true"], "after": ["check", "lint"]},
        {
            "id": "deploy",
            "type": "deploy",
            "command": "true  # quick check\ntrue",
            "after": "lint",
            "approval": {"ask": "Deploy it to everybody?"},
        },
    ]
    return [{"batch": BATCH, **task} for task in tasks]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def submit(pool: Pool, tasks: list[dict[str, Any]], *options: str) -> None:
    """Submit tasks together."""
    pool.cli("submit", *options, "-", stdin="".join(json.dumps(task) + "\n" for task in tasks).encode())


@contextmanager
def full(top: Path) -> Iterator[Stage]:
    """A pool of three nodes with tasks in each state, and its pages, which may act."""
    with Pool(top / "spool", top / "desk", CONFIG) as pool:
        pool.spawn("desk", "up", "--name", "desk", "--slots", "2", "--allow-command")
        pool.worker("lap1", slots=2)
        pool.worker("lap2", slots=2)
        pool.ready(*NODES)
        submit(pool, [{**task, "batch": BATCH} for task in batch()])
        submit(pool, [{"id": f"old-{number}", "type": "build", "command": ["true"]} for number in range(8)])
        for name in ("long", "doomed"):
            pool.submit(name, counting(pool, f"{name}.lines"), type="serve", name=f"serves {EVIL[:30]}")
        pool.submit("second", counting(pool, "second.lines"), type="serve", uses={"api": 1})
        wait_for(lambda: pool.claim("second"), "second runs")
        pool.submit("third", "true", type="serve", uses={"api": 1})
        pool.drop("bad.json", "{")
        for task in ("fetch", "check", "publish"):
            wait_for(lambda task=task: pool.ended(task), f"{task} has ended")  # type: ignore[misc]
        wait_for(lambda: pool.json("status")["tasks"].get("waiting"), "a task waits")
        try:
            yield serve(pool, "--allow-actions")
        finally:
            # A worker that drains waits for what it runs.
            for file in pool.desk.glob("*.lines"):
                file.unlink()


def fill(root: Path, number: int) -> None:
    """Put so many tasks where they wait. No content is needed: names say all that a list shows."""
    for kind in KINDS:
        (root / "waiting" / f"type={kind}").mkdir(parents=True, exist_ok=True)
    first = "t0"
    put(root, f"waiting/type=build/5000.0000000001-1.{first}.a1f0c0.json", {"id": first, "command": ["true"]})
    for at in range(1, number):
        kind = KINDS[at % len(KINDS)]
        (root / "waiting" / f"type={kind}" / f"5000.{at:010d}-1.t{at}.a1f0c0.json").touch()
