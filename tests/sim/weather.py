"""Which faults a seed brings, and how often.

Every draw is a hash of the seed and of what is drawn for, so that one fault can be left out without moving all the
others: that is what makes a failing seed small. Swarm testing: each seed switches some kinds of fault off, since a
world in which everything fails at once hides what one fault alone would show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container
from dataclasses import dataclass, field

FLAVOURS = ("local", "nfs", "smb")

# Faults of single calls, by the kind of share on which they were seen. The figure is the odds per call.
CALLS: dict[str, dict[str, float]] = {
    "local": {
        "nap": 0.0,
        "fall": 0.0,
        "away": 0.01,
        "slow": 0.01,
        "full": 0.002,
        "quota": 0.002,
        "eintr": 0.002,
        "scan": 0.05,
        "torn": 0.002,
    },
    "nfs": {
        "nap": 0.0,
        "fall": 0.0,
        "outage": 0.0,
        "away": 0.01,
        "slow": 0.02,
        "stall": 0.001,
        "nolock": 0.01,
        "lost": 0.01,
        "late": 0.004,
        "orphan": 0.5,
        "eio": 0.01,
        "estale": 0.006,
        "negative": 0.5,
        "positive": 0.5,
        "attributes": 0.5,
        "full": 0.002,
        "quota": 0.001,
        "scan": 0.05,
        "torn": 0.002,
    },
    "smb": {
        "nap": 0.0,
        "fall": 0.0,
        "outage": 0.0,
        "away": 0.01,
        "slow": 0.02,
        "stall": 0.001,
        "nolock": 0.01,
        "lost": 0.01,
        "busy": 0.02,
        "eio": 0.006,
        "late": 0.002,
        "orphan": 0.5,
        "down": 0.5,
        "alias": 0.7,
        "attributes": 0.5,
        "full": 0.002,
        "quota": 0.001,
        "scan": 0.05,
        "torn": 0.002,
    },
}
# Three of four seeds aim at one kind of change: what is rare everywhere is common there, and machines die there.
# What such a share always is, rather than what befalls it.
NATURE = ("negative", "positive", "attributes", "alias")
ANYWHERE = ""
AIMS = (
    ("pending", ANYWHERE),
    ("admitting", "admitting"),
    ("admitting", "waiting"),
    ("admitting", "ready"),
    ("waiting", "ready"),
    ("ready", "claimed"),
    ("claimed", "completed"),
    ("claimed", "returned"),
    ("returned", "waiting"),
    ("master", "master"),
)
AIMED = {
    "stall": 0.04,
    "late": 0.15,
    "lost": 0.25,
    "eio": 0.1,
    "estale": 0.1,
    "busy": 0.1,
    "nap": 0.15,
    "fall": 0.1,
    "outage": 0.1,
}
# Faults of machines and of the server: the mean time between two of a kind (s).
BLOWS: dict[str, float] = {
    "crash": 12.0,
    "freeze": 15.0,
    "suspend": 25.0,
    "doze": 25.0,
    "partition": 15.0,
    "reboot": 30.0,
    "unmount": 30.0,
    "clock": 10.0,
    "full": 30.0,
    "power": 30.0,
}


@dataclass(slots=True)
class Weather:
    """The draws of one seed. suppressed: names of faults that are left out; struck: those that came, in order.

    heard is told of every fault that comes, for whoever wants to read what happened.
    """

    seed: int
    suppressed: Container[str] = frozenset()
    struck: list[str] = field(default_factory=list)
    flavour: str = field(init=False)
    calls: dict[str, float] = field(init=False)
    blows: dict[str, float] = field(init=False)
    aim: tuple[str, str] | None = field(init=False)
    fair: bool = False
    heard: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self.flavour = FLAVOURS[int(self.draw("flavour") * len(FLAVOURS))]
        aims = (*AIMS, *AIMS, *AIMS, *(None for _ in AIMS))
        self.aim = aims[int(self.draw("aim") * len(aims))]
        self.calls = {k: odds for k, odds in CALLS[self.flavour].items() if k in NATURE or self.draw("on", k) < 0.6}
        self.blows = {k: mean for k, mean in BLOWS.items() if self.draw("on", k) < 0.5}

    def draw(self, *what: object) -> float:
        """A number in [0, 1) that depends on the seed and on what it is drawn for, and on nothing else."""
        digest = hashlib.blake2b("/".join(map(str, (self.seed, *what))).encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big") / (1 << 56)

    def strikes(self, kind: str, *what: object, aimed: bool = False) -> bool:
        """Whether a fault of this kind comes here. aimed: it would come where this seed aims at."""
        odds = self.calls.get(kind)
        if odds is not None and aimed:
            odds = AIMED.get(kind, odds)
        if odds is None or self.fair or self.draw(kind, *what) >= odds:
            return False
        return self.admit(f"{kind} {' '.join(map(str, what))}")

    def blows_now(self, kind: str, number: int) -> bool:
        """Whether a blow that is due comes."""
        return not self.fair and self.admit(f"{kind} blow {number}")

    def admit(self, name: str) -> bool:
        """Whether a fault that was drawn is not left out; it is then on record."""
        if name in self.suppressed:
            return False
        self.struck.append(name)
        self.tell(name)
        return True

    def tell(self, text: str) -> None:
        """For whoever listens: a fault, or what is done to whom."""
        if self.heard is not None:
            self.heard(text)
