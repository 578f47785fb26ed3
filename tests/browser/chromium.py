"""Debian's Chromium, and a page whose every word and every request is kept.

Law: where Chromium is missing a test is skipped and says why; it never passes without it. A page that writes a
warning or an error, breaks its policy, or asks another machine for anything fails the test that opened it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

WITHIN_MS = 30_000
expect.set_options(timeout=WITHIN_MS)  # five seconds are not enough where two cores play everything at once
WIDE, NARROW = (1280, 900), (360, 740)
# Of the rules of axe-core, those of WCAG and the best practices: all that it knows.
RULES: dict[str, Any] = {"resultTypes": ["violations"]}
POLICY = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));"""


def program() -> str:
    """The path of Chromium; without it the test is skipped. tools/browser names it: these plays take minutes, and
    tools/test is not to play them once in each of its processes.
    """
    found = os.environ.get("SPOOLD_CHROMIUM")
    if not found:
        pytest.skip(os.environ.get("SPOOLD_WITHOUT_CHROMIUM") or "tools/browser plays it in Debian's Chromium")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    path = program()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, headless=True, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


# This machine, and the name that `spool web` has on it.
OURS = re.compile(r"http://(127\.0\.0\.1|spool-[a-z2-7]{20}\.localhost):|data:|file:")


@dataclass
class Heard:
    """What a page said and asked for. allowed: parts of words that a test provokes."""

    words: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    allowed: tuple[str, ...] = ()

    def wrong(self) -> list[str]:
        """What must not be: words, and addresses that are not of this machine."""
        words = [word for word in self.words if not any(part in word for part in self.allowed)]
        return words + [url for url in self.asked if not OURS.match(url)]

    def listen(self, context: BrowserContext) -> None:
        """Keep what all pages of a context say and ask for."""
        context.add_init_script(POLICY)
        context.on("console", self._console)
        context.on("weberror", lambda error: self.words.append(str(error.error)))
        context.on("request", lambda request: self.asked.append(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.words.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")


@contextmanager
def opened(
    browser: Browser, *, state: Any = None, size: tuple[int, int] = WIDE, allowed: tuple[str, ...] = (), **more: Any
) -> Iterator[tuple[Page, Heard]]:
    """A page of a context of its own. state: its cookies; allowed: parts of words that the test provokes."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, storage_state=state, **more)
    context.set_default_timeout(WITHIN_MS)
    heard = Heard(allowed=allowed)
    heard.listen(context)
    try:
        yield context.new_page(), heard
    finally:
        context.close()
    wrong = heard.wrong()
    assert not wrong, "\n".join(wrong)


def violations(page: Page) -> list[str]:
    """What axe-core finds on a page, one line a fault."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{page.url} {one['id']}: {node['target']} {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
        for one in found
        for node in one["nodes"]
    ]


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide
