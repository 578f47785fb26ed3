"""The names of styles as colours of a terminal: for a dark, a light, and a screen without colours.

Law: the colours are those of `spoold.pictures.palette`, made darker or lighter until text in them can be read. What a
colour says is said by a sign or a word, too.

Touches: the terminal.
"""

from __future__ import annotations

from functools import cache

from rich.color import Color
from rich.style import Style
from textual.theme import Theme

from spoold.pictures.palette import DARK, LIGHT, Scheme

DARK_NAME, LIGHT_NAME, PLAIN_NAME = "spool-dark", "spool-light", "spool-plain"
NAMES = (DARK_NAME, LIGHT_NAME, PLAIN_NAME)
# WCAG AA for text.
CONTRAST = 4.5
_SCHEMES = {DARK_NAME: DARK, LIGHT_NAME: LIGHT}
# What textual asks of a theme with the terminal's own colours.
_DEFAULTS = (
    "ansi-background",
    "ansi-foreground",
    "border-blurred",
    "block-cursor-foreground",
    "block-cursor-background",
    "input-cursor-background",
    "input-cursor-foreground",
    "input-selection-background",
    "input-selection-foreground",
    "screen-selection-background",
    "screen-selection-foreground",
)
# What a scheme has no colour for.
_STATE_OF = {"alert": "failed", "ok": "completed", "low": "lost", "bar": "claimed"}
_PLAIN = {
    "bold": Style(bold=True),
    "title": Style(bold=True),
    "alert": Style(bold=True),
    "match": Style(reverse=True),
    "mark": Style(bold=True, underline=True),
}


def themes() -> tuple[Theme, ...]:
    """Return the themes for textual, by the names above; the plain one takes the terminal's own colours."""
    plain = Theme(
        PLAIN_NAME,
        primary="ansi_default",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        ansi=True,
        variables={**dict.fromkeys(_DEFAULTS, "ansi_default"), "input-cursor-text-style": "reverse"},
    )
    return (*(_theme(name, scheme) for name, scheme in _SCHEMES.items()), plain)


def _theme(name: str, scheme: Scheme) -> Theme:
    return Theme(
        name,
        primary=scheme.ink,
        foreground=scheme.ink,
        background=scheme.paper,
        surface=scheme.card,
        panel=scheme.card,
        dark=name == DARK_NAME,
    )


@cache
def style(theme: str, name: str) -> Style:
    """Return a style by its name, within a theme. A name that nobody knows is plain text."""
    if name.startswith("sgr:"):
        return _own(name.removeprefix("sgr:"), theme)
    scheme = _SCHEMES.get(theme)
    if scheme is None:
        return _PLAIN.get(name, Style())
    wanted = name.removeprefix("state:") if name.startswith("state:") else _STATE_OF.get(name, "")
    base = Style(color=scheme.ink, bgcolor=scheme.paper)
    if wanted in scheme.states:
        return base + Style(color=readable(scheme.states[wanted].fill, scheme), bold=name == "alert" or None)
    more = {
        "mute": Style(color=scheme.mute),
        "bold": Style(bold=True),
        "title": Style(bold=True, color=scheme.ink, bgcolor=scheme.line),
        "match": Style(color=scheme.paper, bgcolor=scheme.ink),
        "mark": Style(bold=True, underline=True),
    }
    return base + more.get(name, Style())


def _own(words: str, theme: str) -> Style:
    """Return the style that a log asked for, by the words of `spoold.pictures.log_colours`."""
    said = words.split()
    base = Style(
        bold="bold" in said or None,
        dim="dim" in said or None,
        italic="italic" in said or None,
        underline="underline" in said or None,
        strike="strike" in said or None,
        reverse="inverse" in said or None,
    )
    scheme = _SCHEMES.get(theme)
    if scheme is None:
        return base
    colours = {name: int(number) for name, dash, number in (one.partition("-") for one in said) if dash}
    ink = readable(_shade(colours["ink"]), scheme) if "ink" in colours else scheme.ink
    paper = scheme.paper
    if "ground" in colours:
        paper = _shade(colours["ground"])
        # Text on a colour of its own can be read in black or white, whatever was asked for.
        ink = "#000000" if _luminance(_triplet(paper)) > 0.18 else "#ffffff"
    return base + Style(color=ink, bgcolor=paper)


def _shade(number: int) -> str:
    return Color.parse(f"color({number})").get_truecolor().hex


@cache
def cursor(theme: str, *, focused: bool) -> Style:
    """Return what the line under the cursor has beside its own style."""
    scheme = _SCHEMES.get(theme)
    if scheme is None:
        return Style(reverse=True) if focused else Style(underline=True)
    return Style(bgcolor=scheme.line if focused else scheme.card, bold=True if focused else None)


def readable(colour: str, scheme: Scheme) -> str:
    """Return the colour, moved towards that of text until it can be read on paper."""
    own, ink, paper = _triplet(colour), _triplet(scheme.ink), _triplet(scheme.paper)
    mixed = own
    for step in range(21):
        mixed = tuple(round(one + (two - one) * step / 20) for one, two in zip(own, ink, strict=True))
        if contrast(mixed, paper) >= CONTRAST:
            break
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _triplet(colour: str) -> tuple[int, ...]:
    return tuple(Color.parse(colour).get_truecolor())


def contrast(one: tuple[int, ...], two: tuple[int, ...]) -> float:
    """Return the contrast of two colours, as WCAG computes it."""
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: tuple[int, ...]) -> float:
    linear = [value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4 for value in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
