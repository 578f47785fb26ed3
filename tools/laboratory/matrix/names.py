"""Names in the drop box that programs on a laptop use again and again, while the leader runs on another machine.

An NFS client keeps the file of a name that it has looked up. A program that writes the name again opens that file by
its handle, wherever a leader has moved it meanwhile, and ends without an error. Such a drop never stands in pending/.

Each drop here is a task of its own. But a name that is written again before the leader took it is one drop, as in any
folder: so each drop waits until the server's own disk no longer shows the name of the one before.

Law: nothing else is done where one name is dropped. A listing of pending/ there, or another new file in it, would
renew what the kernel knows of the name, and hide the fault. So each name has a mount of its own, as if on a laptop of
its own, and what becomes of a drop is read from the server's disk. Every program ends without an error, or the cell
fails.
"""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tools.laboratory.guests import wait_until
from tools.laboratory.matrix.ledger import tokens
from tools.laboratory.matrix.pool import Pool
from tools.laboratory.matrix.told import Told
from tools.laboratory.matrix.workload import COMMAND, Workload, short
from tools.laboratory.protocols import SMB

# How each program writes the file SOURCE under the name TARGET. The last one is the control: its file is a new one.
PROGRAMS = {
    "echo": 'echo "$(cat SOURCE)" >TARGET',
    "cat": "cat SOURCE >TARGET",
    "cp": "cp SOURCE TARGET",
    "tee": "tee TARGET <SOURCE >/dev/null",
    "dd": "dd if=SOURCE of=TARGET status=none",
    "python": 'python3 -I -c \'open("TARGET", "w").write(open("SOURCE").read())\'',
    "mv": "cp SOURCE TARGET.part && mv TARGET.part TARGET",
}
DROPPER, OTHER = "laptop3", "laptop2"
MOUNTS = "/mnt/drops"
# From the end of a program to the next use of its name (s): each series begins elsewhere in this circle.
PAUSES = (0.7, 2.0, 4.0)
LENGTHS = (0, 40, 0, 0)  # the second drop of a name is longer than the first, the third smaller, the last as long
TWINS, TWINS_PAUSE_S = 3, 2.0
SECOND_BATCHES = {"smaller": 3, "equal": 6, "larger": 12}
FIRST_BATCH = 6
# An SMB client may say once of a name that was just moved away that its file exists; people then try again.
TRIED_AGAIN_S = 1
LISTED_S = 0.3  # a listing of the server's disk serves all series for so long
WITHIN_S = 60
_LIST = "find pending admitting waiting ready claimed returned completed failed rejected -type f 2>/dev/null || true"


@dataclass(frozen=True, slots=True)
class Drop:
    """One use of a name. program: how it is written; laptop: where.

    until: what its series waits for before it goes on, besides the pause: taken (the name is not in pending/),
    rejected (it is in rejected/ with its reason), tasks (all lines are tasks).
    """

    program: str
    lines: tuple[str, ...]
    laptop: str = DROPPER
    until: str = "taken"


@dataclass(frozen=True, slots=True)
class Series:
    """The drops under one name, and how long (s) is waited after each."""

    name: str
    drops: list[Drop]
    pauses: tuple[float, ...] = PAUSES


def _task(task: str, **more: object) -> str:
    return json.dumps({"id": task, "command": COMMAND, **more})


def series() -> list[Series]:
    """All of them: nothing here is left to chance, so that the ledger and the programs speak of the same drops."""
    found = []
    for begin, program in enumerate(PROGRAMS):
        pauses = PAUSES[begin % 3 :] + PAUSES[: begin % 3]
        ids = [f"again-{program}-{number}{'x' * longer}" for number, longer in enumerate(LENGTHS)]
        found.append(Series(f"again-{program}.json", [Drop(program, (_task(task),)) for task in ids], pauses))
    # Two laptops in turn: each knows a file of this name that is not the last one.
    turns = [Drop("cp", (_task(f"turns-{number}"),), (DROPPER, OTHER)[number % 2]) for number in range(4)]
    found.append(Series("turns.json", turns))
    # A drop that is rejected, and then put right under its name by a file that is larger, as large, or smaller.
    wrongs = {
        "torn": '{"id": bad',
        "typo": _task("fixed-typo").replace("command", "commnad"),
        "long": _task("fixed-long").replace("command", "comand" + "d" * 30),
    }
    for wrong, line in wrongs.items():
        drops = [Drop("echo", (line,), until="rejected"), Drop("cp", (_task(f"fixed-{wrong}"),))]
        found.append(Series(f"{wrong}.json", drops))
    for size, lines in SECOND_BATCHES.items():
        first, second = (
            Drop("cp", tuple(_task(f"{size}-{which}-{number:02d}") for number in range(count)), until="tasks")
            for which, count in (("a", FIRST_BATCH), ("b", lines))
        )
        found.append(Series(f"{size}.jsonl", [first, second]))
    twin = Drop("echo", (json.dumps({"command": COMMAND}),))
    return [*found, Series("twin.json", [twin] * TWINS, (TWINS_PAUSE_S,))]


