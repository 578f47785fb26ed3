"""A few whole screens, kept as text, and in colours as SVG: what a person sees changes on purpose or not at all.

`GOLDEN=write` writes them anew.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from spoold.faces.top import colours
from spoold.faces.top.source import Source
from spoold.faces.top.textual_app import svg_of
from spoold.pictures.palette import DARK, LIGHT
from tests.support.view import NOW, PretendedSpool, PretendedView
from tests.top.pilot import LARGE, SMALL, opened, run

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient
    from spoold.client.view import View

KEPT = Path(__file__).parent / "golden"


def agree(name: str, text: str) -> None:
    """The text is the one that is kept."""
    kept = KEPT / name
    if os.environ.get("GOLDEN") == "write":
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8"), f"{name} differs; see the docstring of {__name__}"


@pytest.mark.parametrize(
    ("view", "size"),
    [("overview", SMALL), ("overview", LARGE), ("tasks state:failed", SMALL), ("task job-000003", SMALL)],
)
def test_a_screen_is_as_it_was(view: str, size: tuple[int, int]) -> None:
    async def test() -> None:
        async with opened(view, size=size) as seen:
            agree(f"{view.replace(' ', '-').replace(':', '-')}-{size[0]}.txt", f"{seen.text}\n")

    run(test)


def svg(view: str, colour: str) -> str:
    source = Source(cast("View", PretendedView()), cast("SpoolClient", PretendedSpool()), lambda: NOW)
    drawn = svg_of(source, PretendedView().wait, view, size=SMALL, colour=colour)
    return asyncio.run(asyncio.wait_for(drawn, 60))


@pytest.mark.parametrize("colour", ["dark", "light", ""], ids=["dark", "light", "none"])
def test_a_view_is_drawn_in_the_colours_of_its_scheme(colour: str) -> None:
    drawn = svg("tasks", colour)
    assert "job-000003" in drawn
    found = {one.lower() for one in re.findall(r"#[0-9a-fA-F]{6}\b", drawn)}
    scheme = {"dark": DARK, "light": LIGHT}.get(colour)
    if scheme is None:
        assert "✗" in drawn
        assert not found & {each.fill for each in (*DARK.states.values(), *LIGHT.states.values())}
        return
    assert scheme.paper in found
    assert colours.readable(scheme.states["failed"].fill, scheme) in found
    # What a name has meant for a scheme is nowhere a colour of the other.
    other = LIGHT if scheme is DARK else DARK
    assert other.paper not in found or colour == "dark"


@pytest.mark.parametrize("scheme", [DARK, LIGHT], ids=["dark", "light"])
def test_the_colour_of_each_state_can_be_read_as_text(scheme: object) -> None:
    assert scheme in (DARK, LIGHT)
    one = DARK if scheme is DARK else LIGHT
    paper = tuple(int(one.paper[at : at + 2], 16) for at in (1, 3, 5))
    for state, colour in one.states.items():
        text = colours.readable(colour.fill, one)
        assert colours.contrast(tuple(int(text[at : at + 2], 16) for at in (1, 3, 5)), paper) >= 4.5, state


def test_a_screen_without_colours_says_states_by_signs_and_words() -> None:
    async def test() -> None:
        async with opened("tasks", colour="") as seen:
            await seen.shows("► claimed", "✗ failed", "✓ completed", "›job-000000")
            for strip in seen.app.screen._compositor.render_strips():
                for segment in strip:
                    style = segment.style
                    assert style is None or all(
                        each is None or each.is_default for each in (style.color, style.bgcolor)
                    ), segment

    run(test)
