"""Who may do what: the laws about actors, told at the server from who made each change.

The network carries late changes out in nobody's name; all others have an actor, and a leader's moves are a leader's:
each belongs to a step in which its maker held the token. A node is taken for dead only after its silence.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Protocol

from spoold.protocol.admission_names import parse_batch, parse_door, parse_original
from spoold.protocol.lifecycle import Mover, allowed
from spoold.protocol.names import key, parse_beat, parse_lease, parse_returned, parse_task
from spoold.protocol.request import Verb, parse_request
from spoold.store.locked_renames import SHARED
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server

# Three intervals of a second without a beat, less the one in which the beat may have come after the look began, and
# clocks that run one per cent fast (s).
SILENCE_S = 1.9
# Two intervals of a second are not noticed, nor what clocks that run one per cent slow make of more (s).
SHARED_SILENCE_S = 3.0
# Three intervals of a second: a node that beat last so long (s) before is dead.
DEAD_S = 3.0
# So long (s) at most until each has looked again.
AMAZED_S = 6.0
ALIVE = ("waiting", "ready", "claimed", "returned")


class Broken(BaseException):
    """A law is broken. No `except Exception` of the product may hide that."""


class Node(Protocol):
    """What is known of a machine: its present node, whether that runs, when (s) its present step began, when it had
    first seen the share, and how long it has slept.
    """

    name: str
    step_began: float
    seen_at: float

    @property
    def up(self) -> bool:
        """Whether its process is there."""
        ...

    @property
    def slept(self) -> float:
        """How long (s) its monotonic clock has stood still."""
        ...

    def moves(self, key: str) -> bool:
        """Whether this job runs there, and is not frozen."""
        ...


@dataclass(slots=True)
class Reboot:
    """The server was away for everybody, and so long; slept: of each machine that had seen it before, until then."""

    began: float
    seconds: float
    slept: dict[str, float]


@dataclass(slots=True)
class Conduct:
    """Polling at who made each change. by_lock: the spool claims by lock; strangers: keys in ready/ or claimed/ of
    which the leader could not know; forgot_at: when (s) a server last forgot what it had answered for.
    """

    scheduler: Scheduler
    server: Server
    by_lock: bool
    machines: dict[str, Node] = field(default_factory=dict)
    holder: str = ""
    strangers: set[str] = field(default_factory=set)
    _reboots: list[Reboot] = field(default_factory=list)
    _held_until: dict[str, float] = field(default_factory=dict)
    _beats: dict[str, list[float]] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _leaders: dict[int, str] = field(default_factory=dict)
    forgot_at: float = -math.inf

    @property
    def amazed(self) -> bool:
        """Whether nodes may still act on what a server has forgotten a moment ago: one leads that no longer does."""
        return self.scheduler.now < self.forgot_at + AMAZED_S

    def renamed(self, src: str, dst: str) -> None:
        """After a rename. Errors: Broken."""
        source, target, file = src.partition("/")[0], dst.partition("/")[0], dst.rpartition("/")[2]
        if target == "master":
            self._led(file)
        elif target == "heartbeats" and (beat := parse_beat(file)) is not None:
            self._beats.setdefault(beat.node, []).append(self.scheduler.now)
        elif ((source == "tmp" and target == "pending") or src.endswith(".line")) and self.server.is_volatile(dst):
            raise Broken(f"durable: {dst} is published and would not survive a power cut")
        elif source == "pending" and target in ("admitting", "waiting", "ready") and parse_original(file) is None:
            # Of an original a copy is published, which was looked at above.
            batch = parse_batch(file)
            size = self.server.stat(dst).size
            admitted = size if batch is None or batch.size is None else batch.size
            if self.server.is_strangers(dst):
                admitted = min(admitted, size)  # its program empties it just now: no power cut took what is gone
            if self.server.durable_size(dst) < admitted:
                raise Broken(f"durable: {dst} is admitted and would not survive a power cut")
        self._know(source, target, file)
        node = self._actor()
        if node is None or not allowed(source, target):
            return
        owner = src.split("/")[1] if source == "claimed" else dst.split("/")[1] if target == "claimed" else None
        if target == "claimed" and node != owner:
            raise Broken(f"own directory: {node} claims into {dst}")
        returned = parse_returned(file) if target == "returned" else None
        if returned is not None and returned[1] != node:
            raise Broken(f"own name: {node} hands back as {dst}")
        movers = {line.mover for line in allowed(source, target)}
        if Mover.LEADER in movers and node != owner and (owner is not None or Mover.WORKER not in movers):
            self._must_lead(node, f"{src} → {dst}", at_once=self.by_lock and source not in SHARED)
            if owner is not None:
                self._must_be_silent(node, owner, dst)

    def written(self, path: str, replaced: bool, committed: bool) -> None:
        """After a file was written in place. committed: a task file counts on it already. Errors: Broken."""
        room, _, name = path.partition("/")
        if room in (*ALIVE, "completed", "failed", "master"):
            raise Broken(f"one token: {path} was written, and not moved")
        if committed or (replaced and room not in ("tmp", "results")):
            raise Broken(f"written once: {room}/{name} was there and was written again")

    def removed(self, path: str, committed: bool, where: str) -> None:
        """After an unlink. where: the place of the task that a request speaks of. Errors: Broken."""
        if committed:
            raise Broken(f"result before commit: {path} was removed, and its task is committed")
        if path.startswith("master/"):
            raise Broken(f"leadership: the token {path} was removed")
        request = parse_request(path.removeprefix("control/")) if path.startswith("control/") else None
        if request is not None and request.verb in (Verb.LENT, Verb.REGAIN) and self._actor() != self.holder:
            self.strangers.add(key(request.target))  # its units were given back behind the leader's back
        if self.amazed:
            return
        if request is not None and request.verb is Verb.CANCEL and where.partition("/")[0] in ALIVE:
            raise Broken(f"cancel: {path} was removed, and the task stands at {where}")

    def made(self, path: str) -> None:
        """After a mkdir. Errors: Broken."""
        door = parse_door(path.removeprefix("admitting/")) if path.startswith("admitting/") else None
        if door is not None and self._leaders.setdefault(door.epoch, door.holder) != door.holder:
            raise Broken(f"leadership: {path} is made, and {self._leaders[door.epoch]} has led in that epoch")
        if path.startswith(("claimed/", "tmp/", "admitting/")):
            if path in self._made:
                raise Broken(f"shut door: {path} was taken away, and made again")
            self._made.add(path)

    def rebooted(self, seconds: float) -> None:
        """When the server goes away for everybody."""
        now = self.scheduler.now
        nodes = (m for m in self.machines.values() if m.up and m.seen_at < now)
        self._reboots.append(Reboot(now, seconds, {m.name: m.slept for m in nodes}))

    def calmed(self) -> None:
        """When the server is back for everybody, sooner than was said."""
        for reboot in self._reboots:
            reboot.seconds = min(reboot.seconds, self.scheduler.now - reboot.began)

    def rebuilt(self) -> None:
        """After a power cut."""
        self._made.clear()
        if self.server.rolls_back:
            self._leaders.clear()  # they died with it
        elif self.server.forgets:
            self.forgot_at = self.scheduler.now
        tokens = [token for name in self.server.fs.list("master") if (token := parse_lease(name)) is not None]
        self.holder = max(tokens).holder

    def forget_leaders(self) -> None:
        """After the tree was put back: epochs of the forgotten time are led in once more."""
        self._leaders.clear()

    def _actor(self) -> str | None:
        """The node that makes this change; None for the network, and for whoever is no machine."""
        process = self.scheduler.current
        machine = self.machines.get(process.name) if process is not None else None
        return machine.name if machine is not None else None

    def _led(self, file: str) -> None:
        token = parse_lease(file)
        tokens = [name for name in self.server.fs.list("master") if parse_lease(name)]
        if token is None or len(tokens) != 1:
            raise Broken(f"leadership: {file} is there among {sorted(tokens)}")
        self._held_until[self.holder] = self.scheduler.now
        self.holder = token.holder

    def _must_lead(self, node: str, what: str, at_once: bool) -> None:
        """at_once: it does not help to have led when the step began."""
        began = self.machines[self.scheduler.current.name].step_began if self.scheduler.current else 0.0
        led = not at_once and self._held_until.get(node, -1.0) >= began
        if not self.amazed and node != self.holder and not led:
            raise Broken(f"leadership: {node} did not lead in this step, {self.holder or 'nobody'} does: {what}")

    def _must_be_silent(self, node: str, owner: str, dst: str) -> None:
        """Whoever is taken for dead has not been heard of for long, or its process is gone."""
        if self.amazed or not any(machine.up and machine.name == owner for machine in self.machines.values()):
            return
        observer = next(machine for machine in self.machines.values() if machine.name == node)
        beats = self._beats.get(owner, [])
        self._must_be_patient(observer, owner, dst)
        heard = bisect_right(beats, observer.step_began)
        if heard and self.scheduler.now - beats[heard - 1] < self.silence_s(owner):
            raise Broken(
                f"silence: {dst} is taken from {owner}, who beat {self.scheduler.now - beats[heard - 1]:.2f} s ago"
            )

    def silence_s(self, owner: str) -> float:
        """For how long (s) a node has not beaten, at least, when it is taken for dead."""
        return SILENCE_S

    def _must_be_patient(self, observer: Node, owner: str, dst: str) -> None:
        """After a silence that both saw, the owner of what is taken had as long again to come back."""
        for reboot in self._reboots:
            if reboot.seconds < SHARED_SILENCE_S or not {observer.name, owner} <= reboot.slept.keys():
                continue
            back_at, beats = reboot.began + reboot.seconds, self._beats.get(owner, [])
            before = bisect_right(beats, reboot.began)
            beaten = before < len(beats)
            slept = observer.slept > reboot.slept[observer.name]
            # Else it was dead before the server was away, and nobody need wait for it.
            lived = before > 0 and reboot.began - beats[before - 1] < DEAD_S
            judged = lived and observer.step_began > reboot.began
            if judged and not beaten and not slept and self.scheduler.now < back_at + reboot.seconds:
                raise Broken(
                    f"patience: {dst} is taken from {owner} {self.scheduler.now - back_at:.2f} s after a silence of "
                    f"{reboot.seconds:.2f} s"
                )

    def _know(self, source: str, target: str, file: str) -> None:
        """A task that came into ready/ by another hand than the leader's: he learns of it at his next listing."""
        task = parse_task(file)
        if target == "ready" and task is not None and self._actor() != self.holder:
            self.strangers.add(key(task.id))
        elif source in ("ready", "claimed") and target != "claimed":
            name = parse_returned(file)
            gone = task or (name[0] if name else None)
            self.strangers.discard(key(gone.id if gone else file.rsplit(".", 3)[0]))
