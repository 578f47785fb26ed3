"""The entries that count, as plain files in a folder of this machine, each under its own name.

Law: an entry that cannot be read is left out and named, and stops nothing. No file is written outside of the folder.

Touches: files.
"""

from __future__ import annotations

import os

from spoold.client.context_and_steps import SharedContext
from spoold.client.spool.connection import Connection
from spoold.protocol.errors import BadFile, NotFound

LOG = "VERSIONS"


def copied(spool: Connection, batch: str, folder: str) -> list[str]:
    """Write the entries of a batch into a folder that only this attempt has, and return what could not be read, in
    words. A file named VERSIONS says of each entry its version, and which ones its author had not seen.

    Errors: SpoolError, OSError.
    """
    shared = SharedContext(spool, batch)
    os.makedirs(folder, exist_ok=True)
    lines, problems = [], []
    for entry in shared.current():
        try:
            found, data = shared.get(entry.name)
        except (BadFile, NotFound) as problem:
            problems.append(str(problem))
            continue
        with open(os.path.join(folder, entry.name), "wb") as file:
            file.write(data)
        unseen = f" without knowledge of {', '.join(map(str, found.conflicts))}" if found.conflicts else ""
        lines.append(f"{found.name} {found.version}{unseen}\n")
    with open(os.path.join(folder, LOG), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return problems
