"""What is printed at the end: the table of a swarm, and the story of a seed that broke a law."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.sim.minimise import AllBut, minimise
from tests.sim.trace import tell
from tests.sim.universe import Outcome
from tests.sim.weather import FLAVOURS
from tools.simulation.swarm import Swarm

SEEDS_SHOWN = 20


def summary(console: Console, result: Swarm) -> None:
    """The figures, and the faults by kind and by kind of share."""
    figures = Table(show_header=False, title="simulated", title_justify="left")
    figures.add_column()
    figures.add_column(justify="right")
    ratio = result.simulated_s / result.real_s if result.real_s else 0.0
    for name, value in (
        ("seeds", f"{result.seeds:,}"),
        ("simulated seconds", f"{result.simulated_s:,.0f}"),
        ("real seconds", f"{result.real_s:,.1f}"),
        ("simulated seconds per real second", f"{ratio:,.0f}"),
        ("turns of processes", f"{result.turns:,}"),
        ("moves of tasks", f"{result.moves:,}"),
        ("commits", f"{result.commits:,}"),
        ("fenced attempts", f"{result.fenced:,}"),
        ("faults", f"{result.faults.total():,}"),
        ("violations", f"{len(result.violations):,}"),
    ):
        figures.add_row(name, value)
    console.print(figures)
    faults = Table("fault", title="faults injected", title_justify="left")
    for flavour in FLAVOURS:
        faults.add_column(f"{flavour} ({result.flavours[flavour]:,} seeds)", justify="right")
    for kind in sorted({kind for kind, _ in result.faults}):
        counts = [result.faults[kind, flavour] for flavour in FLAVOURS]
        faults.add_row(kind, *(f"{count:,}" if count else "" for count in counts))
    console.print(faults)


def failures(console: Console, result: Swarm, world: str) -> None:
    """Each broken law with its seed, and the story of the first one."""
    for outcome in result.violations[:SEEDS_SHOWN]:
        _say(console, f"VIOLATION seed {outcome.seed}: {_short(outcome)}")
        _say(console, f"    {_command(outcome, world)}")
    if len(result.violations) > SEEDS_SHOWN:
        _say(console, f"and {len(result.violations) - SEEDS_SHOWN} more violations")
    if result.violations:
        story(console, min(result.violations, key=lambda outcome: len(outcome.struck)), world)


def story(console: Console, outcome: Outcome, world: str) -> None:
    """A broken seed: the law, the command, the faults that matter, and what happened to whom."""
    _say(console, f"seed {outcome.seed} ({outcome.flavour}) breaks a law:\n  {_short(outcome)}")
    _say(console, f"again: {_command(outcome, world)}")
    small = minimise(outcome)
    again, lines = tell(outcome.seed, AllBut(frozenset(small.faults)))
    _say(console, f"{len(small.faults)} of {len(outcome.struck)} faults are enough ({small.runs} runs to find them):")
    for fault in small.faults or ("none at all",):
        _say(console, f"  {fault}")
    _say(console, "what then happens:")
    for line in lines:
        _say(console, line)
    _say(console, f"BROKEN {_short(again)}")


def _command(outcome: Outcome, world: str) -> str:
    """What shows it once more, on any machine."""
    return f"tools/simulate --seed {outcome.seed}" + (f" --world {world}" if world != "fit" else "")


def _short(outcome: Outcome) -> str:
    """What went wrong, without the whole tree behind it."""
    return (outcome.broken or "")[:600]


def _say(console: Console, text: str) -> None:
    """As it stands: paths look like markup, and cut lines cannot be searched."""
    console.print(Text(text), soft_wrap=True)
