"""The attempts over time as SVG: a lane for each slot, long idle gaps folded.

Bars that are too narrow to be seen are drawn as one, which says how many attempts it holds and how they ended.

Law: each attempt with a begin is in exactly one bar, and no bar is drawn longer than a pixel beyond its time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from spoold.pictures import svg
from spoold.pictures.boxes import lasted, tried
from spoold.pictures.graph_svg import Href
from spoold.pictures.palette import ORDER, WORST, mark
from spoold.pictures.picture_data import Scene
from spoold.pictures.svg import Markup, chip, joined, tag
from spoold.pictures.timeline_layout import Axis, Bar, Lane, Lanes, clock, date, lanes_of, peak
from spoold.pictures.wording import clip
from spoold.protocol.amount import amount, figure

WIDTH, LABELS, MARGIN = 1240.0, 168.0, 24.0
HEAD, LANE, BAR = 92.0, 24.0, 18.0
# Bars narrower than this are joined with their neighbours, and none is drawn narrower than the least.
NARROW, LEAST = 2.0, 1.0
# A letter at 10.5 pixels is so wide.
_LETTER = 6.4
_LEGEND = 112.0
_TITLE = 600


@dataclass(slots=True)
class _Drawn:
    """One bar on the paper, for one attempt or for several."""

    left: float
    right: float
    bars: list[Bar]


def draw(scene: Scene) -> str:
    """Return the whole file."""
    height, body = _drawn(scene)
    return svg.document(WIDTH, height, f"Timeline of {scene.title}", body)


def element(scene: Scene, href: Href = None) -> Markup:
    """Return the drawing for a page that has the sheet. href: where the bar of one attempt leads to."""
    height, body = _drawn(scene, href)
    return svg.picture(WIDTH, height, f"Timeline of {scene.title}", body, links=href is not None)


def _drawn(scene: Scene, href: Href = None) -> tuple[float, Markup]:
    lanes = lanes_of(scene)
    axis = Axis([(bar.begin, bar.end) for bar in lanes.bars], WIDTH - LABELS - 2 * MARGIN)
    height = HEAD + LANE * max(1, len(lanes.lanes)) + MARGIN
    bottom = height - MARGIN
    parts = [_head(scene, lanes, axis), _legend(lanes), *_bands(lanes), *_ticks(axis, bottom), *_folds(axis, bottom)]
    for row, lane in enumerate(lanes.lanes):
        parts += [_bar(one, HEAD + LANE * row + (LANE - BAR) / 2, href) for one in _joined(lane, axis)]
    return height, joined(parts)


def _head(scene: Scene, lanes: Lanes, axis: Axis) -> Markup:
    begin, end = axis.whole
    bars = len(lanes.bars)
    said = [amount(bars, "attempt")]
    if bars:
        said.append(f"{date(begin)} {clock(begin)} to {date(end)} {clock(end)} UTC, {lasted((end - begin) / 1e6)}")
        said.append(f"at most {peak(lanes)} at once")
    if lanes.unstarted:
        said.append(f"{figure(lanes.unstarted)} more have no known begin")
    return joined(
        [
            tag("text", clip(scene.title, 90), class_="ink head", x=MARGIN, y=30),
            tag("text", " · ".join(said), class_="mute", x=MARGIN, y=48),
        ]
    )


def _legend(lanes: Lanes) -> Markup:
    found = Counter(mark(bar.attempt.status) for bar in lanes.bars)
    words = {"completed": "success", "failed": "failure", "claimed": "running", "skipped": "cancelled"}
    parts, x = [], MARGIN
    for state in (state for state in ORDER if found[state]):
        said = f"{figure(found[state])} {words.get(state, state)}"
        parts += [chip(state, x, 57), tag("text", said, class_="ink", x=x + 20, y=68)]
        x += _LEGEND
    return joined(parts)


def _bands(lanes: Lanes) -> list[Markup]:
    """The ground of each second worker, and the names of workers and slots."""
    parts, row, shaded = [], 0, False
    while row < len(lanes.lanes):
        worker = lanes.lanes[row].worker
        rows = sum(lane.worker == worker for lane in lanes.lanes)
        y, shaded = HEAD + LANE * row, not shaded
        if shaded:
            parts.append(
                tag("rect", class_="band", x=MARGIN, y=y, width=WIDTH - 2 * MARGIN, height=LANE * rows, rx=4)
            )
        parts.append(
            tag("text", clip(worker, 21), tag("title", clip(worker, _TITLE)), class_="ink", x=MARGIN + 8, y=y + 16)
        )
        row += rows
    return parts


def _ticks(axis: Axis, bottom: float) -> list[Markup]:
    parts = []
    for tick in axis.ticks():
        x = MARGIN + LABELS + tick.x
        parts.append(tag("line", class_="rule", x1=x, x2=x, y1=HEAD - 4, y2=bottom))
        parts.append(tag("text", tick.label, class_="mute small", x=x, y=HEAD - 9))
    return parts


def _folds(axis: Axis, bottom: float) -> list[Markup]:
    parts = []
    for fold in axis.folds():
        x = MARGIN + LABELS + fold.left
        said = lasted(fold.idle_s)
        parts.append(
            tag(
                "g",
                tag("title", f"nothing ran for {said}"),
                tag("rect", class_="paper", x=x, y=HEAD - 4, width=fold.width, height=bottom - HEAD + 4),
                *(
                    tag("line", class_="rule dash", x1=x + at, x2=x + at, y1=HEAD - 4, y2=bottom)
                    for at in (0.0, fold.width)
                ),
                tag("text", "⋯", class_="mute middle", x=x + fold.width / 2, y=(HEAD + bottom) / 2),
                tag("text", said, class_="mute tiny middle", x=x + fold.width / 2, y=bottom + 12),
            )
        )
    return parts


def _joined(lane: Lane, axis: Axis) -> list[_Drawn]:
    """The bars of a lane, narrow neighbours as one."""
    found: list[_Drawn] = []
    for bar in lane.bars:
        left, right = axis.x(bar.begin), axis.x(bar.end)
        last = found[-1] if found else None
        if last is not None and right - last.left < NARROW and left - last.right < LEAST:
            last.right = max(last.right, right)
            last.bars.append(bar)
        else:
            found.append(_Drawn(left, right, [bar]))
    return found


def _bar(drawn: _Drawn, y: float, href: Href) -> Markup:
    x, wide = MARGIN + LABELS + drawn.left, max(LEAST, drawn.right - drawn.left - 0.5)
    found = Counter(mark(bar.attempt.status) for bar in drawn.bars)
    worst = next(state for state in WORST if found[state])
    if len(drawn.bars) > 1:
        ends = Counter(bar.attempt.status for bar in drawn.bars)
        said = ", ".join(f"{figure(count)} {status}" for status, count in ends.most_common())
        title = f"{amount(len(drawn.bars), 'attempt')}: {said}"
    else:
        (bar,) = drawn.bars
        title = tried(bar.task, bar.attempt, (bar.end - bar.begin) / 1e6)
    shape = tag(
        "rect",
        tag("title", clip(title, _TITLE)),
        class_=f"f-{worst}",
        x=x,
        y=y,
        width=wide,
        height=BAR,
        rx=min(3, wide / 2),
    )
    if len(drawn.bars) > 1:
        return shape
    bar = drawn.bars[0]
    if wide < 5 * _LETTER:
        return shape if href is None else tag("a", shape, href=href(bar.task.id))
    text = clip(bar.task.name or bar.task.id, int((wide - 10) / _LETTER))
    label = tag("text", text, class_=f"i-{worst} small over", x=x + 5, y=y + 13)
    both = Markup(shape + label)
    return both if href is None else tag("a", both, href=href(bar.task.id))
