"""The world `alerts`: nodes die, a limit is closed, and each alert becomes a task; and the laws about them.

Laws: a node that died is told of by one task, whatever leaders saw it die; a limit that was closed once is told of by
one task, in the end at the latest, but for leaders that were two at once. The power stays on: a cut undoes snapshots,
and what stood in them is then told again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from spoold.protocol.names import EndedName, TaskName, parse_lease, parse_snapshot
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.workload import SETTINGS, Client
from tests.sim.workload import check_ends as check_plain_ends

LIMIT = "api"
OF_ALERTS = (
    SETTINGS
    + f"""
[limits.{LIMIT}]
max = 1
[alerts]
stuck_s = 0
task = {{type = "wide"}}
""".encode()
)
# Until a leader has told of what stands (s).
TELLS_S = 30.0
CLOSES_S = 8.0
CLOSED = f"alert-limit_closed-{LIMIT}"


def about(task_id: str) -> str:
    """What such a task tells of: all of its id but the hash."""
    return task_id.rpartition("-")[0]


class Closer(Client):
    """Submits what every client does, while another person closes a limit that nobody uses."""

    def live(self) -> None:
        """Submit everything."""
        other = Client(self._scheduler, self._server, self._weather, self._laws, "ada")

        def close() -> None:
            other._insist(lambda spool: spool.close_limit(LIMIT))

        self._scheduler.spawn(other.name, close, CLOSES_S * self._weather.draw("closes"))
        super().live()


@dataclass(slots=True)
class AlertLaws(Laws):
    """The laws about alerts, besides all others. told: how many tasks told of each thing; doubled: whether a leader
    published a snapshot after the next one had begun.
    """

    told: Counter[str] = field(default_factory=Counter)
    epoch: int = 0
    doubled: bool = False

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        room, _, file = dst.partition("/")
        if room == "master" and (lease := parse_lease(file)) is not None:
            self.epoch = max(self.epoch, lease.epoch)
        elif room == "status" and (snapshot := parse_snapshot(file)) is not None:
            self.doubled = self.doubled or snapshot.epoch < self.epoch
        Laws.renamed(self, src, dst, replaced)

    def _arrive(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        Laws._arrive(self, name, src, dst)
        if not src.startswith(("pending/", "admitting/")) or not name.id.startswith("alert-"):
            return
        what = about(name.id)
        self.told[what] += 1
        if self.told[what] > 1 and not (what == CLOSED and self.doubled):
            raise Broken(f"alerts: {dst} is told of {self.told[what]} times")


def check_alerts(laws: Laws, cancelled: set[str]) -> None:
    """As in the swarm; and the limit that was closed was told of."""
    assert isinstance(laws, AlertLaws)
    check_plain_ends(laws, cancelled)
    laws.scheduler.run(laws.scheduler.now + TELLS_S, lambda: laws.told[CLOSED] > 0)
    if not laws.told[CLOSED]:
        raise Broken(f"alerts: {LIMIT} is closed, and no task tells of it: {sorted(laws.server.fs.files())}")
