"""The application over a real spool: what it shows is there, looking writes nothing, and an action is a request."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from spoold.client.spool_client import SpoolClient
from spoold.client.view import Watch
from spoold.faces.top import views
from spoold.faces.top.page import Page
from spoold.faces.top.source import Source
from spoold.faces.top.textual_app import TopApp
from tests.cli.commands import spool
from tests.support.picture import picture
from tests.support.view import PretendedSpool, PretendedView
from tests.top.pilot import SMALL, Seen, run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "s"
    assert spool("init", str(root)).code == 0
    for name in ("one", "two"):
        assert spool("submit", "--id", f"known-{name}", "--type", "review", root=root).code == 0
    return root


@asynccontextmanager
async def over(root: Path, start: str) -> AsyncIterator[Seen]:
    name, _, argument = start.partition(" ")
    page = cast("Page", views.page_of(name, argument))
    with SpoolClient(root) as client:
        view = client.view()
        with Watch(view) as watch:
            app = TopApp(Source(view, client, time.time), watch.wait, start=page)
            async with app.run_test(size=SMALL) as pilot:
                seen = Seen(app, pilot, PretendedView(tasks=[]), PretendedSpool())
                yield seen


@pytest.mark.parametrize("view", [*views.VIEWS, "task known-one", "log known-one", "history known-one", "batch none"])
def test_every_view_opens_over_a_spool_that_nobody_leads(root: Path, view: str) -> None:
    before = picture(root)

    async def test() -> None:
        async with over(root, view) as seen:
            await seen.shows("NO LEADER", "… 2 pending")
            await seen.until(lambda: seen.app.page.picture is not None)
            await seen.shows_no("reading …")

    run(test)
    assert picture(root) == before


def test_an_action_is_a_request_with_a_reason(root: Path) -> None:
    async def test() -> None:
        async with over(root, "tasks") as seen:
            await seen.shows("known-one", "known-two")
            await seen.press("c")
            await seen.shows("Cancel 1 task?")
            await seen.press("y")
            await seen.until(lambda: bool(list((root / "control").iterdir())))

    run(test)
    (request,) = (root / "control").iterdir()
    assert request.name.startswith("cancel.known-")
    assert "asked for in spool top" in request.read_text()
