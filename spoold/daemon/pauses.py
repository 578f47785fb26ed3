"""Says in the log of a node that it was stopped, starved or suspended, as soon as it goes on.

Law: one line for each pause that can have made a beat late: longer than the margin by which beats come before their
interval is over, and than the least that causes a silence. It has the node's own figures. `pulse` charges no pause to
the share.
"""

from __future__ import annotations

import logging

from spoold.daemon.pulse import Pause
from spoold.protocol.amount import precise
from spoold.rules.share.blame import LEAST_S, Spent, judge

log = logging.getLogger("spoold")

# Beats are published when two thirds of their interval are over (`store.presence`).
MARGIN = 1 / 3
_WHO = "this node"


def tell(pause: Pause | None, interval_s: float, node: str) -> None:
    """Log a pause that is long enough to matter. interval_s: of its beats; node: itself and its work, for people."""
    if pause is None or pause.stopped_s + pause.asleep_s < max(LEAST_S, MARGIN * interval_s):
        return
    spent = Spent(stopped_s=pause.stopped_s, asleep_s=pause.asleep_s)
    text = judge(spent, pause.stopped_s, _WHO).text
    if pause.asleep_s > pause.stopped_s:  # a laptop does that every day
        log.info("%s; %s", text, node)
        return
    where = "in a call to the share" if pause.calling else "in a step" if pause.stepping else "between two steps"
    log.warning("%s, %s; it used %s of processor time meanwhile; %s", text, where, precise(pause.used_s), node)
