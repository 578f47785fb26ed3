"""All schedules of a few processes up to a bound of preemptions, without playing most of them.

A process may lose its turn before any of its file-system calls; that is a preemption. When one has ended, who goes on
is a free choice. Processes cannot be copied, so every schedule is played from the beginning.

What is left out, and why nothing is lost by it:

* **The same state again.** What a process will do depends on the answers it got so far and on nothing else, clocks
  stand still meanwhile, and listings are sorted. So two beginnings that lead to the same tree, the same answers to
  every process, the same process at work and no more preemptions left have the same futures. The tree is compared by
  name and by who wrote what when; both are compared by 64-bit hashes.
* **What commutes.** To preempt P before its call c, in favour of Q, is of use only if somebody does, from then until
  P goes on, what c sees or what sees c. Else c can be made first, with the same answers and the same tree and no more
  preemptions: that schedule is played instead. What is done meanwhile is known from the schedules in which Q came
  one call later, after c, which is why schedules are explored from their ends; where these were left out too, it is
  known from those that were played in their place. Calls are told apart by what they read and write: the entries of
  a directory, or one name. Journals, logs and snapshots are for people and decide nothing: they meet nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from math import comb

from tests.sim.conduct import Broken
from tests.sim.interleaving import Call, Interleaving

# (index of a call, who makes it): where another process goes on.
Switches = tuple[tuple[int, str], ...]
_MEETS = {"entry read": ("entry write",), "entry write": ("entry read", "entry write")}
_MEETS |= {"list read": ("list write",), "list write": ("list read",)}


@dataclass(slots=True)
class Found:
    """What an exploration came to. in_all: how many schedules there are of processes as long as the first one's."""

    played: int = 0
    states: int = 0
    endings: int = 0
    same: int = 0
    commute: int = 0
    calls: int = 0
    in_all: int = 0
    violations: list[tuple[Switches, str]] = field(default_factory=list)


@dataclass(slots=True)
class Done:
    """What is done from a state on, in all schedules: sets of accesses, as bits.

    until: by whom else before this process makes its next call; instead: by whom else before the one at work goes on,
    if it loses its turn here to this process; total: by anybody.
    """

    until: dict[str, int] = field(default_factory=dict)
    instead: dict[str, int] = field(default_factory=dict)
    total: int = 0


class Footprints:
    """Accesses as bits of a number."""

    def __init__(self) -> None:
        self._bits: dict[tuple[str, str, str], int] = {}
        self._at: dict[tuple[str, str], int] = {}

    def of(self, call: Call) -> int:
        """What the call reads and writes."""
        return sum({self._bit(call.who, kind, path) for kind, path in call.accesses})

    def meeting(self, call: Call) -> int:
        """All that does not commute with the call."""
        found = 0
        for kind, path in call.accesses:
            for other in _MEETS[kind]:
                found |= self._at.get((other, path), 0)
        return found

    def _bit(self, who: str, kind: str, path: str) -> int:
        known = self._bits.get((who, kind, path))
        if known is None:
            known = self._bits[(who, kind, path)] = 1 << len(self._bits)
            self._at[(kind, path)] = self._at.get((kind, path), 0) | known
        return known


