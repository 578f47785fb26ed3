"""The report of a batch as one HTML file that opens offline.

Law: no script, no address of anything; the policy in its head forbids both, and allows its own sheet by its hash.
"""

from __future__ import annotations

import base64
import hashlib

from spoold.pictures import figures, graph_svg, sheet, timeline_svg
from spoold.pictures.axis import clock, date
from spoold.pictures.captions import lasted
from spoold.pictures.lanes import micros
from spoold.pictures.palette import DARK, LIGHT, Scheme
from spoold.pictures.report_tables import (
    count,
    every,
    failures,
    part,
    slowest,
    spent_by_model,
    spent_by_task,
    state,
    usd,
)
from spoold.pictures.scene import Scene
from spoold.pictures.svg import Markup, joined, tag
from spoold.pictures.wording import clip
from spoold.protocol.amount import amount, figure


def write(scene: Scene) -> str:
    """Return the whole file."""
    css = f"{_page()}\n{sheet.drawing()}"
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"Report of {scene.title}"),
        tag("style", Markup(css)),
    )
    body = tag("body", tag("main", joined(_sections(scene))))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _sections(scene: Scene) -> list[Markup]:
    at = micros(scene.at)
    return [
        tag("h1", clip(scene.title, 120)),
        tag("p", f"as of {date(at)} {clock(at)} UTC", class_="note"),
        _summary(scene),
        failures(scene),
        part("Timeline", "a lane for each slot of a worker", _wide("Timeline", timeline_svg.element(scene))),
        part("Graph", "what waits for what", _wide("Graph", graph_svg.element(scene))),
        slowest(scene),
        spent_by_model(scene),
        spent_by_task(scene),
        every(scene),
    ]


def _summary(scene: Scene) -> Markup:
    total, ended, archived = len(scene.inside), figures.ended(scene), figures.archived(scene)
    share = 100 * ended // total if total else 0
    said = f"{figure(ended)} of {amount(total, 'task')} ended, {share} %"
    if archived:
        said += f"; {figure(archived)} archived, which `spool status` counts no longer"
    found = {name: number for name, number in figures.counts(scene).items() if number}
    tiles = [tag("div", tag("b", figure(number)), state(name)) for name, number in found.items()]
    if scene.spent is not None:
        told = {
            "attempts": figure(scene.spent.attempts),
            "of run time": lasted(scene.spent.duration_s),
            "of CPU": "-" if scene.spent.cpu_s is None else lasted(scene.spent.cpu_s),
            "tokens": count(scene.spent.tokens_used),
            "USD": usd(scene.spent.cost_usd),
        }
        tiles += [tag("div", tag("b", value), tag("span", name)) for name, value in told.items() if value != "-"]
    note = "Attempts, times, tokens and USD are of the tasks that ended." if scene.spent is not None else ""
    return tag(
        "section", tag("p", said, class_="lead"), tag("div", *tiles, class_="tiles"), tag("p", note, class_="note")
    )


def _wide(name: str, drawing: Markup) -> Markup:
    """Return a drawing that can be scrolled, with keys, too."""
    return tag("div", drawing, class_="wide", tabindex="0", role="region", aria_label=f"{name}, picture")


def _page() -> str:
    return f"""body{{margin:0;font:15px/1.5 {sheet.FONT}}}main{{max-width:1290px;margin:0 auto;padding:24px}}
h1{{font-size:24px;margin:0}}h2{{font-size:17px;margin:0 0 2px}}section{{margin-top:26px}}p{{margin:4px 0}}
.lead{{font-size:17px}}.wide{{overflow-x:auto}}svg{{display:block;border-radius:8px}}
table{{border-collapse:collapse;margin-top:8px;font-size:14px}}th{{text-align:left;font-weight:600;font-size:12.5px}}
th,td{{padding:4px 14px 4px 0;vertical-align:top}}td{{overflow-wrap:break-word}}
.number{{display:block;text-align:right;white-space:nowrap;
font-variant-numeric:tabular-nums}}th.number{{display:table-cell}}
.tiles{{display:flex;flex-wrap:wrap;gap:10px;margin:12px 0 6px}}
.tiles div{{padding:8px 16px 8px 12px;border-radius:8px;min-width:92px}}
.tiles b{{display:block;font-size:22px;line-height:1.25;font-variant-numeric:tabular-nums}}
.state{{white-space:nowrap}}.state i{{display:inline-block;width:1.25em;height:1.25em;line-height:1.25em;
border-radius:3px;text-align:center;font-style:normal;font-weight:700;font-size:.8em;margin-right:3px}}
details{{margin-top:6px;padding:6px 12px;border-radius:8px}}summary{{cursor:pointer}}summary span{{margin-left:4px}}
pre{{overflow-x:auto;font:12.5px/1.45 {sheet.MONO};padding:10px 12px;border-radius:6px;margin:6px 0;
white-space:pre-wrap;overflow-wrap:anywhere}}
{_colours(LIGHT)}
@media (prefers-color-scheme:dark){{
{_colours(DARK)}
}}"""


def _colours(scheme: Scheme) -> str:
    states = "".join(
        f".b-{name}{{background:{colour.fill};color:{colour.ink}}}" for name, colour in scheme.states.items()
    )
    return f"""body{{background:{scheme.paper};color:{scheme.ink}}}.note,th,small,summary span{{color:{scheme.mute}}}
.tiles div,details{{background:{scheme.card}}}pre{{background:{scheme.paper};border:1px solid {scheme.line}}}
tbody tr{{border-top:1px solid {scheme.line}}}svg{{border:1px solid {scheme.line}}}
{states}"""
