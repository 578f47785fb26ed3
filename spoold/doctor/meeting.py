"""How machines that run the doctor at the same time find each other through the share, and keep in step.

Law: everything is found by listing. A waiting run has a file, and changes its name at every look, so no run waits for
a crashed one. The run with the lowest name makes the group: a directory with the list of its members. The group
begins when all members have written a file into it. A step is over when every member has published its word for it.

Touches: the clock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from spoold.doctor.trial_share import GROUP, HERE, Share, remove
from spoold.protocol import codec, layout
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, Unavailable

LOOK_EVERY_S = 0.2
STEP_EVERY_S = 0.02
JOIN_WITHIN_S = 15.0
STEP_WITHIN_S = 40.0
SIGNAL_WITHIN_S = 30.0
NUDGE_EVERY_S = 1.0
_MEMBERS, _START, _LEFT = "members.json", "start", "left."


class NobodyCame(Unavailable):
    """Not enough machines came in time, or one of them has left."""


def gather(share: Share, node: str, number: int, wait_s: float) -> Group:
    """Wait until `number` machines are here, with this one. Errors: NobodyCame, OSError."""
    return _Gathering(share, node, number, wait_s).run()


@dataclass(slots=True)
class Group:
    """Machines in step. members are their nodes, sorted; the first one prepares the shared directories."""

    share: Share
    node: str
    members: tuple[str, ...]
    place: str
    before: str | None = None

    @property
    def first(self) -> bool:
        """Whether this machine prepares."""
        return self.node == self.members[0]

    @property
    def others(self) -> list[str]:
        """The other members."""
        return [member for member in self.members if member != self.node]

    def at(self, *parts: str) -> str:
        """A path in the group's directory."""
        return layout.join(self.place, *parts)

    def prepare(self, *folders: str) -> None:
        """Make directories, if this machine prepares. The next `step` shows them to the others. Errors: OSError."""
        if self.first:
            for folder in folders:
                self.share.mkdir(self.at(folder))

    def step(
        self, name: str, word: Any = None, *, every_s: float = STEP_EVERY_S, within_s: float = STEP_WITHIN_S
    ) -> dict[str, Any]:
        """Publish a word, wait for all members' words, and return them by member. Errors: NobodyCame, OSError.

        Without a word only the names are listed, since opening a file that another machine has just closed takes
        seconds on SMB. every_s: pause between looks; the shorter, the more closely all go on together.
        """
        said: dict[str, Any] = {}
        mine = self.at(f"{name}.{self.node}.json")
        if word is None:
            self.share.write(mine, b"", durable=False)
        else:
            self.make("", f"{name}.{self.node}.json", orjson.dumps(word))

        def complete() -> bool:
            present = set(self.share.list(self.place))
            for member in self.members:
                file = f"{name}.{member}.json"
                if member not in said and file in present:
                    # The file may be half there where a rename copies; on SMB it may be refused for a moment.
                    with contextlib.suppress(OSError, BadFile):
                        said[member] = None if word is None else codec.load(self.share.read(self.at(file)), file)
                elif member not in said and f"{_LEFT}{member}" in present:
                    raise NobodyCame(f"{member} left before {name} was over; see its own output")
            return len(said) == len(self.members)

        if not until(complete, within_s, every_s, partial(self.nudge, self.place)):
            missing = ", ".join(member for member in self.members if member not in said)
            raise NobodyCame(f"no word from {missing} in {within_s:.0f} s, while all waited for {name}")
        # A member in this step has read all words of the one before.
        if self.before is not None:
            with contextlib.suppress(OSError):
                self.share.unlink(self.before)
        self.before = mine
        return {member: said[member] for member in self.members}

    def make(self, folder: str, name: str, data: bytes = b"") -> None:
        """Publish a file as spoold does: written under another name, closed, renamed into place. Errors: OSError."""
        staged = self.at(f".staged.{self.node}")
        self.share.write(staged, data, durable=False)
        self.share.rename(staged, self.at(folder, name) if folder else self.at(name))

    def wait_for(self, folder: str, names: Iterable[str], *, meanwhile: str | None = None) -> None:
        """Wait until a folder lists all these names. meanwhile: another folder to list at every look.

        Errors: NobodyCame, OSError.
        """
        path, wanted = self.at(folder), set(names)

        def there() -> bool:
            if meanwhile is not None:
                self.share.list(self.at(meanwhile))
            return wanted <= set(self.share.list(path))

        every_s = 0.0 if meanwhile is not None else STEP_EVERY_S
        if not until(there, SIGNAL_WITHIN_S, every_s, partial(self.nudge, path)):
            raise NobodyCame(f"{', '.join(sorted(wanted))} did not come into {folder}: its machine has left")

    def hears(self, *names: str) -> bool:
        """Return whether these names come into the group's directory within JOIN_WITHIN_S. Errors: OSError."""

        def there() -> bool:
            try:
                return set(names) <= set(self.share.list(self.place))
            except FileNotFoundError:
                return False

        return until(there, JOIN_WITHIN_S, nudge=partial(self.nudge, self.place))

    def nudge(self, path: str) -> None:
        """Change a directory, so that a client with an outdated listing asks the server again.

        NFS 3 compares times: of two changes within a tick of the server's clock it may miss the second for ever.
        """
        with contextlib.suppress(OSError):
            nudge = layout.join(path, f".nudge.{self.node}")
            self.share.write(nudge, b"", durable=False)
            self.share.unlink(nudge)

    def leave(self) -> None:
        """Show the others that this machine leaves; the first member removes the group. Never raises OSError."""
        with contextlib.suppress(OSError):
            self.share.write(self.at(f"{_LEFT}{self.node}"), b"", durable=False)
        if self.first:
            # All have read the last word, or there is nothing to wait for.
            until(self._all_left, JOIN_WITHIN_S)
            remove(self.share, self.place)

    def _all_left(self) -> bool:
        try:
            present = self.share.list(self.place)
        except OSError:
            return True
        return all(f"{_LEFT}{member}" in present for member in self.members)


