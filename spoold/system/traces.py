"""Nodes that ran on this machine before: each leaves a file in the folder that systemd keeps when a unit restarts.

Law: an image of a machine's memory holds no trace of a node that began later. So a trace proves that its node ran on
this very machine, and not on one that was resumed from the same image. Without such a folder there are none.

Touches: files, the environment.
"""

from __future__ import annotations

import contextlib
import os

# Set by systemd for `RuntimeDirectory=`; RuntimeDirectoryPreserve=restart keeps it.
FOLDER = "RUNTIME_DIRECTORY"


def succeed(node: str) -> set[str]:
    """Leave this node's trace; return the nodes whose traces were there, which are removed. Never raises OSError."""
    folder = os.environ.get(FOLDER, "")
    found = set[str]()
    if not os.path.isabs(folder):
        return found
    with contextlib.suppress(OSError):
        found = {name for name in os.listdir(folder) if name != node}
        for name in found:
            with contextlib.suppress(OSError):  # what a task put there must not keep this node from leaving its own
                os.unlink(os.path.join(folder, name))
        os.close(os.open(os.path.join(folder, node), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return found
