"""The tables of a report.

Law: a table that shows only some rows says of how many. Numbers are those of `figures`, and formatted in one way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spoold.pictures import figures
from spoold.pictures.captions import lasted
from spoold.pictures.palette import GLYPHS
from spoold.pictures.scene import Scene, Task
from spoold.pictures.svg import Markup, joined, lines, tag
from spoold.pictures.wording import clip
from spoold.protocol.amount import amount, figure, some

TOP = 20
# So many failures can be read without a click.
OPEN = 3
TASKS_MOST = 1000
_TEXT = 90
_NUMBERS = frozenset({"tasks", "with children: tasks", "attempts", "ran", "tokens", "USD"})


def slowest(scene: Scene) -> Markup:
    """Return the tasks whose attempts took longest."""
    found = figures.slowest(scene)
    rows = [
        (state(task.state), _task(task), task.type, right(figure(len(task.attempts))), right(lasted(task.ran_s)))
        for task in found[:TOP]
    ]
    return part("Slowest tasks", of(len(rows), len(found)), table(("state", "task", "type", "attempts", "ran"), rows))


def spent_by_model(scene: Scene) -> Markup:
    """Return what attempts came to, by model."""
    found = figures.by_model(scene)
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
    found = figures.dearest(scene)
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
    causes, failed = figures.causes(scene), figures.failed(scene)
    if not causes:
        return part("Failures", "no task failed")
    rows = [
        (
            right(figure(len(cause.tasks))),
            clip(cause.code, _TEXT),
            clip(cause.message, 160),
            some([clip(task.id, 40) for task in cause.tasks], figures.IDS_NAMED),
        )
        for cause in causes
    ]
    shown = figures.telling(failed)[:TOP]
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
