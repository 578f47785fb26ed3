"""How many tasks a worker may claim before a slot is free for them.

A task that ends within a millisecond costs less than moving the next one into its slot. So while a worker's tasks are
that short, many in a row, each of its slots is given the next few before it is free.

Law: a task waits in a slot for short tasks only. Behind a task that turns out to be long it is handed back, for
other workers to run. That costs it an attempt's number, so none are claimed ahead after few short tasks, or old ones.
"""

from __future__ import annotations

from collections.abc import Collection

# Look at so many of the latest ended tasks; they count for so long (s) after the last of them.
LATELY = 64
FORGET_S = 1.0
# A task may wait so long (s) for those before it, if each is as long as the longest, and so many may wait at most.
PATIENCE_S = 0.1
DEPTH = 16


def ahead(lately: Collection[float]) -> int:
    """How many tasks may be claimed ahead for a slot. lately: how long (s) the last LATELY tasks ran."""
    if len(lately) < LATELY:
        return 0
    longest = max(lately)
    return DEPTH if longest * DEPTH <= PATIENCE_S else int(PATIENCE_S / longest)


def has_room(held: int) -> bool:
    """Whether a slot with so many tasks takes one more: one runs, and at most DEPTH wait for it."""
    return held <= DEPTH


def preference(held: int, age_s: float, other: bool, lent: bool = False) -> tuple[bool, bool, bool, int, bool]:
    """Order slots for the next task; the lowest takes it, and has room if any slot does.

    held: how many tasks the slot has; age_s: how long (s) the first of them has run; other: whether it is warm for
    tasks of another kind; lent: whether the first waits for other tasks, so that none may wait behind it. A slot
    whose task runs long comes after those with short tasks, and a full one after all.
    """
    return (lent, not has_room(held), age_s >= PATIENCE_S, held, other)