def until(
    true: Callable[[], bool],
    within_s: float,
    every_s: float = STEP_EVERY_S,
    nudge: Callable[[], None] = lambda: None,
) -> bool:
    """Ask repeatedly; return whether it became true in time. nudge is called every second of waiting."""
    began = nudged = time.monotonic()
    while not true():
        now = time.monotonic()
        if now - began >= within_s:
            return False
        if now - nudged >= NUDGE_EVERY_S:
            nudge()
            nudged = now
        time.sleep(every_s)
    return True


@dataclass(slots=True)
class _Gathering:
    share: Share
    node: str
    number: int
    wait_s: float
    looks: int = 0
    groups: int = 0
    refused: set[str] = field(default_factory=set)
    seen: dict[str, int] = field(default_factory=dict)
    live: dict[str, float] = field(default_factory=dict)

    def run(self) -> Group:
        end = time.monotonic() + self.wait_s
        self.share.write(self._here(0), b"{}", durable=False)
        try:
            while True:
                names = self._look()
                group = self._invited(names) or self._invite()
                if group is not None:
                    return group
                if time.monotonic() >= end:
                    came = 1 + len(self.live)
                    raise NobodyCame(
                        f"only {came} of {amount(self.number, 'machine')} came in {self.wait_s:.0f} s. "
                        f"Start `spool doctor DIR --with "
                        f"{self.number}` on all of them within that time, or give more with --wait"
                    )
                time.sleep(LOOK_EVERY_S)
        finally:
            remove(self.share, self._here(self.looks))

    def _here(self, look: int) -> str:
        return layout.join(layout.DOCTOR, f"{HERE}{self.node}.{look}")

    def _look(self) -> list[str]:
        """Rename the file of this run, and note the runs that renamed theirs."""
        self.share.rename(self._here(self.looks), self._here(self.looks + 1))
        self.looks += 1
        names = self.share.list(layout.DOCTOR)
        now = time.monotonic()
        for name in names:
            other, _, look = name.removeprefix(HERE).rpartition(".")
            shown = name.startswith(HERE) and other != self.node and look.isdecimal()
            if shown and self.seen.setdefault(other, int(look)) != int(look):
                self.seen[other] = int(look)
                self.live[other] = now
        self.live = {other: at for other, at in self.live.items() if now - at < JOIN_WITHIN_S}
        return names

    def _invited(self, names: list[str]) -> Group | None:
        """Return the group of another run with this node as a member, once it begins."""
        for name in names:
            if not name.startswith(GROUP) or name in self.refused or name.startswith(f"{GROUP}{self.node}."):
                continue
            place = layout.join(layout.DOCTOR, name)
            with contextlib.suppress(FileNotFoundError, BadFile):
                if _MEMBERS not in self.share.list(place):
                    continue
                members = codec.load(self.share.read(layout.join(place, _MEMBERS)), _MEMBERS)
                self.refused.add(name)
                if self.node in members:
                    return self._join(place, members)
        return None

    def _invite(self) -> Group | None:
        """Make a group, if enough runs are here and this one has the lowest name."""
        here = sorted([self.node, *self.live])
        if len(here) < self.number or here[0] != self.node:
            return None
        place = layout.join(layout.DOCTOR, f"{GROUP}{self.node}.{self.groups}")
        self.groups += 1
        members = here[: self.number]
        self.share.mkdir(place)
        self.share.write(layout.join(place, f".{_MEMBERS}"), orjson.dumps(members), durable=False)
        self.share.rename(layout.join(place, f".{_MEMBERS}"), layout.join(place, _MEMBERS))
        return self._join(place, members)

    def _join(self, place: str, members: list[str]) -> Group | None:
        """Join the group, and wait for its beginning; None when it does not come."""
        group = Group(self.share, self.node, tuple(members), place)
        self.share.write(group.at(f"joined.{self.node}"), b"", durable=False)
        if not group.first:
            return group if group.hears(_START) else None
        if group.hears(*(f"joined.{member}" for member in members)):
            self.share.write(group.at(_START), b"", durable=False)
            return group
        remove(self.share, place)
        return None


def folded(words: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return all members' figures as one: sums of counts, the greatest times, and flags that are true for all."""
    result: dict[str, Any] = {}
    for word in words.values():
        for name, value in word.items():
            known = result.get(name)
            if known is None:
                result[name] = value
            elif isinstance(value, bool):
                result[name] = known and value
            elif isinstance(value, int):
                result[name] = known + value
            elif isinstance(value, float):
                result[name] = max(known, value)
            elif isinstance(value, list):
                result[name] = sorted({*known, *value})
    return result