def reused() -> Workload:
    """What is dropped, and which names may stay in rejected/: drops that were wrong, and were put right elsewhere."""
    workload = Workload()
    for one in series():
        for drop in one.drops:
            if drop.until == "rejected":
                workload.refused.add(one.name)
                continue
            for line in drop.lines:
                if (task := json.loads(line).get("id")) is None:
                    stem = one.name.removesuffix(".json")
                    workload.stems[stem] = workload.stems.get(stem, 0) + 1
                else:
                    workload.parents[task] = ()
    return workload


def beside() -> Workload:
    """What the pool was given before, so that all nodes are at work."""
    return short(20)


class Disk:
    """What lies on the server's own disk, for all series: none of them asks a laptop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._asking = threading.Lock()
        self._began = 0.0
        self._files: set[str] = set()

    def files(self, since: float) -> set[str]:
        """All files of a listing that began after that moment (monotonic, s), and a little while ago at most."""
        with self._asking:
            if self._began < max(since, time.monotonic() - LISTED_S):
                began = time.monotonic()
                self._files = set(self._pool.on_disk(_LIST).splitlines())
                self._began = began
            return self._files

    def wait(self, name: str, drop: Drop) -> None:
        """Wait for what is to become of a drop that was just made. Errors: TimeoutError."""
        since = time.monotonic()
        wait_until(
            f"{name} by {drop.program}: {drop.until}",
            lambda: _has_come(name, drop, self.files(since)),
            WITHIN_S,
            every_s=LISTED_S,
        )


def _has_come(name: str, drop: Drop, files: set[str]) -> bool:
    """Whether what a series waits for is so."""
    if drop.until == "rejected":
        return {f"rejected/{name}", f"rejected/{name}.reason.json"} <= files
    if drop.until == "tasks":
        return {json.loads(line)["id"] for line in drop.lines} <= {token.id for token in tokens(sorted(files))}
    return f"pending/{name}" not in files


def names_reused(pool: Pool) -> Told:
    """Programs on laptops that do not lead write the same names again, after the leader has taken what they wrote."""
    disk, every = Disk(pool), series()
    for laptop in (DROPPER, OTHER):
        for one in every:
            where = _mount_of(one)
            pool.lab.on(laptop).run("mkdir", "-p", where)
            pool.lab.on(laptop).run(*pool.lab.protocol.command(pool.lab.protocol.apart, where))
    try:
        with ThreadPoolExecutor(len(every)) as players:
            for played in [players.submit(_play, pool, disk, one) for one in every]:
                played.result()
    finally:
        for laptop in (DROPPER, OTHER):
            pool.lab.on(laptop).shell(f"umount -l {MOUNTS}/*; rmdir {MOUNTS}/* {MOUNTS}")
    again = sum(len(one.drops) - 1 for one in every)
    return Told(again, f"{len(every)} names were written {again} times again")


def _mount_of(one: Series) -> str:
    return f"{MOUNTS}/{one.name}"


def _play(pool: Pool, disk: Disk, one: Series) -> None:
    """All drops of one name, one after the other. Errors: Failed (a program ended with an error), TimeoutError."""
    source, target = f"/run/drop.{one.name}", f"{_mount_of(one)}/{pool.name}/pending/{one.name}"
    for number, drop in enumerate(one.drops):
        write = PROGRAMS[drop.program].replace("SOURCE", source).replace("TARGET", target)
        content = "".join(f"{line}\n" for line in drop.lines)
        if pool.lab.protocol.name in SMB:
            write = f"{{ {write} || {{ sleep {TRIED_AGAIN_S}; {write}; }}; }}"
        pool.lab.on(drop.laptop).run("bash", "-c", f"cat >{source} && {write}", stdin=content)
        ended = time.monotonic()
        if number + 1 < len(one.drops):
            disk.wait(one.name, drop)
            time.sleep(max(0.0, ended + one.pauses[number % len(one.pauses)] - time.monotonic()))
