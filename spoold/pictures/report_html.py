"""The report of a batch as one HTML file that opens offline, and its tables.

Law: no script, no address of anything; the policy in its head forbids both, and allows its own sheet by its hash. A
table that shows only some rows says of how many. Numbers are those of `picture_data`, and formatted in one way.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from spoold.pictures import graph_svg, picture_data, svg, timeline_svg
from spoold.pictures.boxes import lasted
from spoold.pictures.palette import DARK, GLYPHS, LIGHT, Scheme
from spoold.pictures.picture_data import Scene, Task
from spoold.pictures.svg import Markup, joined, lines, tag
from spoold.pictures.timeline_layout import clock, date, micros
from spoold.pictures.wording import clip
from spoold.protocol.amount import amount, figure, some


def write(scene: Scene) -> str:
    """Return the whole file."""
    css = f"{_page()}\n{svg.drawing()}"
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
    total, ended, archived = len(scene.inside), picture_data.ended(scene), picture_data.archived(scene)
    share = 100 * ended // total if total else 0
    said = f"{figure(ended)} of {amount(total, 'task')} ended, {share} %"
    if archived:
        said += f"; {figure(archived)} archived, which `spool status` counts no longer"
    found = {name: number for name, number in picture_data.counts(scene).items() if number}
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
    return f"""body{{margin:0;font:15px/1.5 {svg.FONT}}}main{{max-width:1290px;margin:0 auto;padding:24px}}
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
pre{{overflow-x:auto;font:12.5px/1.45 {svg.MONO};padding:10px 12px;border-radius:6px;margin:6px 0;
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


# The tables of a report.


TOP = 20
# So many failures can be read without a click.
OPEN = 3
TASKS_MOST = 1000
_TEXT = 90
_NUMBERS = frozenset({"tasks", "with children: tasks", "attempts", "ran", "tokens", "USD"})


def slowest(scene: Scene) -> Markup:
    """Return the tasks whose attempts took longest."""
    found = picture_data.slowest(scene)
    rows = [
        (state(task.state), _task(task), task.type, right(figure(len(task.attempts))), right(lasted(task.ran_s)))
        for task in found[:TOP]
    ]
    return part("Slowest tasks", of(len(rows), len(found)), table(("state", "task", "type", "attempts", "ran"), rows))


def spent_by_model(scene: Scene) -> Markup:
    """Return what attempts came to, by model."""
    found = picture_data.by_model(scene)
    rows = [
        (
            clip(model, _TEXT) or "not said",
            right(figure(one.attempts)),
            right(lasted(one.duration_s)),
            right(count(one.tokens)),
            right(usd(one.cost_usd)),
        )
        for model, one in found.items()
    ]
    note = "of all attempts that ended and tell of tokens, cost or a model"
    return part("Cost by model", note, table(("model", "attempts", "ran", "tokens", "USD"), rows))


def spent_by_task(scene: Scene) -> Markup:
    """Return the dearest tasks; where one has children, with what all below it came to."""
    found = picture_data.dearest(scene)
    families = any(task.tree is not None for task in found)
    rows = [
        (
            state(task.state),
            _task(task),
            right(figure(0 if task.total is None else task.total.attempts)),
            right(count(None if task.total is None else task.total.tokens_used)),
            right(usd(None if task.total is None else task.total.cost_usd)),
            *(_whole(task) if families else ()),
        )
        for task in found[:TOP]
    ]
    more = ("with children: tasks", "tokens", "USD") if families else ()
    header = ("state", "task", "attempts", "tokens", "USD", *more)
    return part("Cost by task", of(len(rows), len(found)), table(header, rows))


def _whole(task: Task) -> tuple[str, ...]:
    if task.tree is None:
        return "", "", ""
    tasks, tokens, cost_usd = task.tree
    return right(figure(tasks)), right(count(tokens)), right(usd(cost_usd))


def failures(scene: Scene) -> Markup:
    """Return why tasks failed: a row for each cause, then each task with the end of its log."""
    causes, failed = picture_data.causes(scene), picture_data.failed(scene)
    if not causes:
        return part("Failures", "no task failed")
    rows = [
        (
            right(figure(len(cause.tasks))),
            clip(cause.code, _TEXT),
            clip(cause.message, 160),
            some([clip(task.id, 40) for task in cause.tasks], picture_data.IDS_NAMED),
        )
        for cause in causes
    ]
    shown = picture_data.telling(failed)[:TOP]
    return part(
        "Failures",
        f"the end of the log of {of(len(shown), len(failed))}",
        table(("tasks", "code", "message", "which"), rows),
        *(_failure(task, opened=place < OPEN) for place, task in enumerate(shown)),
    )


def _failure(task: Task, *, opened: bool) -> Markup:
    last = task.attempts[-1] if task.attempts else None
    tries = f", {amount(len(task.attempts), 'attempt')}" if len(task.attempts) > 1 else ""
    where = f" on {clip(last.worker, 40)}" if last is not None and last.worker else ""
    wrote = tag("pre", lines(task.wrote)) if task.wrote else tag("p", "It has no log.", class_="note")
    return tag(
        "details",
        tag("summary", state(task.state), " ", tag("b", clip(task.id, _TEXT)), tag("span", f"{where}{tries}")),
        tag("p", clip(task.reason, 1000)),
        wrote,
        open="" if opened else None,
    )


def every(scene: Scene) -> Markup:
    """Return all tasks, in the order of `spool ls`."""
    rows = [
        (
            state(task.state),
            _task(task),
            task.type,
            right(figure(len(task.attempts))),
            right(lasted(task.ran_s) if task.total is not None else "-"),
            right(count(task.total.tokens_used if task.total else None)),
            right(usd(task.total.cost_usd if task.total else None)),
            clip(task.reason, _TEXT),
        )
        for task in scene.inside[:TASKS_MOST]
    ]
    header = ("state", "task", "type", "attempts", "ran", "tokens", "USD", "reason")
    note = of(len(rows), len(scene.inside))
    return tag(
        "section", tag("details", tag("summary", tag("b", "All tasks"), tag("span", note)), table(header, rows))
    )


def state(name: str) -> Markup:
    """Return a state with its sign."""
    return tag("span", tag("i", GLYPHS[name], class_=f"b-{name}"), f" {name}", class_="state")


def part(title: str, note: str, *content: Markup) -> Markup:
    """Return a section under a heading."""
    return tag("section", tag("h2", title), tag("p", note, class_="note"), *content)


def of(shown: int, all_: int) -> str:
    """Return how many of how many are shown."""
    return amount(all_, "task") if shown == all_ else f"{figure(shown)} of {amount(all_, 'task')}"


def right(text: str) -> Markup:
    """Return a number, for the right side of its column."""
    return tag("span", text, class_="number")


def count(value: float | None) -> str:
    """Return a number of tokens."""
    return "-" if value is None else figure(value)


def usd(value: float | None) -> str:
    """Return an amount of money."""
    return "-" if value is None else figure(value, 4)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table; nothing where it has no row."""
    made = [tag("tr", *(_cell(cell) for cell in row)) for row in rows]
    if not made:
        return Markup()
    head = tag(
        "tr", *(tag("th", name, scope="col", class_="number" if name in _NUMBERS else None) for name in header)
    )
    return tag("div", tag("table", tag("thead", head), tag("tbody", joined(made))), class_="wide")


def _cell(content: str) -> Markup:
    return tag("td", content)


def _task(task: Task) -> Markup:
    name = tag("small", clip(task.name, 60)) if task.name else Markup()
    return tag("span", clip(task.id, 60), " ", name)
