"""Messages for agents, as the leader sees them: which are none, and which are left over when their task has ended.

Law: no message goes without a word: one that cannot be given, and one that the end of its task left over, are noted.
Whether an agent has had it is in the result of the last attempt alone.
May touch: the results of ended tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spoold.master.desk import Desk
from spoold.master.place import Place
from spoold.protocol import layout
from spoold.protocol.told import STANDING_MAX, fault_in, told_in
from spoold.rules.gates.requested import Requested, tells
from spoold.store.records import read_record

LEFT = "the task has ended, and its result does not say that its agent has had this message"
TOO_MANY = f"the task has {STANDING_MAX} messages already, and no more are kept"


def refused(requests: Sequence[Requested]) -> Iterator[tuple[Requested, str]]:
    """Yield each message that cannot be given, and why."""
    sound = 0
    for one in tells(requests):
        fault = fault_in(one.tell)
        if fault is not None:
            yield one, f"the message {fault[0]}"
        elif sound == STANDING_MAX:
            yield one, TOO_MANY
        else:
            sound += 1


def left_over(desk: Desk, place: Place | None, requests: Sequence[Requested]) -> set[str]:
    """Return the names of the messages that the agent of an ended task has not had, as far as that is known. Errors:
    OSError of the share.
    """
    standing = {one.unique for one in tells(requests)}
    if not standing or place is None:
        return set()
    record = read_record(desk.store.fs, layout.join(layout.RESULTS, place.name))
    return standing - {one.name for one in told_in(record.output)} if record is not None else set()
