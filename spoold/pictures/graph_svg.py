"""The graph of a batch as SVG: a box for each task or group, with its state as a colour, a glyph and a word.

The layout goes from left to right: each rank is a column. The order within a column is found by barycentres: each box
moves to the mean of those that it is linked with, from the left and from the right in turn, and the order with the
fewest crossings is kept. Parts of the graph that have no link between them are laid out alone and put side by side.

Law: a colour never speaks alone. A box shows what fits into it, and its title has all of it. No two boxes overlap,
and no link passes through a box while there is room to route it. The time of the layout grows with the number of
links and not with its square.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from spoold.pictures import svg
from spoold.pictures.boxes import Cell, Graph, Link, about, called, graph_of, signs, state_of, two_lines, types, whole
from spoold.pictures.palette import GLYPHS, ORDER
from spoold.pictures.picture_data import UNKNOWN, Bond, Scene
from spoold.pictures.svg import Markup, chip, joined, number, tag
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
    return svg.document(width, height, f"Graph of {scene.title}", body)


def element(scene: Scene, href: Href = None) -> Markup:
    """Return the drawing for a page that has the sheet. href: where the box of a task leads to."""
    width, height, body = _drawn(scene, href)
    return svg.picture(width, height, f"Graph of {scene.title}", body, links=href is not None)


def _drawn(scene: Scene, href: Href = None) -> tuple[float, float, Markup]:
    graph = graph_of(scene)
    layout = arrange([cell.rank for cell in graph.cells], [(one.source, one.target) for one in graph.links])
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


# The layout of a graph, from left to right: each rank is a column, and what belongs together is near.


WIDTH, HEIGHT = 204.0, 46.0
COLUMN_GAP, ROW_GAP, THREAD = 64.0, 16.0, 10.0
PART_GAP = 34.0
SHELF = 1280.0
SWEEPS = 8
# More bends than this are not routed: the picture would be a mesh in any case.
BENDS_MAX = 4000

Point = tuple[float, float]


@dataclass(slots=True)
class Layout:
    """Where everything is. boxes: the upper left corner of each; routes: of each link, the points that it passes."""

    boxes: list[Point]
    routes: list[list[Point]]
    width: float = 0.0
    height: float = 0.0


@dataclass(slots=True)
class _Part:
    """One connected part: its nodes by column, boxes and bends alike; a bend has an index of `first_bend` or more."""

    columns: list[list[int]]
    above: dict[int, list[int]]
    below: dict[int, list[int]]
    first_bend: int
    y: dict[int, float] = field(default_factory=dict)

    def half(self, node: int) -> float:
        """Return half of the room that a node takes in its column."""
        return (THREAD if node >= self.first_bend else HEIGHT + ROW_GAP) / 2


def arrange(ranks: Sequence[int], links: Sequence[tuple[int, int]]) -> Layout:
    """Return where the boxes and the links are. ranks: of each box, from 0; links: pairs of indices of boxes."""
    layout = Layout([(0.0, 0.0)] * len(ranks), [[] for _ in links])
    spans = sum(max(0, ranks[target] - ranks[source] - 1) for source, target in links)
    bends = {} if spans > BENDS_MAX else _bends(ranks, links)
    shelf_x = shelf_y = shelf_height = 0.0
    for nodes in _parts(len(ranks), links):
        part = _part(nodes, ranks, links, bends)
        _order(part)
        _place(part)
        top = min(part.y[node] - part.half(node) for node in part.y)
        height = max(part.y[node] + part.half(node) for node in part.y) - top - ROW_GAP
        width = len(part.columns) * (WIDTH + COLUMN_GAP) - COLUMN_GAP
        if shelf_x and shelf_x + width > SHELF:
            shelf_x, shelf_y, shelf_height = 0.0, shelf_y + shelf_height + PART_GAP, 0.0
        _settle(layout, part, links, bends, (shelf_x, shelf_y - top - ROW_GAP / 2))
        shelf_x, shelf_height = shelf_x + width + COLUMN_GAP, max(shelf_height, height)
        layout.width = max(layout.width, shelf_x - COLUMN_GAP)
        layout.height = max(layout.height, shelf_y + shelf_height)
    return layout


def _bends(ranks: Sequence[int], links: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """The bends of each link that passes columns, as new indices."""
    found, free = {}, len(ranks)
    for index, (source, target) in enumerate(links):
        span = ranks[target] - ranks[source] - 1
        if span > 0:
            found[index] = list(range(free, free + span))
            free += span
    return found


def _parts(count: int, links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The boxes of each connected part, parts with links first, else by their first box."""
    root = list(range(count))

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for source, target in links:
        one, other = sorted((find(source), find(target)))
        root[other] = one
    parts: dict[int, list[int]] = {}
    for node in range(count):
        parts.setdefault(find(node), []).append(node)
    return sorted(parts.values(), key=lambda part: len(part) == 1)


