"""What a hostile task leaves, prints, writes and does to its own processes: a program that one seed decides.

Law: the standard library alone, and nothing of spoold. A deed changes only what the task was given: its work folder,
and the files and folders that its environment names. The canary is a folder of others, to which links and mounts
lead: the task never changes it. What a seed does is the same each time.

Touches: processes, the clock.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tools.hostility import leaving, processes, writing
from tools.hostility.world import DEEDS, SCALES, World

__all__ = ["DEEDS", "SCALES", "Plan", "command", "leaving", "plan", "processes", "writing"]

# How a task ends: with an exit code, by a signal of its own, or not at all until its timeout.
ENDS = ("exit 0",) * 12 + ("exit 3", "signal 9", "signal 15", "signal 6", "timeout")
MOST_DEEDS = 4
BOOT = "import sys; sys.path.append({root!r}); from tools.hostility.deeds import main; main()"


@dataclass(frozen=True, slots=True)
class Plan:
    """The deeds of one seed, in their order, and how the task ends."""

    deeds: tuple[str, ...]
    end: str

    @property
    def dies(self) -> bool:
        """Whether it kills what holds it, so that nobody can say how it ended."""
        return "supervisor_killed" in self.deeds


def plan(seed: int, only: str = "") -> Plan:
    """Return what a seed does. only: the one deed that it does."""
    chance = random.Random(seed)
    count = chance.choice((1, 1, 1, 2, 2, 3, MOST_DEEDS))
    # Behind a link or a mount in the place of its folders, what follows would be a deed of the task against others.
    # What kills or hangs the task comes at last; who holds a file by a lease cannot open it himself.
    last = ("supervisor_killed", "slots_taken", "work_is_gone", "work_is_a_link", "work_is_in_a_taken_folder")
    order = (*last, "shadowed", "hung_mount")
    chosen = chance.sample(sorted(DEEDS), count)
    chosen.sort(key=lambda name: name == "leased")
    chosen = [name for name in chosen if name not in order] + [name for name in order if name in chosen][:1]
    deeds = tuple(chosen)
    return Plan((only,) if only else deeds, chance.choice(ENDS))


def command(seed: str, scale: str, canary: str, only: str) -> list[str]:
    """Return the command of a task that does the deeds of a seed. only: the one deed that it does."""
    boot = BOOT.format(root=str(Path(__file__).parents[2]))
    return [sys.executable, "-I", "-c", boot, seed, scale, canary, only]


def main() -> None:
    """Do the deeds of a seed, and end as it says."""
    seed, scale, canary, only = sys.argv[1:]
    mine = plan(int(seed), only)
    world = World(random.Random(f"{seed}."), SCALES[scale], canary)
    for name in mine.deeds:
        with contextlib.suppress(OSError):
            DEEDS[name](world)
    kind, _, number = mine.end.partition(" ")
    if kind == "timeout":
        time.sleep(3600)
    if kind == "signal":
        os.kill(os.getpid(), int(number))
    # Descriptors may be closed: nothing is flushed.
    os._exit(int(number or 0))
