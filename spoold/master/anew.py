"""Return a file that was taken out of pending/, and whose content has changed, to pending/ to be judged as a drop.

Law: what a program wrote into a file is judged, wherever the file is by then. Its old name may belong to another drop
by now, so the file comes back under a name that no other process makes.
"""

from __future__ import annotations

from spoold.master.desk import Desk
from spoold.protocol import layout
from spoold.protocol.drop import first_stem
from spoold.protocol.errors import legible
from spoold.protocol.lifecycle import Mover
from spoold.protocol.names import slug
from spoold.rules.entry import admission


def judge_anew(desk: Desk, path: str, drop: str) -> bool:
    """Move the file at `path` into pending/; True when it is there. drop: its name as a drop, with the extension."""
    stem, _, extension = drop.rpartition(".")
    suffix = admission.settle(drop, desk.next_micros(), desk.epoch)[0]
    back = f"{slug(first_stem(stem), 100)}.{suffix}.{extension}"
    moved = desk.store.move(Mover.LEADER, "REJUDGED", path, layout.join(layout.PENDING, back))
    if not desk.went(moved, legible(drop)):
        return False
    desk.journal.note("REJUDGED", drop=legible(drop), renamed=back)
    desk.polling.hasten("pending")
    return True
