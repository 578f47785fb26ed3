"""The graph of a batch as SVG: a box for each task or group, with its state as a colour, a glyph and a word.

Law: a colour never speaks alone. A box shows what fits into it, and its title has all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from spoold.pictures import layers, sheet
from spoold.pictures.captions import about, called, signs, state_of, two_lines, types, whole
from spoold.pictures.cells import Cell, Graph, Link, graph_of
from spoold.pictures.layers import HEIGHT, WIDTH, Layout, Point
from spoold.pictures.legend import chip
from spoold.pictures.palette import GLYPHS, ORDER
from spoold.pictures.scene import UNKNOWN, Bond, Scene
from spoold.pictures.svg import Markup, joined, number, tag
from spoold.pictures.wording import clip
from spoold.protocol.amount import amount, figure

# Where the box of a task leads to, by its id.
Href = Callable[[str], str] | None

MARGIN, HEAD = 24.0, 64.0
STRIPE = 24.0
# How many columns of text have room in a box, at 12 and at 10.5 pixels.
_NAME, _MORE = 21, 26
_LEGEND = 116.0
_TITLE = 600
_BONDS = {
    Bond.END: "waits for its end",
    Bond.FAILURE: "runs if it fails",
    Bond.BATCH: "waits for the whole batch",
}


def draw(scene: Scene) -> str:
    """Return the whole file."""
    width, height, body = _drawn(scene)
    return sheet.document(width, height, f"Graph of {scene.title}", body)


def element(scene: Scene, href: Href = None) -> Markup:
    """Return the drawing for a page that has the sheet. href: where the box of a task leads to."""
    width, height, body = _drawn(scene, href)
    return sheet.picture(width, height, f"Graph of {scene.title}", body, links=href is not None)


def _drawn(scene: Scene, href: Href = None) -> tuple[float, float, Markup]:
    graph = graph_of(scene)
    layout = layers.arrange([cell.rank for cell in graph.cells], [(one.source, one.target) for one in graph.links])
    width = max(layout.width + 2 * MARGIN, 640.0)
    legend, rows = _legend(scene, graph, width)
    top = HEAD + 20 * rows
    links = [_link(place, link, layout) for place, link in enumerate(graph.links)]
    boxes = [_box(cell, place, href) for cell, place in zip(graph.cells, layout.boxes, strict=True)]
    inner = tag("g", joined([*links, *boxes]), transform=f"translate({number(MARGIN)} {number(top)})")
    return width, top + layout.height + MARGIN, joined([_arrow(), _head(scene, graph), legend, inner])


def _head(scene: Scene, graph: Graph) -> Markup:
    said = amount(len(scene.inside), "task")
    if graph.folded:
        groups = sum(len(cell.tasks) > 1 for cell in graph.cells)
        said += f", {figure(graph.folded)} of them folded into {amount(groups, 'group')}"
    return joined(
        [
            tag("text", clip(scene.title, 90), class_="ink head", x=MARGIN, y=30),
            tag("text", said, class_="mute", x=MARGIN, y=48),
        ]
    )


def _legend(scene: Scene, graph: Graph, width: float) -> tuple[Markup, int]:
    """The states that are there with their counts, and the kinds of links; and how many lines that takes."""
    found = Counter(task.state for task in scene.inside)
    if any(task.state == UNKNOWN for task in scene.tasks):
        found[UNKNOWN] = sum(task.state == UNKNOWN for task in scene.tasks)
    parts, x, row = [], MARGIN, 0
    for state in (state for state in ORDER if found[state]):
        if x + _LEGEND > width:
            x, row = MARGIN, row + 1
        y = HEAD + 6 + 20 * row
        parts += [chip(state, x, y - 11), tag("text", f"{figure(found[state])} {state}", class_="ink", x=x + 20, y=y)]
        x += _LEGEND
    for bond in (bond for bond in _BONDS if any(link.bond is bond for link in graph.links)):
        if x + 190 > width:
            x, row = MARGIN, row + 1
        y = HEAD + 6 + 20 * row
        parts.append(tag("path", d=f"M{number(x)} {number(y - 4)}h26", class_=f"link link-{bond}"))
        parts.append(tag("text", _BONDS[bond], class_="mute small", x=x + 32, y=y))
        x += 190
    return joined(parts), row + 1


def _arrow() -> Markup:
    tip = tag("path", d="M0 0L8 4L0 8z", class_="tip")
    marker = tag(
        "marker", tip, id="tip", view_Box="0 0 8 8", ref_X="7", ref_Y="4", marker_Width="7", marker_Height="7",
        orient="auto",
    )  # fmt: skip
    return tag("defs", marker)


def _link(place: int, link: Link, layout: Layout) -> Markup:
    said = amount(link.count, "pair") + " of tasks" if link.count > 1 else None
    title = [tag("title", said)] if said else []
    return tag(
        "path", *title, d=_curve(layout.routes[place]), class_=f"link link-{link.bond}", marker_end="url(#tip)"
    )


def _curve(points: Sequence[Point]) -> str:
    """The way of a link: level through each column that it passes, and bent between them."""
    x, y = points[0][0] + WIDTH, points[0][1]
    way = f"M{number(x)} {number(y)}"
    for nth, (left, middle) in enumerate(points[1:], 2):
        reach = max(abs(left - x) / 2, 24.0)
        bend = (x + reach, y, left - reach, middle, left, middle)
        way += f"C{' '.join(map(number, bend))}"
        if nth < len(points):
            way += f"H{number(left + WIDTH)}"
        x, y = left + WIDTH, middle
    return way


def _box(cell: Cell, place: Point, href: Href) -> Markup:
    x, y = place
    if len(cell.tasks) > 1:
        return _group(cell, x, y)
    task = cell.tasks[0]
    parts = [
        tag("title", clip(whole(task), _TITLE)),
        tag("rect", class_="card", x=x, y=y, width=WIDTH, height=HEIGHT, rx=7),
        tag("path", class_=f"f-{task.state}", d=_left_side(x, y)),
        tag("rect", class_=f"edge k-{task.state}", x=x, y=y, width=WIDTH, height=HEIGHT, rx=7),
        tag("text", GLYPHS[task.state], class_=f"i-{task.state} middle strong", x=x + STRIPE / 2, y=y + 27.5),
        tag("text", clip(called(task), _NAME), class_="ink strong", x=x + STRIPE + 8, y=y + 20),
        tag("text", clip(about(task), _MORE), class_="mute small", x=x + STRIPE + 8, y=y + 36),
    ]
    faint = "faint" if task.outside else None
    if href is not None and " " not in task.key:
        return tag("a", *parts, href=href(task.id), class_=faint)
    return tag("g", *parts, class_=faint)


def _group(cell: Cell, x: float, y: float) -> Markup:
    """A group: a pile of cards, with the shares of its states as a bar."""
    states, count, worst = cell.states, len(cell.tasks), state_of(cell)
    first, second = two_lines(cell)
    parts = [
        tag("title", f"{first}; {second}"),
        tag("rect", class_="card", x=x + 6, y=y - 6, width=WIDTH, height=HEIGHT, rx=7),
        tag("rect", class_="card", x=x + 3, y=y - 3, width=WIDTH, height=HEIGHT, rx=7),
        tag("rect", class_="card", x=x, y=y, width=WIDTH, height=HEIGHT, rx=7),
        tag("path", class_=f"f-{worst}", d=_left_side(x, y)),
        tag("rect", class_=f"edge k-{worst}", x=x, y=y, width=WIDTH, height=HEIGHT, rx=7),
        tag("text", GLYPHS[worst], class_=f"i-{worst} middle strong", x=x + STRIPE / 2, y=y + 27.5),
        tag("text", first, class_="ink strong", x=x + STRIPE + 8, y=y + 16),
        tag(
            "text",
            clip(f"{types(cell)} {signs(cell)}".strip(), _MORE),
            class_="mute small",
            x=x + STRIPE + 8,
            y=y + 29,
        ),
    ]
    left, room = x + STRIPE + 8, WIDTH - STRIPE - 18
    for state in ORDER:
        if states[state]:
            wide = room * states[state] / count
            parts.append(tag("rect", class_=f"f-{state}", x=left, y=y + 35, width=wide, height=5))
            left += wide
    return tag("g", *parts)


def _left_side(x: float, y: float) -> str:
    """The left side of a box, in the shape of its corners."""
    return (
        f"M{number(x + STRIPE)} {number(y)}v{number(HEIGHT)}h{number(7 - STRIPE)}"
        f"a7 7 0 0 1 -7 -7v{number(14 - HEIGHT)}a7 7 0 0 1 7 -7z"
    )
