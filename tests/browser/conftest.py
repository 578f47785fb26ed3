"""One browser and two spools for all plays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import chromium, opened
from tests.browser.stage import CONFIG, MANY, Stage, fill, full, serve
from tests.e2e.pool import Pool


@dataclass(frozen=True)
class Guest:
    """Somebody who was let in. state: the cookie, for further contexts; landed: the address after the token."""

    stage: Stage
    browser: Browser
    state: Any
    landed: str

    def page(self, **more: Any) -> Any:
        """Open a page in a context of its own."""
        return opened(self.browser, state=self.state, **more)


def enter(browser: Browser, stage: Stage) -> Guest:
    """Use the URL that works once."""
    with opened(browser) as (page, _):
        page.goto(stage.url)
        return Guest(stage, browser, page.context.storage_state(), page.url)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="session")
def guest(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with full(tmp_path_factory.mktemp("full")) as stage:
        yield enter(browser, stage)


@pytest.fixture(scope="session")
def alone(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """A spool without a task, a worker and a leader; nobody may act."""
    top = tmp_path_factory.mktemp("alone")
    with Pool(top / "spool", top / "desk", CONFIG) as pool:
        yield enter(browser, serve(pool))


@pytest.fixture(scope="session")
def many(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """A spool of many tasks that wait, and nobody who does anything."""
    top = tmp_path_factory.mktemp("many")
    with Pool(top / "spool", top / "desk", CONFIG) as pool:
        fill(pool.root, MANY)
        yield enter(browser, serve(pool))
