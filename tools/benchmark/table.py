"""The figures as people read them: a table for each part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tools.benchmark.figure import Figure, number
from tools.benchmark.position import position

HIDDEN = ("lost", "doubled")


def lines(figures: Iterable[Figure]) -> Iterator[str]:
    """A heading and a table for each part: name, median, spread, and whether the target holds."""
    for part, group in groupby(figures, key=lambda figure: figure.part):
        rows = [row(figure) for figure in group]
        yield ""
        yield part
        yield from aligned([("figure", "median", "unit", "least – greatest", "target", ""), *rows])


def row(figure: Figure) -> tuple[str, ...]:
    """One line of it."""
    if figure.value is None:
        said = figure.note or "missing"
        return (figure.name, "–", figure.unit, "", str(figure.target or ""), said)
    spread = f"{number(min(figure.samples))} – {number(max(figure.samples))}" if len(figure.samples) > 1 else ""
    target = f"{figure.target} {'holds' if figure.holds else 'MISSED'}" if figure.target else ""
    return (figure.name, number(figure.value), figure.unit, spread, target, remarks(figure))


def remarks(figure: Figure) -> str:
    """How spoold stands to the peer, and what was seen beside it: losses wherever they could have happened."""
    said = [position(figure.samples)] if "theirs" in figure.key and figure.samples else []
    said += [f"{name} {number(figure.more[name])}" for name in HIDDEN if name in figure.more]
    said += [f"{name} {number(value)}" for name, value in figure.more.items() if name not in HIDDEN]
    return "; ".join([*said, *([figure.note] if figure.note else [])])


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The rows, in columns; figures stand on the right of theirs."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if column == 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()


def verdict(figures: Sequence[Figure]) -> str:
    """The last line: how many targets hold."""
    judged = [figure for figure in figures if figure.target is not None]
    missed = [figure for figure in judged if not figure.holds]
    return f"{len(judged) - len(missed)} of {len(judged)} targets hold"
