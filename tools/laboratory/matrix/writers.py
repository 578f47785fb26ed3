"""Files that programs which know nothing of spoold write into the drop box: copied before a power cut, or slowly.

Law: every program here ends without an error, and says so, or the cell fails.
"""

from __future__ import annotations

import time

from tools.laboratory.guests import wait_until
from tools.laboratory.matrix import outages
from tools.laboratory.matrix.pool import Pool
from tools.laboratory.matrix.told import Told, Unproven
from tools.laboratory.matrix.workload import Workload

COPIED = 24
ENDED = "/run/writers"
WITHIN_S = 150


def copied() -> Workload:
    """Tasks that nobody is in a hurry for, so that they still wait when the power fails."""
    workload = Workload()
    for number in range(COPIED):
        workload.add(f"copied-{number:02d}", 0, priority=-20)
    return workload


def slowly() -> Workload:
    """What the slow programs write: two batches, and three single tasks."""
    workload = Workload()
    for name, lines in (("generated", 6), ("cut", 20)):
        for number in range(lines):
            workload.add(f"{name}-{number:02d}", 0)
    for name in ("half", "late", "whole"):
        workload.add(name, 0)
    return workload


def copied_then_power(pool: Pool) -> Told:
    """Single files are copied with `cp`; once all of them are admitted the power of the server fails."""
    outages.busy(pool, "laptop3")
    laptop = pool.lab.on("laptop2")
    laptop.run("mkdir", "-p", "/run/drops")
    for line, task in zip(copied().lines, copied().parents, strict=True):
        laptop.put(line.encode(), f"/run/drops/{task}.json")
    laptop.shell(f"cp /run/drops/*.json {pool.root}/pending/")
    began = time.monotonic()
    wait_until("all copies are admitted", lambda: not _left(pool), 60, every_s=0.2)
    waiting = int(pool.on_disk("find waiting ready claimed -name '*.copied-*' | wc -l"))
    pool.undone = True
    pool.lab.kill("server")
    took = time.monotonic() - began
    if not waiting:
        raise Unproven("every copied task had ended before the power failed")
    time.sleep(2)
    pool.lab.boot("server")
    return Told(1, f"{waiting} of {COPIED} copied tasks stood admitted, {took:.0f} s after they were copied")


def _left(pool: Pool) -> bool:
    return bool(int(pool.on_disk("find pending admitting -name '*copied-*' | wc -l")))


def slow_writers(pool: Pool) -> Told:
    """Programs on two laptops write in pieces, with pauses of 3 to 75 s, into files that they never rename."""
    lines = dict(zip(slowly().parents, slowly().lines, strict=True))
    pending = f"{pool.root}/pending"
    generated = "; sleep 3; ".join(f"echo '{lines[f'generated-{number:02d}']}'" for number in range(6))
    cut = "".join(lines[f"cut-{number:02d}"] + "\n" for number in range(20))
    half, late, whole = (lines[name] for name in ("half", "late", "whole"))
    programs = {
        "laptop2": (
            f"({generated}) >{pending}/generated.jsonl",
            f"(printf '%s' '{half[:20]}'; sleep 15; printf '%s' '{half[20:]}') >{pending}/half.json",
            f"(sleep 75; printf '%s' '{late}') >{pending}/late.json",
        ),
        "laptop3": (
            f"(head -n 10 /run/cut; sleep 14; tail -n +11 /run/cut) >{pending}/cut.jsonl",
            f"(printf '%s' '{whole}'; sleep 5; echo) >{pending}/whole.json",
        ),
    }
    for laptop, scripts in programs.items():
        pool.lab.on(laptop).put(cut.encode(), "/run/cut")
        pool.lab.on(laptop).shell(f"rm -rf {ENDED}; mkdir {ENDED}")
        for number, script in enumerate(scripts):
            text = f"set -e\n{script}\ntouch {ENDED}/{number}\n"
            pool.lab.on(laptop).put(text.encode(), f"/run/writer-{number}")
            pool.lab.on(laptop).start("/bin/sh", f"/run/writer-{number}", log=f"/run/writer-{number}.log")

    def all_ended() -> bool:
        found = [pool.lab.on(laptop).shell(f"ls {ENDED}").split() for laptop in programs]
        return sum(map(len, found)) == sum(map(len, programs.values()))

    wait_until("all programs end without an error", all_ended, WITHIN_S, every_s=1)
    grew = pool.on_disk('cat events/* | grep -c \'"event":"GREW"\' || true').strip()
    again = pool.on_disk('cat events/* | grep -c \'"event":"REJUDGED"\' || true').strip()
    return Told(
        sum(map(len, programs.values())), f"{grew} batches grew after admission, {again} drops were judged again"
    )
