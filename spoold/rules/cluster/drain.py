"""Which nodes a drain, or an undrain, means.

Law: worker, leader, `spool drain` and `spool explain` all ask here. A drain never means a master.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.protocol.names import key
from spoold.protocol.request import EVERYTHING, Request, Verb


def is_meant(target: str, node: str, role: str = "worker") -> bool:
    """Whether the target means this node: by its id, by its own name (the id up to the last `-`), or with all others.

    Never a master: it runs no task, and ends when its process is stopped.
    """
    return role == "worker" and (target == EVERYTHING or key(target) in (node, node.rpartition("-")[0]))


def is_drained(node: str, requests: Iterable[Request]) -> bool:
    """Whether a drain stands for the worker."""
    return any(request.verb is Verb.DRAIN and is_meant(request.target, node) for request in requests)
