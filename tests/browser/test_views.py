"""Goal: everybody can use every page: axe-core finds nothing, no page is wider than a telephone, none is heavy.

Method: all pages of a full, an empty and a failing spool, light and dark, in Debian's Chromium. The colours of states
are those that the browser computed, for four kinds of sight.
"""

from __future__ import annotations

import http.client
import itertools
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from spoold.pictures.palette import GLYPHS
from tests.browser.chromium import NARROW, overflow, violations
from tests.browser.stage import BATCH, MANY
from tests.pictures.colours import SIGHTS, contrast, distance

TOPS = ("/", "/tasks", "/batches", "/nodes", "/gates", "/asks", "/alerts", "/events")
OF_TASKS = (
    "/tasks?state=failed",
    "/tasks?q=nothing-at-all",
    "/tasks/check",
    "/tasks/long",
    "/tasks/deploy",
    "/tasks/publish",
    "/tasks/check/history",
    "/tasks/check/log",
    "/tasks/check/log?q=host",
    f"/batch?name={BATCH}",
    "/tasks/no-such-task",
    "/act/cancel?state=claimed",
    "/act/retry?id=check",
    "/act/pause",
    "/act/drain",
)
SCHEMES = ("light", "dark")
APART = 10.0
PAGE_BYTES = 150_000
NODES_MOST = 3_000
# The page of a task that is not there says so with its status, and the browser notes that.
MISSING = ("404 (Not Found)",)


def settle(page: Any, url: str) -> None:
    """Open a page, and wait until no part of it is still to come."""
    page.goto(url)
    expect(page.locator("#state[data-again]")).to_have_count(0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_on_a_full_spool(guest: Any, scheme: str) -> None:
    with guest.page(color_scheme=scheme, allowed=MISSING) as (page, _):
        found = []
        for path in (*TOPS, *OF_TASKS):
            settle(page, guest.stage.top + path)
            found += violations(page)
        page.keyboard.press("?")
        expect(page.locator("#help")).to_be_visible()
        assert not found + violations(page)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_on_an_empty_spool(alone: Any, scheme: str) -> None:
    with alone.page(color_scheme=scheme) as (page, _):
        found = []
        for path in TOPS:
            settle(page, alone.stage.top + path)
            found += violations(page)
        assert not found


def test_no_page_is_wider_than_a_telephone(guest: Any) -> None:
    with guest.page(size=NARROW, allowed=MISSING) as (page, _):
        wide = {}
        for path in (*TOPS, *OF_TASKS):
            settle(page, guest.stage.top + path)
            wide[path] = overflow(page)
        assert not {path: by for path, by in wide.items() if by}


def test_no_page_is_heavy(guest: Any) -> None:
    with guest.page(allowed=MISSING) as (page, _):
        page.goto(guest.stage.top)
        loaded = page.evaluate("performance.getEntriesByType('resource').map((one) => one.encodedBodySize)")
        cookie = "; ".join(f"{one['name']}={one['value']}" for one in page.context.cookies())
        for path in (*TOPS, *OF_TASKS):
            if "no-such" in path:
                continue
            # Only browsers know that names below .localhost are this machine.
            place = urlsplit(guest.stage.top)
            connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=30)
            headers = {"Host": place.netloc, "Cookie": cookie, "Accept-Encoding": "gzip"}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200, path
            assert len(answer.read()) + sum(loaded) <= PAGE_BYTES, path
            connection.close()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_colours_of_states_are_apart_for_every_sight(guest: Any, scheme: str) -> None:
    names = """(names) => { const made = document.createElement("i"), seen = {};
      document.body.append(made);
      for (const name of names) {
        made.style = "";
        const box = document.createElement("span");
        box.className = `state s-${name}`;
        box.append(document.createElement("i"));
        document.body.append(box);
        const style = getComputedStyle(box.firstChild);
        seen[name] = [style.backgroundColor, style.color];
        box.remove();
      }
      made.remove();
      return seen; }"""
    with guest.page(color_scheme=scheme) as (page, _):
        page.goto(guest.stage.top)
        seen = page.evaluate(names, list(GLYPHS))
    fills = {name: _hex(fill) for name, (fill, _) in seen.items()}
    for sight, (one, other) in itertools.product(SIGHTS, itertools.combinations(fills, 2)):
        far = distance(fills[one], fills[other], sight)
        assert far >= APART, (one, other, sight, far)
    assert all(contrast(_hex(fill), _hex(ink)) >= 4.5 for fill, ink in seen.values())
    assert len(set(GLYPHS.values())) == len(GLYPHS)


def test_a_list_of_many_tasks_has_few_nodes(many: Any) -> None:
    with many.page() as (page, _):
        page.goto(f"{many.stage.top}/tasks")
        expect(page.locator("#matches")).to_contain_text(f"{MANY:,} of {MANY:,} tasks")
        expect(page.locator("#matches")).not_to_contain_text("so far")
        assert page.evaluate("document.querySelectorAll('*').length") < NODES_MOST
        assert page.evaluate("performance.getEntriesByType('navigation')[0].encodedBodySize") < PAGE_BYTES
        page.keyboard.press("n")
        expect(page.get_by_role("link", name="First page")).to_be_visible()
        assert page.evaluate("document.querySelectorAll('*').length") < NODES_MOST


def _hex(colour: str) -> str:
    """What CSS calls `rgb(1, 2, 3)`, as `#010203`."""
    numbers = colour.removeprefix("rgb(").removesuffix(")").split(",")
    return "#" + "".join(f"{int(number):02x}" for number in numbers)


def test_the_switch_changes_the_colours_and_is_kept(guest: Any) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with guest.page(color_scheme="light") as (page, _):
        page.goto(guest.stage.top)
        light = page.evaluate(ground)
        button = page.locator("#theme")
        button.click()
        assert page.evaluate(ground) == light
        button.click()
        expect(button).to_have_text("Theme: dark")
        dark = page.evaluate(ground)
        assert dark != light
        assert not violations(page)
        page.reload()
        assert page.evaluate(ground) == dark


def test_a_spool_that_cannot_be_read_says_so_and_keeps_its_pages(alone: Any) -> None:
    root: Path = alone.stage.pool.root
    gone = root.with_name("away")
    with alone.page(allowed=("503", "404")) as (page, _):
        page.goto(alone.stage.top)
        root.rename(gone)
        try:
            expect(page.locator("#state .bad")).to_contain_text("cannot be read now")
            found = violations(page)
            for path in TOPS:
                page.goto(alone.stage.top + path)
                found += violations(page)
            assert not found
        finally:
            gone.rename(root)
        page.goto(alone.stage.top)
        expect(page.locator("#state .bad")).to_have_count(0)
