"""Writes elements of SVG and of HTML, the sign of a state, and the styles that all pictures share.

Law: everything is escaped but what `tag` itself has made (`Markup`). Names of elements and attributes come from our
own code, and a value never can end its attribute. Whatever is hidden in a text becomes visible.

A picture has classes and no colours of its own, so that one sheet decides, for light and for dark screens. Values are
written out, without CSS variables: programs that only convert SVG know none. Nothing in the sheet comes from a task.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.pictures.palette import DARK, GLYPHS, LIGHT, Scheme
from spoold.pictures.wording import visible

# Elements of HTML that have no end.
_VOID = frozenset({"br", "col", "hr", "link", "meta"})
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


EMPTY = Markup()


def escape(text: str) -> Markup:
    """Return any text as the content of an element, or the value of an attribute: on one line."""
    return text if isinstance(text, Markup) else Markup(visible(text).translate(_ESCAPES))


def lines(text: str) -> Markup:
    """Return a text of several lines as the content of a `pre`."""
    return Markup("\n".join(map(escape, text.split("\n"))))


def number(value: float) -> str:
    """Return a coordinate, with one decimal at most."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element. Children that are plain text are escaped. An attribute that is None is left out; `class_`
    is `class`, and other underscores are hyphens, but before a capital letter, as in `view_Box`, they are nothing.
    """
    written = "".join(
        f' {_spelled(key)}="{escape(value if isinstance(value, str) else number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{''.join(map(escape, children))}</{name}>")


def joined(parts: Iterable[Markup]) -> Markup:
    """Return several elements as one piece, each on a line of its own."""
    return Markup("\n".join(parts))


def _spelled(key: str) -> str:
    name = key.removesuffix("_")
    head, *rest = name.split("_")
    return head + "".join(part if part[:1].isupper() else f"-{part}" for part in rest)


# The sign of a state: its glyph on its colour.


def chip(state: str, x: float, y: float) -> Markup:
    """Return the sign of a state, 14 by 14 pixels, with its upper left corner there."""
    ground = tag("rect", class_=f"f-{state}", x=x, y=y, width=14, height=14, rx=3)
    glyph = tag("text", GLYPHS[state], class_=f"i-{state} small middle strong", x=x + 7, y=y + 10.8)
    return Markup(ground + glyph)


# The styles that all pictures share, for light and for dark screens.


FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def rules(scheme: Scheme) -> str:
    """Return the colours of a scheme as CSS."""
    made = [
        f".paper{{fill:{scheme.paper}}}.card{{fill:{scheme.card};stroke:{scheme.line}}}.band{{fill:{scheme.card}}}",
        f".ink{{fill:{scheme.ink}}}.mute{{fill:{scheme.mute}}}.rule{{stroke:{scheme.line}}}",
        f".link{{stroke:{scheme.link}}}.tip{{fill:{scheme.link}}}",
    ]
    for state, colour in scheme.states.items():
        made.append(
            f".f-{state}{{fill:{colour.fill}}}.k-{state}{{stroke:{colour.fill}}}.i-{state}{{fill:{colour.ink}}}"
        )
    return "\n".join(made)


def drawing() -> str:
    """Return the CSS of all drawings, in both schemes."""
    return f"""svg text{{font-family:{FONT};font-size:12px}}
svg .small{{font-size:10.5px}}svg .strong{{font-weight:600}}svg .head{{font-size:15px;font-weight:600}}
svg .tiny{{font-size:9px}}svg .over{{pointer-events:none}}.dash{{stroke-dasharray:3 3}}
svg .middle{{text-anchor:middle}}svg .end{{text-anchor:end}}
.link{{fill:none;stroke-width:1.3}}.link-after_any{{stroke-dasharray:6 4}}.link-after_failed{{stroke-dasharray:2 3}}
.link-after_batch{{stroke-dasharray:10 4}}.card,.edge{{stroke-width:1}}.edge{{fill:none;stroke-width:1.6}}
.rule{{stroke-width:1}}.faint{{opacity:.55}}
{rules(LIGHT)}
@media (prefers-color-scheme:dark){{
{rules(DARK)}
}}"""


def document(width: float, height: float, title: str, *children: Markup) -> str:
    """Return a whole SVG file, with its own sheet."""
    body = picture(width, height, title, tag("style", Markup(drawing())), *children)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def picture(width: float, height: float, title: str, *children: Markup, links: bool = False) -> Markup:
    """Return the element of a drawing. title: for those who do not see it; links: whether there are links in it."""
    return tag(
        "svg",
        tag("title", title),
        tag("rect", class_="paper", width="100%", height="100%"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        view_Box=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="group" if links else "img",
    )
