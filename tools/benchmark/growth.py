"""The growth chart: tasks a second against the backlog, both logarithmic, as SVG written by hand.

Law: drawn from the figures alone and always in the same way, so that two runs can be laid over one another. It has a
background of its own, since it is shown on light pages and on dark ones. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from tools.benchmark.figure import Figure, depth, number

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 170, 52, 56
# Of the Okabe and Ito palette, which colour-blind people can tell apart.
COLOURS = ("#0072b2", "#999999", "#56b4e9", "#bbbbbb", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
LABEL_GAP = 15
FONT = 'font-family="sans-serif" font-size="12"'

Series = Mapping[str, Sequence[tuple[float, float]]]


def series(figures: Sequence[Figure], tier: str, place: str) -> dict[str, list[tuple[float, float]]]:
    """The rates of a tier on a file system: (backlog, tasks a second) by contender, least backlog first."""
    found: dict[str, list[tuple[float, float]]] = {}
    for figure in figures:
        label = figure.key.get("label")  # a ratio of two contenders has none
        if label and figure.value and figure.key.get("tier") == tier and figure.key.get("place") == place:
            found.setdefault(str(label), []).append((float(figure.key["backlog"]), figure.value))
    return {label: sorted(points) for label, points in found.items()}


def chart(lines: Series, title: str) -> str:
    """The whole SVG. Errors: ValueError without a single point."""
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError("there is nothing to draw")
    across = decades([x for x, _ in points])
    upwards = decades([y for _, y in points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT} role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="28" font-size="15" fill="#222222">{escape(title)}</text>',
        *_grid(across, upwards),
    ]
    ends = []
    for (label, line), colour in zip(lines.items(), COLOURS * len(lines), strict=False):
        placed = [(_x(x, across), _y(y, upwards)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        dashes = ' stroke-dasharray="5 4"' if "fsync" in label else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.2"{dashes}/>')
        for (x, y), (_, rate) in zip(placed, line, strict=True):
            said = f"<title>{escape(label)}: {number(rate)}/s</title>"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{colour}">{said}</circle>')
        ends.append((placed[-1][0], placed[-1][1], label, colour))
    return "\n".join([*parts, *_labels(ends), "</svg>", ""])


def decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten that enclose all values; at least one decade."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def spread_out(heights: Sequence[float], gap: float) -> list[float]:
    """Heights as near to these as can be, in their order, with at least `gap` between two of them."""
    placed: list[float] = []
    for height in sorted(heights):
        placed.append(max(height, placed[-1] + gap) if placed else height)
    overflow = placed[-1] - (HEIGHT - BOTTOM) if placed else 0.0
    return [height - max(overflow, 0.0) for height in placed]


def _x(value: float, decades_across: tuple[int, int]) -> float:
    low, high = decades_across
    return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _y(value: float, decades_up: tuple[int, int]) -> float:
    low, high = decades_up
    return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def _grid(across: tuple[int, int], upwards: tuple[int, int]) -> list[str]:
    parts = []
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for power in range(across[0], across[1] + 1):
        x = _x(10.0**power, across)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#e3e3e3"/>')
        said = depth(10**power) if power >= 0 else f"{10.0**power:g}"
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#555555">{said}</text>')
    for power in range(upwards[0], upwards[1] + 1):
        y = _y(10.0**power, upwards)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e3e3e3"/>')
        said = f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555555">{said}</text>')
    middle = (LEFT + right) / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{HEIGHT - 14}" text-anchor="middle" fill="#222222">backlog, tasks</text>'
    )
    turned = f'transform="rotate(-90 20 {(TOP + bottom) / 2:.0f})"'
    parts.append(
        f'<text x="20" y="{(TOP + bottom) / 2:.0f}" text-anchor="middle" fill="#222222" {turned}>tasks/s</text>'
    )
    return parts


def _labels(ends: Sequence[tuple[float, float, str, str]]) -> list[str]:
    """The name of each line at its end, moved apart where two would lie on one another."""
    ordered = sorted(ends, key=lambda end: end[1])
    heights = spread_out([y for _, y, _, _ in ordered], LABEL_GAP)
    return [
        f'<text x="{WIDTH - RIGHT + 14}" y="{height + 4:.1f}" fill="{colour}">{escape(label)}</text>'
        for (_, _, label, colour), height in zip(ordered, heights, strict=True)
    ]
