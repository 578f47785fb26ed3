"""Writes elements of SVG and of HTML.

Law: everything is escaped but what `tag` itself has made (`Markup`). Names of elements and attributes come from our
own code, and a value never can end its attribute. Whatever is hidden in a text becomes visible.
"""

from __future__ import annotations

from collections.abc import Iterable

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
