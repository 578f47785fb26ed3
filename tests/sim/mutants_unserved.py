"""The gate `worker`, broken one way at a time."""

from __future__ import annotations

from spoold.master.state.pool_health import Fleet
from spoold.protocol.heartbeat import Heartbeat
from spoold.rules.gates import limit_gates
from spoold.rules.gates.facts import TypeFacts
from spoold.rules.gates.gate import PASS, TypeGate, Verdict
from tests.sim.mutation import Mutations, Swap

unserved = Mutations("unserved")


@unserved.add(
    "what nobody can run takes nothing", "A task that no worker can run goes to ready/ and keeps its units."
)
def anywhere() -> list[Swap]:
    return [(Fleet, "unserved", lambda self, lane: False)]


@unserved.add("what nobody can run any more goes back", "A task stays ready when the last worker for it has gone.")
def stays_ready() -> list[Swap]:
    judges = TypeGate.judges

    def leaves(self: TypeGate, kind: str, facts: TypeFacts, *, ready: bool) -> Verdict:
        return PASS if ready and self.name == limit_gates.WORKER else judges(self, kind, facts, ready=ready)

    return [(TypeGate, "judges", leaves)]


@unserved.add("a worker that comes opens its lanes", "A lane that was found without a worker is not compared again.")
def never_again() -> list[Swap]:
    see = Fleet.see

    def keeps(self: Fleet, workers: list[Heartbeat]) -> bool:
        known = dict(self._unserved)
        changed = see(self, workers)
        self._unserved.update(known)
        return changed

    return [(Fleet, "see", keeps)]
