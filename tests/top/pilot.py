"""The application on a pretended terminal, over a pretended spool, and what is seen there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from textual.pilot import Pilot

from spoold.faces.top import views
from spoold.faces.top.source import Source
from spoold.faces.top.textual_app import TopApp
from tests.support.view import NOW, PretendedSpool, PretendedView

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient
    from spoold.client.view import View

SMALL, LARGE = (80, 24), (200, 60)
PATIENCE_S = 20.0


class Seen:
    """One application that runs. view, spool: what it looks at."""

    def __init__(self, app: TopApp, pilot: Pilot[None], view: PretendedView, spool: PretendedSpool) -> None:
        self.app, self.pilot, self.view, self.spool = app, pilot, view, spool

    @property
    def text(self) -> str:
        """The screen as text."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until something holds, and show the screen where it never does."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not true():  # noqa: ASYNC110 - the screen has no event for its contents
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"never so:\n{self.text}") from None

    async def shows(self, *words: str) -> None:
        """Wait until all of these are on the screen."""
        await self.until(lambda: all(each in self.text for each in words))

    async def shows_no(self, word: str) -> None:
        """Wait until this is not on the screen."""
        await self.until(lambda: word not in self.text)

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        await self.pilot.press(*keys)

    async def type(self, opener: str, words: str) -> None:
        """Open the line at the bottom, type, and press Enter."""
        await self.pilot.press(opener)
        self.app.query_one("#prompt").value = ""  # type: ignore[attr-defined]
        await self.pilot.press(*words, "enter")


@asynccontextmanager
async def opened(
    start: str = "overview",
    *,
    size: tuple[int, int] = SMALL,
    view: PretendedView | None = None,
    colour: str = "dark",
    read_only: bool = False,
) -> AsyncIterator[Seen]:
    """Open a view, and wait until it shows something."""
    pretended, spool = view or PretendedView(), PretendedSpool()
    name, _, argument = start.partition(" ")
    page = views.page_of(name, argument)
    assert not isinstance(page, str), page
    source = Source(cast("View", pretended), cast("SpoolClient", spool), lambda: NOW, read_only)
    app = TopApp(source, pretended.wait, colour=colour, start=page)
    async with app.run_test(size=size) as pilot:
        seen = Seen(app, pilot, pretended, spool)
        await seen.until(app.seen.is_set)
        await pilot.pause()
        yield seen


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run what a test does in a loop of its own."""

    async def bounded() -> None:
        async with asyncio.timeout(4 * PATIENCE_S):
            await test()

    asyncio.run(bounded())
