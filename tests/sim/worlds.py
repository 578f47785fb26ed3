"""Other worlds than the swarm's own: spools that claim by lock, and shares that need it.

Law: a world is what is replaced in the simulator while it runs, and nothing of the product is.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.sim import (
    alerted,
    breaking,
    budgets,
    classes,
    deciders,
    edges,
    fair,
    families,
    instead,
    lenders,
    limited,
    lockers,
    machine,
    poison,
    programs,
    restored,
    reusers,
    scribes,
    shelf_programs,
    shelves,
    twins,
    universe,
    unserved,
    urgent,
    weather,
    workload,
)
from tests.sim.families import Families
from tests.sim.unfit import Credulous, NamesLost, TwoWinners
from tests.sim.universe import Outcome, simulate

Change = tuple[Any, str, Any]

_BY_LOCK: tuple[Change, ...] = ((universe, "CLAIM", "lock"),)
_UNFIT: tuple[Change, ...] = (
    (universe, "Server", TwoWinners),
    (machine, "Mount", Credulous),
    (workload, "Mount", Credulous),
)
_FORGETFUL: tuple[Change, ...] = (
    (universe, "Server", NamesLost),
    (weather, "BLOWS", {**weather.BLOWS, "power": 6.0}),
)
# As a forgetful server, which loses its power mostly when something has just gone through a leader's door.
_FORGETFUL_DOORS: tuple[Change, ...] = (
    *_FORGETFUL,
    (weather, "FLAVOURS", ("nfs", "smb")),
    (weather, "AIMS", (("pending", "admitting"), ("admitting", "waiting"))),
    (weather, "AIMED", {**weather.AIMED, "outage": 0.3}),
)
# As a forgetful server, which loses its power every second, and workers die or stand still just after their commits.
_FORGETFUL_ENDS: tuple[Change, ...] = (
    *_FORGETFUL,
    (weather, "FLAVOURS", ("nfs", "smb")),
    (weather, "BLOWS", {**weather.BLOWS, "power": 1.0}),
    (weather, "AIMS", (("claimed", "completed"),)),
    (weather, "AIMED", {**weather.AIMED, "outage": 0.05, "nap": 0.5, "fall": 0.3}),
    (programs, "BRISK_WORLDS", 0.0),
)
_SLOW: tuple[Change, ...] = (
    (scribes, "SCRIBES", 6),
    (weather, "BLOWS", {kind: mean for kind, mean in weather.BLOWS.items() if kind in ("crash", "power", "full")}),
)
# Programs that use one name again and again, from NFS clients that remember the file that it had.
_REUSED: tuple[Change, ...] = (
    (reusers, "REUSERS", 5),
    (weather, "FLAVOURS", ("nfs",)),
    (weather, "AIMS", (("pending", "admitting"), ("admitting", "waiting"), ("admitting", "ready"))),
)
# Most tasks lock something, and one writer stands among readers without end.
_LOCKS: tuple[Change, ...] = (
    (lockers, "LOCKED", 0.7),
    (lockers, "CROWDS", 1),
    (workload, "locks_of", lockers.locks_of),
)
# The share goes silent often and for long, tasks are long, and whoever takes a claim away often does so late.
_SILENT: tuple[Change, ...] = (
    (weather, "FLAVOURS", ("nfs", "smb")),
    (weather, "BLOWS", {"partition": 4.0, "reboot": 12.0, "freeze": 6.0, "unmount": 30.0}),
    (weather, "AIMS", (("claimed", "returned"),)),
    (weather, "AIMED", {**weather.AIMED, "stall": 0.01, "nap": 0.9, "fall": 0.0}),
    (universe, "BLOW_S", 16.0),
    (universe, "CALM_S", 600.0),
    (programs, "LONGEST_S", 30.0),
    (programs, "BRISK_WORLDS", 0.1),
)
# Two winners, and a leader that takes claims back when a worker commits, late or while its process stands still.
_AT_THE_END: tuple[Change, ...] = (
    (weather, "AIMS", (("claimed", "returned"),)),
    (weather, "AIMED", {**weather.AIMED, "nap": 0.5, "late": 0.3}),
)
# Clean-up after failures, and tasks after a batch.
_EDGES: tuple[Change, ...] = (
    (universe, "Client", edges.EdgeClient),
    (universe, "Laws", edges.EdgeLaws),
    (universe, "check_ends", edges.check_edges),
)
# People who hold tasks, approve them, reject them and answer twice.
_APPROVALS: tuple[Change, ...] = ((deciders, "DECIDERS", 3),)
# Every task draws on one purse, and nodes die between the end of an attempt and the next checkpoint.
_BUDGETS: tuple[Change, ...] = (
    (universe, "SETTINGS", budgets.SETTINGS),
    (universe, "Laws", budgets.BudgetLaws),
    (universe, "Client", budgets.Spender),
    (universe, "check_ends", budgets.check_ends),
    (machine, "MemoryScratch", budgets.Costly),
)
# Tasks that use limits. No date is set meanwhile: until when a quota is used up is a date.
_LIMITS: tuple[Change, ...] = (
    (universe, "SETTINGS", limited.OF_LIMITS),
    (machine, "RARE", limited.RARE),
    (universe, "Client", limited.LimitedClient),
    (universe, "Laws", limited.LimitedLaws),
    (universe, "Server", limited.ListeningServer),
    (universe, "check_ends", limited.check_limited_ends),
    (machine, "Programs", limited.LimitedPrograms),
    (machine, "MemoryScratch", limited.Serving),
    (programs, "exit_code", limited.limited_exit),
    (weather, "BLOWS", {kind: mean for kind, mean in weather.BLOWS.items() if kind != "clock"}),
)
# An account that is often out, and another one as whose type its tasks may run.
_INSTEAD: tuple[Change, ...] = (
    (universe, "SETTINGS", instead.OF_INSTEAD),
    (machine, "KINDS", instead.ALL),
    (machine, "CONFIG", instead.OFFERED),
    (machine, "INSTEAD", instead.LISTS),
    (universe, "Client", instead.InsteadClient),
    (universe, "Laws", instead.InsteadLaws),
    (universe, "Server", limited.ListeningServer),
    (universe, "check_ends", limited.check_limited_ends),
    (machine, "Programs", instead.InsteadPrograms),
    (programs, "exit_code", instead.instead_exit),
    (weather, "BLOWS", {kind: mean for kind, mean in weather.BLOWS.items() if kind != "clock"}),
)
# A type that fails until it is mended. No date is set there: until when a breaker is open is a date.
_BREAKERS: tuple[Change, ...] = (
    (universe, "SETTINGS", breaking.OF_BREAKERS),
    (universe, "Client", breaking.BrokenTypeClient),
    (universe, "Laws", breaking.BreakerLaws),
    (universe, "check_ends", breaking.mended_ends),
    (machine, "Programs", breaking.MendedPrograms),
    (programs, "exit_code", breaking.steady_exit),
    (weather, "BLOWS", {kind: mean for kind, mean in weather.BLOWS.items() if kind != "clock"}),
)
# Tasks of classes, which have slots of their own or borrow some.
_CLASSES: tuple[Change, ...] = (
    (universe, "SETTINGS", classes.OF_CLASSES),
    (universe, "Client", classes.ClassClient),
    (universe, "Laws", classes.ClassLaws),
)
# Nodes die, a limit is closed, and each alert becomes a task. A power cut would undo what was told.
_ALERTS: tuple[Change, ...] = (
    (universe, "SETTINGS", alerted.OF_ALERTS),
    (universe, "Client", alerted.Closer),
    (universe, "Laws", alerted.AlertLaws),
    (universe, "check_ends", alerted.check_alerts),
    (weather, "AIMED", {**weather.AIMED, "outage": 0.0}),
    (weather, "BLOWS", {kind: mean for kind, mean in weather.BLOWS.items() if kind != "power"}),
)
# Parents and children that use one limit, which those that wait lend.
_LENT: tuple[Change, ...] = (
    (universe, "SETTINGS", lenders.OF_LENT),
    (universe, "Client", lenders.LentClient),
    (universe, "Laws", lenders.LentLaws),
    (machine, "Programs", lenders.LentPrograms),
    (families, "CHILD", lenders.CHILD),
)
# Tasks that no worker can run, or only one, and that share things with others.
_UNSERVED: tuple[Change, ...] = (
    (universe, "SETTINGS", unserved.SCARCE),
    (universe, "Client", unserved.UnservedClient),
    (machine, "RARE", unserved.RARE),
)
# Tasks of all priorities that share units, a lock or both, among many that keep all slots busy, or among streams.
_URGENT: tuple[Change, ...] = (
    (universe, "SETTINGS", urgent.OF_URGENCY),
    (universe, "Client", urgent.UrgentClient),
    (universe, "Laws", urgent.UrgentLaws),
    (machine, "Programs", urgent.UrgentPrograms),
)
# Batches that share one unit, under leaders that come and go.
_FAIR: tuple[Change, ...] = (
    (universe, "SETTINGS", fair.OF_SHARES),
    (universe, "Client", fair.FairClient),
    (universe, "Laws", fair.FairLaws),
    (machine, "Programs", fair.FairPrograms),
    (programs, "BRISK_WORLDS", 0.0),
    (weather, "BLOWS", {**weather.BLOWS, "crash": 3.0}),
)
# Tasks that put entries and save steps, on machines that crash, under leaders that come and go.
_SHELVES: tuple[Change, ...] = (
    (universe, "SETTINGS", shelves.OF_SHELVES),
    (universe, "Client", shelves.ShelfClient),
    (universe, "Laws", shelves.ShelfLaws),
    (universe, "check_ends", shelves.check_shelves),
    (machine, "Programs", shelf_programs.ShelfPrograms),
    (programs, "exit_code", shelf_programs.shelf_exit),
    (universe, "STORM_S", 40.0),
    (weather, "AIMS", (("tmp", "context"), ("tmp", "steps"), ("claimed", "returned"), ("master", "master"))),
    (weather, "BLOWS", {**weather.BLOWS, "crash": 6.0}),
)
# Some inputs make spoold itself fail, whenever they are read. Looks of tests at what ran go past all of it.
_POISON: tuple[Change, ...] = (
    (universe, "Client", poison.Poisoner),
    (universe, "check_ends", poison.check_poison),
    (machine, "Mount", poison.PoisonedMount),
    (machine, "MemoryScratch", poison.LEFTOVERS),
)
# All machines were cloned from one disk.
_CLONES: tuple[Change, ...] = ((machine, "FakeHost", twins.CloneHost),)
# All machines were resumed from one image of memory, and then their nodes were started.
_IMAGED: tuple[Change, ...] = ((machine, "FakeHost", twins.ImagedHost), (machine, "Mount", twins.Shared))
# Machines run twice, from an image of their memory.
_RESUMED: tuple[Change, ...] = (
    (machine, "Mount", twins.Shared),
    (universe, "Machine", twins.Resumable),
    (universe, "Universe", twins.ResumedUniverse),
    (universe, "Laws", twins.ResumedLaws),
    (universe, "check_executions", lambda *_: None),  # its laws know which attempts may have run twice
)
# A person puts an older tree back. What is still read by a name that is no more, is elsewhere in all other worlds.
_RESTORED: tuple[Change, ...] = (
    (universe, "Universe", restored.RestoredUniverse),
    (universe, "Laws", restored.RestoredLaws),
    (weather, "CALLS", {share: {**calls, "positive": 0.0} for share, calls in weather.CALLS.items()}),
)
WORLDS: dict[str, tuple[Change, ...]] = {
    "alerts": _ALERTS,
    "approvals": _APPROVALS,
    "breakers": _BREAKERS,
    "children": ((machine, "Programs", Families),),
    "classes": _CLASSES,
    "clones": _CLONES,
    "fit": (),
    "imaged": _IMAGED,
    "instead": _INSTEAD,
    "budgets": _BUDGETS,
    "edges": _EDGES,
    "fair": _FAIR,
    "forgetful": _FORGETFUL,
    "forgetful-doors": _FORGETFUL_DOORS,
    "forgetful-ends": _FORGETFUL_ENDS,
    "lent": _LENT,
    "limits": _LIMITS,
    "lock": _BY_LOCK,
    "locks": _LOCKS,
    "locks-silent": (*_LOCKS, *_SILENT),
    "poison": _POISON,
    "resumed": _RESUMED,
    "restored": _RESTORED,
    "reused": _REUSED,
    "slow": _SLOW,
    "slow-forgetful": (*_SLOW, (universe, "Server", NamesLost)),
    "shelves": _SHELVES,
    "silent": _SILENT,
    "unserved": _UNSERVED,
    "urgent": _URGENT,
    "two-winners": _UNFIT,
    "two-winners-lock": (*_UNFIT, *_BY_LOCK),
    "two-winners-lock-ends": (*_UNFIT, *_BY_LOCK, *_AT_THE_END),
}


@contextmanager
def world(name: str) -> Iterator[None]:
    """Inside, every universe that is made is of that kind."""
    with ExitStack() as stack:
        for owner, what, other in WORLDS[name]:
            stack.callback(setattr, owner, what, getattr(owner, what))
            setattr(owner, what, other)
        yield


def simulate_in(name: str, seed: int, suppressed: Container[str] = frozenset()) -> Outcome:
    """One seed of that world; the faults named in `suppressed` are left out."""
    with world(name):
        return simulate(seed, suppressed)
