"""The layout of a graph, from left to right: each rank is a column, and what belongs together is near.

The order within a column is found by barycentres: each box moves to the mean of those that it is linked with, from
the left and from the right in turn, and the order with the fewest crossings is kept. Parts of the graph that have no
link between them are laid out alone and put side by side.

Law: no two boxes overlap, and no link passes through a box while there is room to route it. The time grows with the
number of links and not with its square.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

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
    for number, (source, target) in enumerate(links):
        span = ranks[target] - ranks[source] - 1
        if span > 0:
            found[number] = list(range(free, free + span))
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
    for number, (source, target) in enumerate(links):
        if source in mine:
            chain = [source, *bends.get(number, ()), target]
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
    for number, (source, target) in enumerate(links):
        if source in column_of:
            layout.routes[number] = [
                (left + column_of[node] * (WIDTH + COLUMN_GAP), top + part.y[node])
                for node in (source, *bends.get(number, ()), target)
            ]
