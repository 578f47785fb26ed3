"""Opens the application on a terminal, or draws one of its views into an SVG without one.

Law: a thread that hangs in a share that is gone keeps nobody from leaving.

Touches: the clock, the environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING

from spoold.faces.top import views
from spoold.faces.top.app import TopApp
from spoold.faces.top.paged import WaitFor
from spoold.faces.top.source import Source

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

# For a view that is drawn into a file.
PATIENCE_S = 60.0


def run(spool: SpoolClient, *, read_only: bool, colour: str) -> None:
    """Show the spool until a person quits."""
    from spoold.client.view import Watch

    view = spool.view()
    with Watch(view, alone=True) as watch:
        app = TopApp(Source(view, spool, time.time, read_only), watch.wait, colour=colour_of(colour))
        asyncio.run(_shown(app))
    if app.return_code:
        raise SystemExit(app.return_code)


async def _shown(app: TopApp) -> None:
    """Show the application until it ends; a signal to end leaves the terminal as it was, too."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, partial(app.exit, return_code=128 + number))
    # Without the mouse a terminal selects text as always, and no movement crosses the network.
    await app.run_async(mouse=False)


def colour_of(wanted: str) -> str:
    """Return dark, light, or '' for no colours: as wanted, else as the environment says."""
    if os.environ.get("NO_COLOR"):
        return ""
    if wanted != "auto":
        return wanted
    # Some terminals say which colour is behind their text: 7 and 15 are white.
    ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if ground in ("7", "15") else "dark"


async def svg_of(source: Source, wait: WaitFor, view: str, *, size: tuple[int, int], colour: str = "dark") -> str:
    """Return a view as SVG, drawn without a terminal. view: a command, such as `tasks state:failed`."""
    name, _, argument = view.partition(" ")
    page = views.page_of(name, argument)
    if isinstance(page, str):
        raise ValueError(page)
    app = TopApp(source, wait, colour=colour, start=page)
    async with app.run_test(size=size) as pilot:
        await asyncio.wait_for(app.seen.wait(), PATIENCE_S)
        await pilot.pause()
        return app.export_screenshot(title="spool top")