class Explorer:
    """Plays all schedules of one opening. make: a fresh interleaving; finish: lets one come to its end."""

    def __init__(
        self,
        make: Callable[[], Interleaving],
        finish: Callable[[Interleaving], None],
        preemptions: int,
        tell: Callable[[Found], None] = lambda found: None,
    ) -> None:
        self.found = Found()
        self._make = make
        self._finish = finish
        self._preemptions = preemptions
        self._tell = tell
        self._footprints = Footprints()
        self._seen: dict[int, list[tuple[int, Done]]] = {}
        self._endings: set[int] = set()
        self._names: tuple[str, ...] = ()

    def run(self) -> Found:
        """All of them."""
        first = self._make()
        self._names = tuple(first.actors)
        first.close()
        for name in self._names:
            self._explore(((0, name),), self._preemptions)
        return self.found

    def _explore(self, switches: Switches, budget: int) -> tuple[int, Done]:
        """All schedules that begin so; returns what the first call after the last switch accesses, and the rest."""
        begin = switches[-1][0]
        play = self._make()
        states: list[tuple[int, str | None]] = []
        done: Done | None = None
        try:
            self._replay(play, switches)
            while done is None and play.waiting():
                running = play.running
                state = hash((play.state(), running))
                done = self._known(state, budget)
                if done is None:
                    states.append((state, running))
                    play.call(running or play.waiting()[0])
            if done is None:
                self._end(play)
            else:
                self.found.same += 1
        except (Broken, Exception) as error:  # noqa: BLE001  whatever the product does wrong is a finding
            self.found.violations.append((switches, f"{type(error).__name__}: {error}"))
            return 0, Done()
        finally:
            self._count(play)
        done = done or Done()
        for index in range(len(play.trace) - 1, begin, -1):
            state, running = states[index - begin - 1]
            done = self._branch(switches, index, running, play.trace[index], done, budget)
            self._seen.setdefault(state, []).append((budget, done))
        return self._footprints.of(play.trace[begin]), done

    def _branch(
        self, switches: Switches, index: int, running: str | None, call: Call, later: Done, budget: int
    ) -> Done:
        """The other choices before one call; returns what is done from there on, whatever is chosen."""
        done = Done()
        self._add(done, call.who, self._footprints.of(call), later, running)
        for other in call.waiting:
            if other == call.who:
                continue
            if running is not None and not (budget and self._footprints.meeting(call) & later.instead.get(other, 0)):
                self.found.commute += bool(budget)
                done.instead[other] = later.instead.get(other, 0)
                continue
            first, rest = self._explore((*switches, (index, other)), budget - (running is not None))
            self._add(done, other, first, rest, running)
        return done

    def _add(self, done: Done, who: str, first: int, rest: Done, running: str | None) -> None:
        """One choice: who makes a call, what it accesses, and what is done afterwards."""
        done.total |= first | rest.total
        for name in self._names:
            if name != who:
                done.until[name] = done.until.get(name, 0) | first | rest.until.get(name, 0)
        if running is None:
            done.instead[who] = first | rest.total
        elif who != running:
            done.instead[who] = first | rest.until.get(running, 0)

    def _known(self, state: int, budget: int) -> Done | None:
        """What is done from a state on that was explored before, with at least as many preemptions left."""
        return next((done for left, done in self._seen.get(state, ()) if left >= budget), None)

    def _replay(self, play: Interleaving, switches: Switches) -> None:
        wanted = dict(switches)
        while len(play.trace) <= switches[-1][0]:
            name = wanted.get(len(play.trace)) or play.running or play.waiting()[0]
            play.call(name)

    def _end(self, play: Interleaving) -> None:
        """All processes have made their steps: it must come to a good end from here, too."""
        if not self.found.in_all:
            self.found.in_all = number_of_schedules(play.lengths(), self._preemptions)
        state = hash(play.state())
        if state not in self._endings:
            self._endings.add(state)
            self._finish(play)

    def _count(self, play: Interleaving) -> None:
        self.found.played += 1
        self.found.calls += len(play.trace)
        self.found.states = len(self._seen)
        self.found.endings = len(self._endings)
        play.close()
        self._tell(self.found)


def replay(
    make: Callable[[], Interleaving], finish: Callable[[Interleaving], None], switches: Switches
) -> list[Call]:
    """Play one schedule to its end; returns its calls. Errors: Broken."""
    play = make()
    try:
        wanted = dict(switches)
        while play.waiting():
            play.call(wanted.get(len(play.trace)) or play.running or play.waiting()[0])
        finish(play)
        return play.trace
    finally:
        play.close()


def number_of_schedules(lengths: list[int], preemptions: int) -> int:
    """How many schedules processes of so many calls have, with at most that many preemptions.

    A schedule is a row of blocks, of which no two neighbours belong to one process, and cuts of the processes into
    their blocks.
    """
    total = 0
    for cuts in _distributions(len(lengths), preemptions):
        blocks = [who for who, more in enumerate(cuts) for _ in range(more + 1)]
        rows = {row for row in permutations(blocks) if all(a != b for a, b in pairwise(row))}
        ways = 1
        for length, more in zip(lengths, cuts, strict=True):
            ways *= comb(max(length - 1, 0), more)
        total += len(rows) * ways
    return total


def _distributions(processes: int, preemptions: int) -> list[tuple[int, ...]]:
    if processes == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(preemptions + 1)
        for rest in _distributions(processes - 1, preemptions - first)
    ]
