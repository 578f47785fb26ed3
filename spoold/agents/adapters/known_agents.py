"""Which agents are known, and the adapter of each.

Law: an adapter is found by the name of its module alone; nothing else in the house lists them.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from spoold.agents import adapters
from spoold.agents.adapters.adapter import Adapter

GENERIC = "generic"


def names() -> list[str]:
    """Return the agents that a profile may name as its `cli`."""
    found = (f"{adapters.__name__}.{module.name}" for module in pkgutil.iter_modules(adapters.__path__))
    makes = [module for module in found if module != __name__ and hasattr(import_module(module), "make")]
    return sorted(module.rpartition(".")[2] for module in makes)


def make(name: str) -> Adapter:
    """Return a new adapter. Errors: KeyError for an agent that is not known."""
    if name not in names():
        raise KeyError(name)
    made: Adapter = import_module(f"{adapters.__name__}.{name}").make()
    return made
