"""The roles of a caller: `agent` and `operator`.

Law: within a task, of whatever spool, nobody is an operator.

Touches: the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum

from spoold.protocol.errors import SpoolError


class Role(StrEnum):
    """An agent reaches the tasks below it; an operator reaches all, answers questions, and stops the pool."""

    AGENT = "agent"
    OPERATOR = "operator"


def role_of(wanted: str, own: str | None, environ: Mapping[str, str] = os.environ) -> Role:
    """Return the role for this process. own: the task in which it runs. Errors: SpoolError."""
    try:
        role = Role(wanted)
    except ValueError:
        raise SpoolError(f"--role: {wanted!r} is no role. Fix: use {' or '.join(Role)}.") from None
    within = own or environ.get("SPOOL_TASK_ID")
    if within and role is Role.OPERATOR:
        raise SpoolError(
            f"--role: this runs within task {within}, and a task cannot be an operator. "
            "Fix: leave --role out, or start it outside of tasks."
        )
    return role
