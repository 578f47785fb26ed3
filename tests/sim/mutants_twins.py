"""The laws of identity broken: who is dead by what its machine is called, and who does not notice its twin."""

from __future__ import annotations

from collections.abc import Collection

from spoold.master.state.leadership import Leadership
from spoold.protocol.names import LeaseName
from spoold.rules.cluster.liveness import Watch
from spoold.store import own_heartbeat
from spoold.store.own_heartbeat import Presence
from spoold.store.predecessors import Standstill
from spoold.system.host import Host, HostIdentity, ProcessIdentity, same_host
from tests.sim.mutation import Mutations, Swap

clones = Mutations(world="clones")
imaged = Mutations(world="imaged")
resumed = Mutations(world="resumed")


@clones.add("a beat that moves is alive", "Another boot of a machine proves that all before it is gone.")
def rebooted_without_silence() -> list[Swap]:
    def gone(then: HostIdentity, process: ProcessIdentity, host: Host) -> bool:
        here = host.identity()
        rebooted = (then.machine_id, then.hostname) == (
            here.machine_id,
            here.hostname,
        ) and then.boot_id != here.boot_id
        return rebooted or (same_host(then, here) and not host.alive(process))

    return [(own_heartbeat, "surely_gone", gone)]


@imaged.add("a beat that moves is alive", "A node whose process is not found on this host is gone, though it beats.")
def not_found_without_silence() -> list[Swap]:
    return [(Standstill, "gone", lambda self, missing, now: list(missing))]


@resumed.add("one node, one process", "A node never looks whether another process beats under its name.")
def twin_not_looked_for() -> list[Swap]:
    def never(self: Presence) -> None:
        self._doubts = 0

    return [(Presence, "doubt", never)]


@resumed.add("a beat that moves is alive", "A report of a node's own host is proof enough that it is gone.")
def report_believed_at_once() -> list[Swap]:
    def gone(self: Watch, reported: Collection[str]) -> list[str]:
        return [*reported]

    return [(Watch, "gone", gone)]


@resumed.add("one leader", "A renewal that another process may have made is this master's own.")
def led_by_a_twins_renewal() -> list[Swap]:
    def own(self: Leadership, token: LeaseName, to: LeaseName, now: float) -> bool:
        if not self._order(token, to):
            self.token = None
            return False
        self.token, self._renewed_at = to, now
        return True

    return [(Leadership, "_swap", own)]
