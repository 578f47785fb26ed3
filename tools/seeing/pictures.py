"""The pictures of the manual: pages of a pool with a batch in which tasks run, wait and fail.

Law: nothing of the machine that they were made on is in them but the names of the pretended laptops.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from spoold.client.spool_client import SpoolClient
from spoold.client.view import Watch
from spoold.faces.top.source import Source
from spoold.faces.top.textual_app import svg_of
from tests.browser.chromium import chromium, opened
from tests.browser.stage import counting, serve, submit
from tests.e2e.pool import SETTINGS, Pool, wait_for

BATCH = "release-7"
SIZE = (1360, 860)
MOST_BYTES = 200_000
MODULES = ("auth", "billing", "mail", "search", "web")
CONFIG = f"{SETTINGS}\n[limits.gpu]\nmax = 1\n"


def spends(cost: float, tokens: int) -> list[str]:
    """A command that took work and money."""
    said = f'{{"cost_usd": {cost}, "tokens_used": {tokens}, "model": "coder"}}'
    return ["sh", "-c", f"echo done; echo '{said}' > \"$SPOOL_RESULT_FILE\"; exec sleep {0.4 + cost}"]


def tasks(pool: Pool) -> list[dict[str, Any]]:
    """A plan, an edit and a review of each module, tests, and a deployment that a person must approve."""
    made: list[dict[str, Any]] = [{"id": "plan", "type": "plan", "command": spends(0.42, 31_000)}]
    for number, module in enumerate(MODULES):
        edit: Any = spends(0.2 + number / 10, 9_000 + 2_500 * number)
        review: dict[str, Any] = {"type": "review", "command": spends(0.1, 4_000)}
        if module == "search":
            edit = ["sh", "-c", "echo '\033[31mFAILED\033[0m tests/test_search.py: 2 of 40'; exit 1"]
        if module == "web":
            edit = counting(pool, "web.lines")
        if module == "mail":
            review = {"type": "review", "command": counting(pool, "mail.lines"), "uses": {"gpu": 1}}
        if module == "billing":
            review["uses"] = {"gpu": 1}
        made.append({"id": f"edit-{module}", "type": "code", "command": edit, "after": "plan", "max_retries": 1})
        made.append({"id": f"review-{module}", "after": f"edit-{module}", **review})
    made.append(
        {
            "id": "test-all",
            "type": "test",
            "command": ["true"],
            "after": [f"review-{module}" for module in MODULES[:3]],
        }
    )
    ask = {"ask": "Deploy release 7?", "choices": ["yes", "staging"]}
    made.append({"id": "deploy", "type": "deploy", "command": ["true"], "after": "edit-auth", "approval": ask})
    return [{"batch": BATCH, **task} for task in made]


def make(folder: Path, scratch: Path) -> None:
    """Make all pictures in a folder. Errors: AssertionError for one that is too large."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, Pool(scratch / "pool", scratch / "desk", CONFIG) as pool:
        pool.master()
        for name in ("lap1", "lap2", "lap3"):
            pool.worker(name, slots=2)
        pool.ready("lap1", "lap2", "lap3")
        try:
            submit(pool, tasks(pool))
            for task in ("edit-search", "review-search", "review-auth"):
                wait_for(lambda task=task: pool.ended(task), f"{task} has ended")  # type: ignore[misc]
            wait_for(lambda: pool.claim("edit-web") and pool.json("asks"), "web is edited, and a person is asked")
            stage = serve(pool)
            with opened(browser, size=SIZE) as (page, _):
                page.goto(stage.url)
                state = page.context.storage_state()
            for scheme in ("light", "dark"):
                with opened(browser, state=state, size=SIZE, color_scheme=scheme) as (page, _):
                    take(page, stage.top, folder / f"overview-{scheme}.png")
            with opened(browser, state=state, size=SIZE) as (page, _):
                take(page, f"{stage.top}/tasks", folder / "tasks.png")
                take(page, f"{stage.top}/batch?name={BATCH}", folder / "batch.png")
            report = pool.path("report.html")
            pool.cli("report", BATCH, "-o", str(report))
            with opened(browser, size=SIZE, offline=True) as (page, _):
                take(page, report.as_uri(), folder / "report.png")
            pool.cli("graph", BATCH, "-o", str(pool.path("graph.svg")))
            shutil.copyfile(pool.path("graph.svg"), folder / "graph.svg")
            (folder / "top.svg").write_text(screen(pool))
        finally:
            for file in pool.desk.glob("*.lines"):
                file.unlink()
    for file in sorted(folder.iterdir()):
        size = file.stat().st_size
        print(f"{size:8,} bytes  {file.name}")
        assert size <= MOST_BYTES, f"{file.name} is larger than {MOST_BYTES:,} bytes"


def screen(pool: Pool) -> str:
    """The overview of `spool top`. Textual's pictures load a font from the network; this one takes what is there."""
    with SpoolClient(pool.root) as spool:
        view = spool.view()
        with Watch(view) as watch:
            wait_for(lambda: view.complete and bool(view.running()), "the view shows what runs")
            source = Source(view, spool, time.time, True)
            # The driver of the browser has an event loop in this thread.
            with ThreadPoolExecutor(1) as other:
                drawing = svg_of(source, watch.wait, "overview", size=(118, 30))
                drawn = other.submit(asyncio.run, drawing).result()
    return re.sub(r"@font-face\s*{.*?}\s*", "", drawn, flags=re.DOTALL)


def take(page: Page, url: str, file: Path) -> None:
    """Keep what a window shows of a page, when all of it is there."""
    page.goto(url)
    expect(page.locator("#state[data-again]")).to_have_count(0)
    page.screenshot(path=file, animations="disabled")
