"""How heavy the list of many tasks is: nodes of its document, bytes, and how soon it is there.

Law: figures, and no verdict: times of a machine that does other things say little.
"""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.chromium import chromium, opened
from tests.browser.stage import fill, serve
from tests.e2e.pool import SETTINGS, Pool

WITHIN_MS = 120_000
PATHS = ("/tasks", "/tasks?state=waiting", "/tasks?q=t77", "/", "/batches")


def measure(number: int, scratch: Path) -> None:
    """Print the figures of each page."""
    with chromium() as browser, Pool(scratch / "pool", scratch / "desk", SETTINGS) as pool:
        fill(pool.root, number)
        stage = serve(pool)
        with opened(browser) as (page, _):
            page.set_default_timeout(WITHIN_MS)
            page.goto(stage.url)
            page.goto(f"{stage.top}/tasks")
            expect(page.locator("#matches")).to_contain_text(f"of {number:,} tasks", timeout=WITHIN_MS)
            expect(page.locator("#matches")).not_to_contain_text("so far", timeout=WITHIN_MS)
            print(f"{number:,} tasks\n{'page':24}{'nodes':>8}{'bytes':>10}{'answer ms':>11}{'loaded ms':>11}")
            for path in PATHS:
                print(_figures(page, stage.top + path, path))


def _figures(page: Page, url: str, path: str) -> str:
    began = time.monotonic()
    page.goto(url, wait_until="load")
    took_ms = 1000 * (time.monotonic() - began)
    seen = page.evaluate("""() => { const [at] = performance.getEntriesByType("navigation");
      return [document.querySelectorAll("*").length, at.encodedBodySize, at.responseEnd - at.requestStart]; }""")
    return f"{path:24}{seen[0]:8,}{seen[1]:10,}{seen[2]:11.0f}{took_ms:11.0f}"
