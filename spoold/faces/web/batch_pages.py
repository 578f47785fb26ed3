"""All batches, and one: its graph, its timeline, its figures.

Law: the pictures are those of `spool graph --svg` and `spool timeline --svg`. A picture is in the page, with links to
its tasks, while it has few elements; else the page shows it as an image. A batch too large to be read at every look
is drawn when somebody asks for it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from spoold.client.view import BatchRow, Query
from spoold.faces.web import page_address
from spoold.faces.web.page_address import Address
from spoold.faces.web.security import BARE_POLICY
from spoold.faces.web.site import FILES_S, Raw, Shown, Site, raw
from spoold.pictures import graph_svg, picture_data, svg, timeline_svg
from spoold.pictures.boxes import lasted
from spoold.pictures.graph_svg import Href
from spoold.pictures.picture_data import Scene
from spoold.pictures.svg import Markup as Drawn
from spoold.protocol.errors import BadFile, NotFound
from spoold.protocol.lifecycle import SHOWN

PAGE = 100
# How long (s) a page waits for its pictures.
PATIENCE_S = 0.8
# A batch of more tasks is drawn when somebody asks for it: each of its files is read for that.
DRAWN_MOST = 2000
# A picture with more elements is an image.
ELEMENTS_MOST = 1100
ROWS = 20
PICTURES: dict[str, tuple[Callable[[Scene], str], Callable[[Scene, Href], Drawn]]] = {
    "graph": (graph_svg.draw, graph_svg.element),
    "timeline": (timeline_svg.draw, timeline_svg.element),
}


def show_all(site: Site, asked: Address) -> Shown:
    """Return the page of all batches, the newest first."""
    rows = site.view.batches()
    text = asked.one("q").casefold()
    fitting = [row for row in rows if text in row.batch.casefold()]
    begin = max(0, asked.number("from"))
    values: dict[str, Any] = {
        "rows": [(row, _counts(row)) for row in fitting[begin : begin + PAGE]],
        "matches": len(fitting),
        "total": len(rows),
        "begin": begin,
        "text": asked.one("q"),
        "next": begin + PAGE if begin + PAGE < len(fitting) else 0,
        "Query": Query,
    }
    return Shown("batches", "Batches", values)


def _counts(row: BatchRow) -> list[tuple[str, int]]:
    return [(state.value, row.counts[state.value]) for state in SHOWN if row.counts.get(state.value)]


def show_batch(site: Site, asked: Address) -> Shown:
    """Return the page of one batch. Errors: NotFound."""
    name = _name(asked)
    if code := asked.one("cause"):
        return _cause(site, name, code)
    row = next((row for row in site.view.batches() if row.batch == name), None)
    drawn = row is None or row.total <= DRAWN_MOST or asked.one("draw") == "1"
    values: dict[str, Any] = {"name": name, "row": row, "counts": _counts(row) if row else [], "scene": None}
    again = False
    values |= {"Query": Query, "ended": 0, "draw": page_address.link("/batch", {"name": name, "draw": "1"})}
    if row is not None:
        values["ended"] = sum(row.counts.get(state, 0) for state in ("completed", "failed", "skipped", "rejected"))
    if drawn:
        scene = site.later.get(("scene", name), lambda: site.view.scene(name), fresh_s=FILES_S, patience_s=PATIENCE_S)
        if scene.error:
            raise NotFound(scene.error)
        again = scene.pending
        values |= _drawn(scene.value, name) if scene.value is not None else {}
    return Shown("batch", f"Batch {name}", {**values, "pending": again}, nav="/batches", again=again)


def _cause(site: Site, name: str, code: str) -> Shown:
    """The tasks of a batch that failed for one cause. Errors: NotFound."""
    for cause in picture_data.causes(site.view.scene(name)):
        if cause.code == code:
            return Shown("cause", f"Batch {name}", {"name": name, "cause": cause}, nav="/batches")
    raise NotFound(f"No task of batch {name} failed for that cause.")


def _drawn(scene: Scene, name: str) -> dict[str, Any]:
    causes = picture_data.causes(scene)
    return {
        "scene": scene,
        "pictures": [(kind, *_picture(scene, name, kind)) for kind in PICTURES],
        "causes": causes[:ROWS],
        "causes_left": len(causes) - ROWS,
        "models": [(model, spent) for model, spent in picture_data.by_model(scene).items() if model or spent.tokens][
            :ROWS
        ],
        "slowest": _with_time(picture_data.slowest(scene)[:5]),
        "dearest": picture_data.dearest(scene)[:5],
        "lasted": lasted,
    }


def _with_time(tasks: Sequence[Any]) -> list[tuple[Any, str]]:
    return [(task, lasted(task.ran_s)) for task in tasks]


def _picture(scene: Scene, name: str, kind: str) -> tuple[Markup | None, str]:
    """The picture for the page, None where it is an image; and the address of the image."""
    element = PICTURES[kind][1](scene, page_address.task)
    inline = element.count("<") - element.count("</") <= ELEMENTS_MOST
    return Markup(element) if inline else None, page_address.batch(name, f"/{kind}.svg")


def picture(site: Site) -> Callable[[Request], Response]:
    """Return the endpoint that sends a picture of a batch as a file."""
    style = base64.b64encode(hashlib.sha256(svg.drawing().encode()).digest()).decode()
    policy = BARE_POLICY.replace("default-src 'none'", f"default-src 'none'; style-src 'sha256-{style}'")

    def answer(request: Request) -> Response:
        kind = str(request.path_params["kind"])
        if kind not in PICTURES:
            raise NotFound("There is no such picture.")
        scene = site.view.scene(_name(page_address.read(request.url.query)))
        return raw(Raw(PICTURES[kind][0](scene).encode(), "image/svg+xml; charset=utf-8", policy))

    return answer


def _name(asked: Address) -> str:
    name = asked.one("name")
    if not name:
        raise BadFile("the URL", "name", "names no batch.", "open the batch from the list of batches.")
    return name
