"""The names that a task or the settings use of other sections of the settings: each must be there.

Law: an unknown name is an error where it is written, with the nearest known one: a limit that holds nothing would go
unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spoold.protocol.errors import BadFile
from spoold.protocol.lanes import as_word
from spoold.protocol.settings import LimitSettings, Settings
from spoold.protocol.task import Task
from spoold.rules.answers.selection import suggestion
from spoold.rules.gates.resources import DEFAULT


class UnknownName(BadFile):
    """A name that the settings do not have, as this node knows them. They may have changed since it looked."""


def check_names(task: Task, settings: Settings, file: str) -> None:
    """Check the names in a task. Errors: UnknownName."""
    for field, problem, mend in _of_uses("uses", task.uses, settings.limits):
        raise UnknownName(file, field, problem, mend)
    for fault in _of_class(task.bulkhead, settings, file, "class"):
        raise fault
    for fault in _of_budgets(task.budgets, settings, file, "budgets"):
        raise fault


def check_settings_names(settings: Settings, file: str) -> None:
    """Check the names that one section of the settings uses of another. Errors: UnknownName."""
    for fault in unknown_names(settings, file):
        raise fault


def unknown_names(settings: Settings, file: str) -> Iterator[UnknownName]:
    """Every fault of such a name."""
    for kind, own in settings.types.items():
        for field, problem, mend in _of_uses(f"types.{kind}.uses", own.uses, settings.limits):
            yield UnknownName(file, field, problem, mend)
        yield from _of_class(own.bulkhead, settings, file, f"types.{kind}.class")
        yield from _of_budgets(own.budgets, settings, file, f"types.{kind}.budgets")


def _of_budgets(names: tuple[str, ...], settings: Settings, file: str, field: str) -> Iterator[UnknownName]:
    for name in names:
        if name not in settings.budgets:
            mend = f"{suggestion(name, settings.budgets)} Budgets are named in spool.toml, as [budgets.{name}]."
            yield UnknownName(file, field, f"there is no budget {name!r}.", mend)


def _of_class(name: str | None, settings: Settings, file: str, field: str) -> Iterator[UnknownName]:
    if name and name != DEFAULT and name not in settings.classes:
        mend = f"{suggestion(name, settings.classes)} Classes are named in spool.toml, as [classes.{name}]."
        yield UnknownName(file, field, f"there is no class {name!r}.", mend)


def _of_uses(
    field: str, uses: Mapping[str, int], limits: Mapping[str, LimitSettings]
) -> Iterator[tuple[str, str, str]]:
    """The fault of each use: field, problem, fix."""
    for name, units in uses.items():
        there = limits.get(name)
        if there is None:
            mend = f"{suggestion(name, limits)} Limits are named in spool.toml, as [limits.{name}]."
            yield field, f"there is no limit {name!r}.", mend
        elif there.max is not None and units > there.max > 0:
            yield (
                field,
                f"{units} of {name!r} are more than there are: its max is {there.max}.",
                f"use fewer, or raise [limits.{name}] max.",
            )
        elif there.rate is not None and units > there.rate.count:
            problem = (
                f"{units} of {name!r} are more than may ever begin at once: its rate.count is {there.rate.count}."
            )
            yield field, problem, f"use fewer, or raise [limits.{name}] rate.count."


def limit_named(name: str, settings: Settings) -> str:
    """Return the name of a limit as the settings spell it. Errors: BadFile for a limit that is not there."""
    word = as_word(name)
    if word not in settings.limits:
        raise BadFile(
            "the command line", "", f"names {name!r}, which is no limit.", suggestion(word, settings.limits)
        )
    return word
