"""The figures of docs/benchmarks.md, and the chart in it, written anew.

Law: only what stands between the two marks is touched, and every figure there is of the calls that it names. Touches:
docs/benchmarks.md and growth.svg.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.benchmark.figure import Figure, depth, losses, number
from tools.benchmark.growth import chart, series
from tools.benchmark.position import REASONS, peer, position

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE, CHART = CHECKOUT / "docs/benchmarks.md", CHECKOUT / "tools/benchmark/growth.svg"
BEGIN, END = "<!-- tools/bench --publish writes from here", "<!-- to here -->"
MEANT = (
    "Tasks a second with two workers each, medians of interleaved runs; in brackets how many times as fast spoold "
    "was, median of the ratios round by round."
)
STANDS = (
    "Ahead: more than 1.1 times as fast, and faster in every round. Behind: less than 0.9 times, and slower in every "
    "round. Level: all else."
)
# Where the CPU of a task goes, as the contenders of spoold report it beside each rate.
SPENT = ("master CPU ms", "worker CPU ms", "helpers CPU ms", "programs CPU ms")
TIERS = {
    "queue": "queue only: in, out, acknowledged",
    "call": "Python callable, end to end with results",
    "map": "calls a second, a hundred to a task (`map` with `chunksize=100`), end to end with results",
    "process": "one process for each task, `/bin/true`",
}


def publish(machine: Mapping[str, Any], figures: Sequence[Figure]) -> None:
    """Renew both files. Errors: OSError; ValueError when the page has no place for them."""
    place = deepest_place(figures)
    if place is not None:
        lines = series(figures, "call", place)
        CHART.write_text(chart(lines, f"Python callables, end to end with results, on {place}"))
    PAGE.write_text(renewed(PAGE.read_text(), section(machine, figures)))


def deepest_place(figures: Sequence[Figure]) -> str | None:
    """The file system with the largest backlog of callables, which has most to tell; the first of several."""
    drained = [figure for figure in figures if figure.key.get("tier") == "call" and figure.value]
    deepest = max(drained, key=lambda figure: int(figure.key["backlog"]), default=None)
    return None if deepest is None else str(deepest.key["place"])


def renewed(page: str, text: str) -> str:
    """The page with this text between the marks. Errors: ValueError when the marks are not there."""
    before, begin, rest = page.partition(BEGIN)
    mark, closed, _ = rest.partition("-->")
    _, end, after = rest.partition(END)
    if not (begin and closed and end):
        raise ValueError(
            f"{PAGE.name} has no section between {BEGIN!r} and {END!r}; put both lines where it shall stand"
        )
    return f"{before}{BEGIN}{mark}-->\n{text}\n{END}{after}"


def section(machine: Mapping[str, Any], figures: Sequence[Figure]) -> str:
    """The text between the marks."""
    commands = " and ".join(f"`{command}`" for command in machine["commands"])
    ran = (
        f"{machine['cpus']} cores ({machine['cpu']}), {machine['memory_gib']} GiB, {' and '.join(machine['places'])}"
    )
    parts = [f"Measured by {commands} on {machine['date']}: {ran}, Python {machine['python']}.", MEANT, ""]
    if deepest_place(figures) is not None:
        parts += [f"![Tasks a second against the backlog](../{CHART.relative_to(CHECKOUT)})", ""]
    for tier, meaning in TIERS.items():
        for place in machine["places"]:
            parts += rates(figures, tier, str(place), f"{meaning}; {place}")
    parts += peers(figures)
    parts += spent(figures)
    parts += calls(figures)
    parts += targets(figures)
    parts.append(f"Lost {losses(figures, 'lost')}, doubled {losses(figures, 'doubled')} in all rows of spoold.")
    return "\n".join(parts)


def rates(figures: Sequence[Figure], tier: str, place: str, heading: str) -> list[str]:
    """One table: contenders by backlog, and how many times as fast spoold was in the same rounds."""
    here = [figure for figure in figures if (figure.key.get("tier"), figure.key.get("place")) == (tier, place)]
    rows: dict[str, dict[int, str]] = {}
    ours = ("spoold", "spoold, map")
    times = {(f.key["theirs"], f.key["backlog"]): f.value for f in here if f.key.get("ours") in ours}
    for figure in here:
        if "label" in figure.key:
            label, backlog = str(figure.key["label"]), int(figure.key["backlog"])
            said = number(figure.value) if figure.value is not None else "missing"
            ratio = times.get((label, backlog))
            rows.setdefault(label, {})[backlog] = f"{said} ({number(ratio)}×)" if ratio is not None else said
    if not rows:
        return []
    depths = sorted({backlog for row in rows.values() for backlog in row})
    table = [f"| {heading} | {' | '.join(map(depth, depths))} |", f"|---|{'---:|' * len(depths)}"]
    table += [f"| {label} | {' | '.join(row.get(at, '–') for at in depths)} |" for label, row in rows.items()]
    return [*table, ""]


def peers(figures: Sequence[Figure]) -> list[str]:
    """How spoold stands to each peer, and why."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for figure in figures:
        if "theirs" in figure.key and figure.samples:
            at, durable = figure.key, ", fsync" if "fsync" in figure.key["theirs"] else ""
            where = f"{at['place']} {depth(int(at['backlog']))}{durable}"
            stands = found.setdefault(peer(str(at["theirs"])), {})
            stands.setdefault((str(at["tier"]), position(figure.samples)), []).append(where)
    if not found:
        return []
    rows = [STANDS, "", "| spoold is, beside | | why |", "|---|---|---|"]
    for name, stands in found.items():
        said = "; ".join(f"{tier}: **{how}** ({', '.join(where)})" for (tier, how), where in stands.items())
        rows.append(f"| {name} | {said} | {REASONS.get(name, '')} |")
    return [*rows, ""]