def _part(
    nodes: Sequence[int], ranks: Sequence[int], links: Sequence[tuple[int, int]], bends: dict[int, list[int]]
) -> _Part:
    mine = set(nodes)
    rank = {node: ranks[node] for node in nodes}
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for index, (source, target) in enumerate(links):
        if source in mine:
            chain = [source, *bends.get(index, ()), target]
            rank |= {node: place for place, node in enumerate(chain[1:-1], ranks[source] + 1)}
            for one, other in pairwise(chain):
                below.setdefault(one, []).append(other)
                above.setdefault(other, []).append(one)
    columns: list[list[int]] = [[] for _ in range(max(rank.values()) - min(rank.values()) + 1)]
    for node, place in rank.items():
        columns[place - min(rank.values())].append(node)
    return _Part([column for column in columns if column], above, below, len(ranks))


def _order(part: _Part) -> None:
    """Order the columns; keep the best order that the sweeps came by."""
    best, fewest = [list(column) for column in part.columns], _crossings(part)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        columns = part.columns if forward else part.columns[::-1]
        for before, column in pairwise(columns):
            place = {node: at for at, node in enumerate(before)}
            linked = part.above if forward else part.below
            now = {node: at for at, node in enumerate(column)}
            means = {}
            for node in column:
                seen = [place[other] for other in linked.get(node, ()) if other in place]
                means[node] = sum(seen) / len(seen) if seen else float(now[node])
            column.sort(key=lambda node: (means[node], now[node]))
        count = _crossings(part)
        if count < fewest:
            best, fewest = [list(column) for column in part.columns], count
    part.columns = best


def _crossings(part: _Part) -> int:
    found = 0
    for before, column in pairwise(part.columns):
        place = {node: at for at, node in enumerate(column)}
        ends: list[int] = []
        for node in before:
            mine = sorted(place[other] for other in part.below.get(node, ()) if other in place)
            found += sum(len(ends) - bisect_right(ends, end) for end in mine)
            for end in mine:
                insort(ends, end)
    return found


def _place(part: _Part) -> None:
    """Give each node its height (the middle of it): near the mean of those that it is linked with."""
    for column in part.columns:
        _spread(part, column, dict.fromkeys(column, 0.0))
    for sweep in range(SWEEPS):
        columns = part.columns if sweep % 2 == 0 else part.columns[::-1]
        for column in columns:
            wanted = {}
            for node in column:
                sides = (part.above, part.below) if sweep >= SWEEPS - 2 else ((part.above, part.below)[sweep % 2],)
                seen = [part.y[other] for side in sides for other in side.get(node, ())]
                wanted[node] = sum(seen) / len(seen) if seen else part.y[node]
            _spread(part, column, wanted)


def _spread(part: _Part, column: Sequence[int], wanted: dict[int, float]) -> None:
    """Put the nodes of a column as near to what they want as the order and their sizes allow (least squares)."""
    offset, at = {}, 0.0
    for node in column:
        at += part.half(node)
        offset[node] = at
        at += part.half(node)
    blocks: list[tuple[float, list[int]]] = []  # the mean of what its nodes want, and its nodes
    for node in column:
        mean, nodes = wanted[node] - offset[node], [node]
        while blocks and blocks[-1][0] > mean:
            before, others = blocks.pop()
            mean = (before * len(others) + mean * len(nodes)) / (len(others) + len(nodes))
            nodes = others + nodes
        blocks.append((mean, nodes))
    for mean, nodes in blocks:
        for node in nodes:
            part.y[node] = mean + offset[node]


def _settle(
    layout: Layout, part: _Part, links: Sequence[tuple[int, int]], bends: dict[int, list[int]], corner: Point
) -> None:
    """Write the places of a part into the layout."""
    left, top = corner
    column_of = {node: at for at, column in enumerate(part.columns) for node in column}
    for node, at in column_of.items():
        if node < part.first_bend:
            layout.boxes[node] = (left + at * (WIDTH + COLUMN_GAP), top + part.y[node] - HEIGHT / 2)
    for index, (source, target) in enumerate(links):
        if source in column_of:
            layout.routes[index] = [
                (left + column_of[node] * (WIDTH + COLUMN_GAP), top + part.y[node])
                for node in (source, *bends.get(index, ()), target)
            ]
