"""The graph of a batch for Mermaid, as GitHub and many wikis draw it.

Law: a label is quoted, and all of it but letters, digits and a few signs is written as numeric entities: no name ends
its label, begins a directive or becomes markup. Mermaid refuses more than 500 links, so groups fold earlier here.
"""

from __future__ import annotations

import re

from spoold.pictures.boxes import CELLS_MAX, Cell, Graph, graph_of, state_of, two_lines
from spoold.pictures.palette import GLYPHS, LIGHT, ORDER
from spoold.pictures.picture_data import Bond, Scene
from spoold.pictures.wording import clip

LINKS_MAX = 450
NAME = 60
_UNSAFE = re.compile(r"[^\w .,+=/-]")
_ARROWS = {Bond.SUCCESS: "-->", Bond.END: "-. ended .->", Bond.FAILURE: "-. failed .->", Bond.BATCH: "==>"}


def write(scene: Scene) -> str:
    """Return the whole text."""
    graph = graph_of(scene, CELLS_MAX, LINKS_MAX)
    lines = ["flowchart LR", *(f"    {_node(number, cell)}" for number, cell in enumerate(graph.cells))]
    lines += [f"    n{link.source} {_ARROWS[link.bond]} n{link.target}" for link in graph.links]
    return "\n".join([*lines, *_classes(graph)]) + "\n"


def label(text: str) -> str:
    """Return a text as a part of a quoted label."""
    return _UNSAFE.sub(lambda found: f"#{ord(found[0])};", clip(text, NAME))


def _node(number: int, cell: Cell) -> str:
    first, second = two_lines(cell)
    shape = ('[["', '"]]') if len(cell.tasks) > 1 else ('["', '"]')
    return f"n{number}{shape[0]}{GLYPHS[state_of(cell)]} {label(first)}<br/>{label(second)}{shape[1]}"


def _classes(graph: Graph) -> list[str]:
    """The colours: a class for each state that is there."""
    nodes: dict[str, list[str]] = {}
    for number, cell in enumerate(graph.cells):
        nodes.setdefault(state_of(cell), []).append(f"n{number}")
    lines = []
    for state in (state for state in ORDER if state in nodes):
        colour = LIGHT.states[state]
        lines.append(f"    classDef s_{state} fill:{colour.fill},stroke:{colour.fill},color:{colour.ink}")
        lines.append(f"    class {','.join(nodes[state])} s_{state}")
    return lines
