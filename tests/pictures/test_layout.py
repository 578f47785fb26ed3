"""Nothing overlaps, nothing is left out, and the picture of a big graph is small."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.pictures.boxes import Graph, graph_of, ranks_of
from spoold.pictures.graph_svg import HEIGHT, ROW_GAP, WIDTH, arrange
from spoold.pictures.picture_data import Bond, Need, Task
from tests.pictures.scenes import big, scene, task

EDGES = st.lists(
    st.tuples(st.integers(0, 14), st.integers(0, 14)).filter(lambda edge: edge[0] < edge[1]), unique=True
)


def ids(graph: Graph) -> list[str]:
    return sorted(one.id for cell in graph.cells for one in cell.tasks)


@given(EDGES)
def test_an_edge_always_leads_deeper(edges: list[tuple[int, int]]) -> None:
    ranks = ranks_of(15, edges)
    assert all(ranks[source] < ranks[target] for source, target in edges)


def test_ranks_are_as_low_as_can_be_and_sources_are_near_their_first_child() -> None:
    assert ranks_of(5, [(0, 1), (1, 2), (0, 2), (3, 2)]) == [0, 1, 2, 1, 0]


def test_a_circle_is_drawn_and_not_followed_for_ever() -> None:
    assert ranks_of(3, [(0, 1), (1, 2), (2, 0)]) == [0, 1, 2]
    graph = graph_of(scene(task("a", "c"), task("b", "a"), task("c", "b"), task("self", "self")))
    assert len(graph.links) == 3
    layout = arrange([cell.rank for cell in graph.cells], [(link.source, link.target) for link in graph.links])
    assert all(len(route) == 2 for route in layout.routes)


def overlapping(boxes: Sequence[tuple[float, float]]) -> list[object]:
    return [
        (one, other)
        for one, other in combinations(boxes, 2)
        if abs(one[0] - other[0]) < WIDTH and abs(one[1] - other[1]) < HEIGHT + ROW_GAP - 0.01
    ]


@given(EDGES)
def test_no_two_boxes_overlap_and_all_are_on_the_paper(edges: list[tuple[int, int]]) -> None:
    layout = arrange(ranks_of(15, edges), edges)
    assert not overlapping(layout.boxes)
    assert all(-1e-6 <= x <= layout.width - WIDTH + 1e-6 for x, _ in layout.boxes)
    assert all(-1e-6 <= y <= layout.height - HEIGHT + 1e-6 for _, y in layout.boxes)


@given(EDGES)
def test_a_link_goes_from_its_source_to_its_target_and_through_no_box(edges: list[tuple[int, int]]) -> None:
    ranks = ranks_of(15, edges)
    layout = arrange(ranks, edges)
    for (source, target), route in zip(edges, layout.routes, strict=True):
        assert len(route) == ranks[target] - ranks[source] + 1
        assert route[0] == pytest.approx((layout.boxes[source][0], layout.boxes[source][1] + HEIGHT / 2))
        assert route[-1] == pytest.approx((layout.boxes[target][0], layout.boxes[target][1] + HEIGHT / 2))
        for x, y in route[1:-1]:
            assert not [box for box in layout.boxes if abs(box[0] - x) < 1 and box[1] < y < box[1] + HEIGHT]


def test_crossings_that_need_not_be_are_avoided() -> None:
    layout = arrange([1, 1, 1, 2, 2, 2, 0], [(6, 0), (6, 1), (6, 2), (0, 5), (1, 4), (2, 3)])
    heights = [[layout.boxes[node][1] for node in side] for side in ((0, 1, 2), (5, 4, 3))]
    assert heights[0] == pytest.approx(heights[1])
    assert layout.boxes[6][1] == pytest.approx(heights[0][1])


def test_a_graph_up_to_the_limit_is_drawn_task_by_task() -> None:
    graph = graph_of(scene(*(task(f"t{number}") for number in range(200))))
    assert (len(graph.cells), graph.folded) == (200, 0)


@pytest.mark.parametrize("count", [201, 1000, 5000])
def test_a_big_graph_is_folded_and_no_task_is_lost(count: int) -> None:
    drawn = big(count)
    graph = graph_of(drawn)
    assert ids(graph) == sorted(one.id for one in drawn.tasks)
    assert len(graph.cells) <= 80
    assert len(graph.links) <= 240
    assert all(graph.cells[link.source].rank < graph.cells[link.target].rank for link in graph.links)
    assert graph.folded > 0
    layout = arrange([cell.rank for cell in graph.cells], [(link.source, link.target) for link in graph.links])
    assert not overlapping(layout.boxes)


def test_alike_tasks_become_one_group_first() -> None:
    fan = [task(f"t{number}", "root", state="failed" if number == 7 else "completed") for number in range(300)]
    last = Task("end", "end", "waiting", needs=tuple(Need(one.key, Bond.END) for one in fan))
    graph = graph_of(scene(task("root"), *fan, last))
    assert [(len(cell.tasks), cell.rank) for cell in graph.cells] == [(1, 0), (300, 1), (1, 2)]
    assert graph.cells[1].states == {"completed": 299, "failed": 1}
    assert [(link.source, link.target, link.bond, link.count) for link in graph.links] == [
        (0, 1, Bond.SUCCESS, 300),
        (1, 2, Bond.END, 300),
    ]


def test_a_long_chain_of_many_types_is_folded_as_well() -> None:
    chain = [task(f"t{n}", *([f"t{n - 1}"] if n else []), type=f"type-{n}") for n in range(1000)]
    graph = graph_of(scene(*chain))
    assert 1 < len(graph.cells) <= 80
    assert ids(graph) == sorted(one.id for one in chain)


def test_too_many_bends_are_not_routed() -> None:
    edges = [(source, target) for source in range(60) for target in range(source + 1, 60)]
    layout = arrange(ranks_of(60, edges), edges)
    assert all(len(route) == 2 for route in layout.routes)
    assert not overlapping(layout.boxes)


def test_nothing_to_draw_is_a_picture_too() -> None:
    assert graph_of(scene()).cells == ()
    assert arrange([], []).boxes == []
