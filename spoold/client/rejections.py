"""The drop that was rejected because a task has its id.

Law: looks and never touches. Only drops whose names hold the id are looked at, such as those of `spool submit`: all
others would have to be read.
"""

from __future__ import annotations

from spoold.protocol import layout
from spoold.protocol.drop import id_in
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.store import drop_search
from spoold.store.locate import Located
from spoold.system.filesystem import FileSystem


def twin(fs: FileSystem, located: Located) -> BadFile | None:
    """Return why the last drop with this task's id was rejected; None where none was. Errors: OSError."""
    if located.state in (State.PENDING, State.REJECTED):
        return None
    wanted = key(located.id)
    for name in sorted(fs.list(layout.REJECTED), reverse=True):  # our names sort by age
        found = id_in(name.removesuffix(layout.REASON)) if name.endswith(layout.REASON) else None
        if found is not None and key(found) == wanted:
            return drop_search.problem_in(drop_search.read_reason(fs, layout.join(layout.REJECTED, name)))
    return None
