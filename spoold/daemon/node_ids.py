"""Node ids: a readable name and a part that is unique per start, so that two starts never share a directory.

Law: each call makes a new id, with five random characters at its end. An id is lower-case, has at most NODE_MAX
characters, and can be a file name everywhere.

Touches: the network.
"""

from __future__ import annotations

import re
import secrets
import socket

from spoold.protocol.names import BASE36, NODE_MAX


def node_id(name: str | None, role: str = "") -> str:
    """Return `NAME-xxxxx`: the name, or this machine's, made legal, and five random characters.

    With role, `ROLE-NAME-xxxxx`.
    """
    stem = re.sub(r"[^a-z0-9_-]+", "-", (name or socket.gethostname().partition(".")[0]).lower()).strip("-_")
    if role:
        stem = f"{role}-{stem}"
    suffix = "".join(secrets.choice(BASE36) for _ in range(5))
    return f"{(stem or 'node')[: NODE_MAX - 6].rstrip('-_')}-{suffix}"
