"""The sign of a state: its glyph on its colour.

Law: the same in every drawing.
"""

from __future__ import annotations

from spoold.pictures.palette import GLYPHS
from spoold.pictures.svg import Markup, tag


def chip(state: str, x: float, y: float) -> Markup:
    """Return the sign of a state, 14 by 14 pixels, with its upper left corner there."""
    ground = tag("rect", class_=f"f-{state}", x=x, y=y, width=14, height=14, rx=3)
    glyph = tag("text", GLYPHS[state], class_=f"i-{state} small middle strong", x=x + 7, y=y + 10.8)
    return Markup(ground + glyph)
