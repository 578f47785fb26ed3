"""Model, tokens and temperature of an attempt: of the task, else of the profile, else of the type in spool.toml.

    # spool.toml
    [types.coder]
    model = "big-1"
    max_tokens = 8000
    temperature = 0.2

Law: a task chooses a model only where the profile allows it. What an agent cannot be given is said, and never dropped
in silence. Each value is one plain word or a number: none of them can become an option of a command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spoold.agents.adapters import finding
from spoold.agents.profiles import VALUES, Profile, takes
from spoold.client.spool.connection import Connection
from spoold.protocol.errors import SpoolError


@dataclass(frozen=True, slots=True)
class Choice:
    """Its model, the most tokens of one of its answers, and its temperature; '' and None: as the agent has it."""

    model: str = ""
    max_tokens: int | None = None
    temperature: float | None = None


NONE = Choice()


def of_type(root: str, kind: str) -> tuple[Choice, str]:
    """Return what the settings of a type say, and why they cannot be read, '' where they can. root: of the spool."""
    try:
        with Connection(root) as spool:
            found = spool.store.settings.of(kind)
    except (SpoolError, OSError) as error:
        return NONE, f"the settings of the type {kind} cannot be read, so none counts: {error}"
    return Choice(found.model or "", found.max_tokens, found.temperature), ""


def chosen(said: Mapping[str, Any], profile: Profile, kind: Choice) -> Choice:
    """Return what counts. said: the task's input, of which its profile was asked; kind: the settings of the type."""
    own, inherited = profile.max_tokens, kind.max_tokens
    return Choice(
        said.get("model") or profile.model or kind.model,
        own if own is not None else inherited,
        profile.temperature if profile.temperature is not None else kind.temperature,
    )


def passed(choice: Choice, profile: Profile) -> tuple[Choice, list[str]]:
    """Return what the agent is given, and of the rest why not, in words."""
    can, kept, told = takes(profile), choice, list[str]()
    for name in VALUES:
        value = getattr(choice, name)
        if value in ("", None):
            continue
        if name not in can:
            fix = (
                f"name {{{name}}} in its command" if profile.cli == finding.GENERIC else "say it in its own settings"
            )
        elif name in finding.make(profile.cli).by_model and not choice.model:
            fix = "name a model, too"
        else:
            continue
        kept = replace(kept, **{name: getattr(NONE, name)})
        told.append(f"{profile.cli} cannot be given {name}, so {value} does not count; {fix}")
    return kept, told