def spent(figures: Sequence[Figure]) -> list[str]:
    """Whose CPU a task takes, at each backlog."""
    own = [f for f in figures if str(f.key.get("label")).startswith("spoold") and all(one in f.more for one in SPENT)]
    rows: dict[str, dict[int, str]] = {}
    for figure in own:
        row = rows.setdefault(f"{figure.key['tier']}: {figure.key['label']}; {figure.key['place']}", {})
        row[int(figure.key["backlog"])] = " + ".join(number(figure.more[one]) for one in SPENT)
    if not rows:
        return []
    depths = sorted({backlog for row in rows.values() for backlog in row})
    heading = "CPU of a task, ms: the leader + the workers + the processes in which they run it + its own program"
    table = [f"| {heading} | {' | '.join(map(depth, depths))} |", f"|---|{'---:|' * len(depths)}"]
    table += [f"| {name} | {' | '.join(row.get(at, '–') for at in depths)} |" for name, row in rows.items()]
    return [*table, ""]


def calls(figures: Sequence[Figure]) -> list[str]:
    """The system calls of a task, the most frequent ones by name."""
    counted = [figure for figure in figures if figure.unit == "calls" and figure.value is not None]
    if not counted:
        return []
    rows = [f"| {figure.name} | {number(figure.value or 0)} | {figure.note} |" for figure in counted]
    return ["| | calls | most of them |", "|---|---:|---|", *rows, ""]


def targets(figures: Sequence[Figure]) -> list[str]:
    """Every figure that was meant to be something, and whether it is."""
    judged = [figure for figure in figures if figure.target is not None]
    if not judged:
        return []
    missed = sum(1 for figure in judged if not figure.holds)
    rows = [f"<details markdown><summary>{len(judged)} figures that were meant to be something: ", ""]
    rows[0] += f"{len(judged) - missed} hold, {missed} missed</summary>"
    rows += ["| | meant to be | median | spread | |", "|---|---|---:|---|---|"]
    for figure in judged:
        value = "missing" if figure.value is None else f"{number(figure.value)} {figure.unit}"
        spread = f"{number(min(figure.samples))} – {number(max(figure.samples))}" if figure.samples else ""
        verdict = "holds" if figure.holds else "**missed**"
        rows.append(f"| {figure.part}: {figure.name} | {figure.target} | {value} | {spread} | {verdict} |")
    return [*rows, "", "</details>", ""]
