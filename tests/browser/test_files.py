"""Goal: the files that spool writes open offline in a real browser, and say the same as the commands.

Method: `spool report -o`, `spool status -o`, `spool graph` and `spool timeline` of a pool, opened as files
in a context that has no network.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol.amount import figure
from tests.browser.chromium import NARROW, opened, overflow, violations
from tests.browser.stage import BATCH, batch

SCHEMES = ("light", "dark")


def written(guest: Any, *command: str, name: str) -> tuple[Path, str]:
    """Have a command write a file; the address of the file, too."""
    file: Path = guest.stage.pool.path(name)
    guest.stage.pool.cli(*command, str(file))
    return file, file.as_uri()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_report_opens_offline_and_has_the_numbers_of_status(guest: Any, scheme: str) -> None:
    _, url = written(guest, "report", BATCH, "-o", name=f"report-{scheme}.html")
    status = guest.stage.pool.json("status", "--batch", BATCH)
    with opened(guest.browser, color_scheme=scheme, offline=True) as (page, heard):
        page.goto(url)
        assert not violations(page)
        assert [one for one in heard.asked if one != url] == []
        tiles = {}
        for tile in page.locator(".tiles > div").all():
            number, _, name = tile.inner_text().partition("\n")
            tiles[re.sub(r"[^a-z ]", "", name.lower()).strip()] = number.strip()
        counts = {state: number for state, number in status["tasks"].items() if number}
        assert {state: tiles.get(state) for state in counts} == {s: figure(n) for s, n in counts.items()}
        drawings = page.locator("main svg")
        assert drawings.count() == 2, "a timeline and a graph"
        assert page.locator("main svg").nth(0).locator("rect").count() >= len(batch())
        assert page.locator("main svg").nth(1).locator("rect").count() >= len(batch())
        assert page.locator("script").count() == 0


def test_a_report_fits_a_telephone(guest: Any) -> None:
    _, url = written(guest, "report", BATCH, "-o", name="small.html")
    with opened(guest.browser, size=NARROW, offline=True) as (page, _):
        page.goto(url)
        assert overflow(page) == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_status_page_opens_offline(guest: Any, scheme: str) -> None:
    _, url = written(guest, "status", "-o", name=f"status-{scheme}.html")
    with opened(guest.browser, color_scheme=scheme, offline=True) as (page, heard):
        page.goto(url)
        assert not violations(page)
        assert [one for one in heard.asked if one != url] == []


@pytest.mark.parametrize("kind", ["graph", "timeline"])
def test_a_picture_opens_alone(guest: Any, kind: str) -> None:
    _, url = written(guest, kind, BATCH, "-o", name=f"{kind}.svg")
    with opened(guest.browser, offline=True) as (page, heard):
        page.goto(url)
        assert page.locator("rect").count() >= len(batch())
        assert [one for one in heard.asked if one != url] == []
