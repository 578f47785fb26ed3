"""Moves undone at the server, as a power cut undoes them there, while every client lives on and keeps polling.

Law: the moves are made on the server's own disk, behind the back of all clients.
"""

from __future__ import annotations

import time

from tools.laboratory.guests import wait_until
from tools.laboratory.matrix import outages
from tools.laboratory.matrix.pool import Pool
from tools.laboratory.matrix.told import Told, Unproven
from tools.laboratory.matrix.workload import under_fault

ROUNDS, PAUSE_S = 4, 1.5
# Promotions and claims beyond those that the tasks and what was undone account for: retries, hand-backs, holds.
SPARE = 150
# Prints how many tokens went back: from ready/ to waiting/, then from claimed/ to ready/. All tasks are of one lane.
_UNDO = """
ready=0; claimed=0; lane=$(ls ready | head -1); mkdir -p "waiting/$lane"
for file in ready/"$lane"/*.json; do mv -n "$file" "waiting/$lane/" 2>/dev/null && ready=$((ready + 1)); done
for file in claimed/*/*.json; do mv -n "$file" "ready/$lane/" 2>/dev/null && claimed=$((claimed + 1)); done
echo $ready $claimed
"""


def renames_undone(pool: Pool) -> Told:
    """Tokens go back from ready/ to waiting/ and from claimed/ to ready/ on the server's disk, again and again."""
    outages.busy(pool, "laptop3")
    pool.undone = True
    ready = claimed = 0
    for _ in range(ROUNDS):
        told = pool.on_disk(_UNDO.strip()).split()
        ready, claimed = ready + int(told[0]), claimed + int(told[1])
        time.sleep(PAUSE_S)
    if not ready or not claimed:
        raise Unproven(f"{ready} promotions and {claimed} claims were undone")
    wait_until("all is done that was undone", lambda: outages.nothing_left(pool), 120, every_s=1)
    for event, undone in (("READY", ready), ("CLAIMED", claimed)):
        lines = int(pool.on_disk(f'cat events/* | grep -c \'"event":"{event}"\''))
        if lines > len(under_fault().lines) + undone + SPARE:
            raise Unproven(f"{lines} {event} lines for {undone} moves undone: some tell of moves that did not happen")
    return Told(ready + claimed, f"{ready} promotions and {claimed} claims undone")
