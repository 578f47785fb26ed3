"""The graph of a batch for Graphviz.

Law: every text is a quoted string with backslashes doubled, so that no name ends it or is an escape of Graphviz; no
label is of the kind that looks like HTML.
"""

from __future__ import annotations

from spoold.pictures.boxes import graph_of, state_of, two_lines
from spoold.pictures.palette import GLYPHS, LIGHT
from spoold.pictures.picture_data import Bond, Scene
from spoold.pictures.wording import clip
from spoold.protocol.amount import figure

NAME = 60
_STYLES = {Bond.SUCCESS: "solid", Bond.END: "dashed", Bond.FAILURE: "dotted", Bond.BATCH: "bold"}


def write(scene: Scene) -> str:
    """Return the whole text."""
    graph = graph_of(scene)
    lines = [
        f"digraph {quoted(scene.title)} {{",
        '  rankdir=LR; bgcolor="transparent";',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11];',
        f'  edge [color="{LIGHT.link}", arrowsize=0.7];',
    ]
    for number, cell in enumerate(graph.cells):
        state, (first, second) = state_of(cell), two_lines(cell)
        colour = LIGHT.states[state]
        label = f"{inner(f'{GLYPHS[state]} {first}')}\\n{inner(second)}"
        many = ", peripheries=2" if len(cell.tasks) > 1 else ""
        lines.append(f'  n{number} [label="{label}", fillcolor="{colour.fill}", fontcolor="{colour.ink}"{many}];')
    for link in graph.links:
        count = f', label="{figure(link.count)}"' if link.count > 1 else ""
        lines.append(f"  n{link.source} -> n{link.target} [style={_STYLES[link.bond]}{count}];")
    return "\n".join([*lines, "}"]) + "\n"


def inner(text: str) -> str:
    """Return a text as a part of a quoted string."""
    return clip(text, NAME).replace("\\", "\\\\").replace('"', '\\"')


def quoted(text: str) -> str:
    """Return a text as a quoted string."""
    return f'"{inner(text)}"'
