"""Lanes: directories under waiting/ and ready/. The name says what a worker must have to run the tasks inside.

`type=review,run=command,pool=gpu,cpu=2,mem=4096,gpu=1,need=docker+node,py=pkg.jobs,use=api=2+git,class=critical`:
fields in this order, defaults omitted. `type=coder-b,for=coder` holds tasks of type coder that run as coder-b.

Law: a worker decides by the lane's name alone which tasks it may claim, and opens none before the claim. A demand has
one spelling: `parse_lane` refuses every name that `encode` would not make.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from spoold.protocol.errors import BadName, WrongValue

LANE_MAX = 200
# No dot at the end: SMB cannot open a directory with such a name.
WORD = r"[a-z0-9](?:[a-z0-9_.-]{0,46}[a-z0-9_-])?"
UNITS_MAX = 9999
NO_WORD = "use 1 to 48 of a-z 0-9 _ . - starting with a letter or digit, no final dot"

# How much of a limit one task uses; one unit is left out.
_USE = rf"{WORD}(?:=[1-9][0-9]{{0,3}})?"
_FIELD = {
    "type": re.compile(WORD),
    "run": re.compile("command|python"),
    "pool": re.compile(WORD),
    "cpu": re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,3})?"),
    "mem": re.compile(r"[0-9]{1,9}"),
    "gpu": re.compile(r"[0-9]{1,4}"),
    "need": re.compile(rf"{WORD}(?:\+{WORD})*"),
    "py": re.compile(r"[a-z0-9_](?:[a-z0-9_.]{0,98}[a-z0-9_])?"),
    "use": re.compile(rf"{_USE}(?:\+{_USE})*"),
    "class": re.compile(WORD),
    "for": re.compile(WORD),
}


@dataclass(frozen=True, slots=True)
class Lane:
    """A demand: cpus in cores (0 = any), mem_mb in MiB, gpus in devices, need = labels, module = Python module.

    uses: limits, each with the units that one task uses of it. bulkhead: the class whose slots it takes.

    run names the source of the work: the worker's handler for the type, a command or a Python callable in the task.
    instead_of: the type of the tasks themselves, where they run as another one; '' where they run as their own.
    """

    type: str
    run: str = "handler"
    pool: str = ""
    cpus: float = 0
    mem_mb: int = 0
    gpus: int = 0
    need: tuple[str, ...] = ()
    module: str = ""
    uses: tuple[tuple[str, int], ...] = ()
    bulkhead: str = ""
    instead_of: str = ""

    @property
    def own_type(self) -> str:
        """The type of the tasks themselves."""
        return self.instead_of or self.type

    def under(self, kind: str) -> Lane:
        """The demand of the same tasks if they run as this type: all else in it is the task's own."""
        return replace(self, type=kind, instead_of="" if kind == self.own_type else self.own_type)

    def encode(self) -> str:
        """The directory name. Errors: BadName when it would be longer than LANE_MAX or if a field is illegal."""
        cpus = 0.001 if 0 < self.cpus < 0.001 else self.cpus  # a small demand must not become 0
        fields = {
            "type": self.type,
            "run": "" if self.run == "handler" else self.run,
            "pool": self.pool,
            "cpu": f"{cpus:.3f}".rstrip("0").rstrip(".") if cpus else "",
            "mem": str(self.mem_mb or ""),
            "gpu": str(self.gpus or ""),
            "need": "+".join(sorted(set(self.need))),
            "py": self.module.lower(),
            "use": "+".join(name if n == 1 else f"{name}={n}" for name, n in sorted(self.uses)),
            "class": self.bulkhead,
            "for": self.instead_of,
        }
        if self.instead_of and (self.run != "handler" or self.instead_of == self.type):
            raise BadName("only tasks for a handler run as another type, which is not their own")
        for field, value in fields.items():
            if (value or field == "type") and not _FIELD[field].fullmatch(value):
                raise BadName(f"{field}={value!r} cannot stand in a lane's name")
        name = ",".join(f"{field}={value}" for field, value in fields.items() if value)
        if len(name) > LANE_MAX:
            raise BadName(f"a lane's name has at most {LANE_MAX} characters, this one {len(name)}")
        return name


def as_word(value: str) -> str:
    """A type, label or pool as lanes spell it. Errors: WrongValue."""
    word = value.strip().lower()
    if re.fullmatch(WORD, word) is None:
        raise WrongValue("not a plain word", NO_WORD)
    return word


@lru_cache(maxsize=4096)
def parse_lane(name: str) -> Lane | None:
    """The demand that a lane's name states, or None for a name that `encode` would not produce."""
    fields: dict[str, str] = {}
    for part in name.split(","):
        field, _, value = part.partition("=")
        if field not in _FIELD or not _FIELD[field].fullmatch(value):
            return None
        fields[field] = value
    if "type" not in fields or len(name) > LANE_MAX:
        return None
    lane = Lane(
        type=fields["type"],
        run=fields.get("run", "handler"),
        pool=fields.get("pool", ""),
        cpus=float(fields.get("cpu", 0)),
        mem_mb=int(fields.get("mem", 0)),
        gpus=int(fields.get("gpu", 0)),
        need=tuple(fields["need"].split("+")) if "need" in fields else (),
        module=fields.get("py", ""),
        uses=tuple(map(_use, fields["use"].split("+"))) if "use" in fields else (),
        bulkhead=fields.get("class", ""),
        instead_of=fields.get("for", ""),
    )
    try:
        return lane if lane.encode() == name else None
    except BadName:
        return None


def _use(text: str) -> tuple[str, int]:
    name, _, units = text.partition("=")
    return name, int(units or 1)


def kind_in(name: str) -> str:
    """The type that a lane's name states; '' if the name is not a lane's."""
    lane = parse_lane(name)
    return "" if lane is None else lane.type


def own_lane(name: str) -> str:
    """The lane of waiting/ to which the tasks of a lane of ready/ belong: that of their own type."""
    lane = parse_lane(name)
    return name if lane is None or not lane.instead_of else lane.under(lane.instead_of).encode()
