"""The chart is drawn from figures alone: it is well formed, in scale, and its labels do not lie on one another."""

import itertools
import xml.etree.ElementTree as ElementTree

import pytest

from tools.benchmark.figure import Figure
from tools.benchmark.growth import chart, decades, series, spread_out

SVG = "{http://www.w3.org/2000/svg}"


def rate(label: str, backlog: int, value: float, place: str = "ext4") -> Figure:
    key = {"label": label, "tier": "call", "place": place, "backlog": backlog, "fsync": False}
    return Figure("call", f"{label} {backlog}", "tasks/s", (value,), key=key)


def test_series_are_rates_by_contender_least_backlog_first() -> None:
    figures = [rate("a", 10_000, 5), rate("a", 1000, 9), rate("b", 1000, 2), rate("a", 1000, 7, place="tmpfs")]
    compared = {"ours": "a", "theirs": "b", "tier": "call", "place": "ext4", "backlog": 1000}
    figures.append(Figure("call", "ratio", "×", (2.0,), key=compared))
    assert series(figures, "call", "ext4") == {"a": [(1000, 9), (10_000, 5)], "b": [(1000, 2)]}


def test_a_chart_is_well_formed_and_on_logarithmic_scales() -> None:
    drawn = ElementTree.fromstring(chart({"a & b": [(1000, 1000.0), (10_000, 100.0), (100_000, 10.0)]}, "x < y"))
    (line,) = drawn.iter(f"{SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(points)]
    assert steps[0] == pytest.approx(steps[1], abs=0.11), "a decade is a decade"
    assert steps[0][0] > 0
    assert steps[0][1] > 0, "fewer tasks a second stand lower"
    assert "a & b" in [text.text for text in drawn.iter(f"{SVG}text")]


def test_every_point_has_its_figure_for_who_points_at_it() -> None:
    drawn = ElementTree.fromstring(chart({"huey": [(1000, 3881.0), (10_000, 296.0)]}, "t"))
    assert [title.text for title in drawn.iter(f"{SVG}title")] == ["t", "huey: 3,880/s", "huey: 296/s"]


def test_decades_enclose_all_values() -> None:
    assert decades([1000, 99_000]) == (3, 5)
    assert decades([10, 10]) == (1, 2)
    assert decades([0.5, 3]) == (-1, 1)


def test_labels_that_would_lie_on_one_another_are_moved_apart() -> None:
    placed = spread_out([100, 101, 50], 15)
    assert placed == [50, 100, 115]


def test_an_empty_chart_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        chart({}, "t")
