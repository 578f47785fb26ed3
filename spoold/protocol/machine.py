"""The machine id of a heartbeat, and the mark that a node adds once it knows that another machine has its identity.

Law: a marked id equals no other, so no process of its machine is looked up any more. Without the mark it is the id
that both machines had.
"""

from __future__ import annotations

# Not a hexadecimal digit, so no id that was only hashed has one.
_MARK = "+"


def marked(machine_id: str, chance: str) -> str:
    """Return the id of a machine that is not the only one with this id. chance: drawn once on this machine."""
    return f"{unmarked(machine_id)}{_MARK}{chance}"


def unmarked(machine_id: str) -> str:
    """Return the id that the machine had before it was marked."""
    return machine_id.partition(_MARK)[0]


def is_marked(machine_id: str) -> bool:
    """Return whether a node knows that another machine has its identity."""
    return _MARK in machine_id
