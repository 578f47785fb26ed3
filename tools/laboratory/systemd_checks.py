"""`netlab test-systemd`: the shipped units on a machine that systemd runs, check by check, as a table.

One laptop is worker and master at once; the share is NFS with the options that systemd/README.md names. The checks
are in `systemd_boot` and `systemd_service`. They build on each other: what `set_up` installed is what the rest tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tools.laboratory import systemd_boot, systemd_image, systemd_service
from tools.laboratory.channel import Failed
from tools.laboratory.lab import Lab
from tools.laboratory.protocols import PROTOCOLS
from tools.laboratory.systemd_laptop import MASTER, MOUNT, WORKER, Laptop
from tools.turns import Part

Check = Callable[[Laptop], str]
CHECKS: tuple[Check, ...] = (*systemd_boot.CHECKS, *systemd_service.CHECKS)
BOUND_S = 3600


def chosen(only: str = "", part: Part = Part()) -> list[Check]:  # noqa: B008  a value
    """What sets the machine up, the checks whose name has `only` in it and whose turn it is, and the last one, which
    says what the others have left behind.
    """
    first, *others, last = CHECKS
    return [first, *(check for check in part.among(others) if only in check.__name__), last]


def carry_out(lab_name: str, only: str, part: Part) -> int:
    """Make a lab, carry out the chosen checks, remove the lab; how many failed."""
    began, checks = time.monotonic(), chosen(only, part)
    image = systemd_image.image()
    lab = Lab(lab_name, PROTOCOLS["nfs4.2"], 1, "", BOUND_S, image)
    made = time.monotonic()
    lab.up()
    try:
        print(f"the disk took {made - began:.0f} s, the lab {time.monotonic() - made:.0f} s", flush=True)
        verdicts = [_passes(check, Laptop(lab)) for check in checks]
    finally:
        lab.down()
    failed = verdicts.count(False)
    if left_out := [check.__name__ for check in CHECKS if check not in checks]:
        print(f"left out: {', '.join(left_out)}")
    print(f"systemd: {len(verdicts) - failed} passed, {failed} failed in {time.monotonic() - began:.0f} s")
    return failed


def _passes(check: Check, laptop: Laptop) -> bool:
    """Carry out one check, and print its line; what the units said if it failed."""
    began = time.monotonic()
    error = note = ""
    try:
        note = check(laptop)
    except (AssertionError, Failed, TimeoutError) as fault:
        error = f"{type(fault).__name__}: {fault}"
    verdict = "FAILED" if error else "ok"
    print(f"{verdict:6} {time.monotonic() - began:4.0f} s  {check.__name__}: {check.__doc__}", flush=True)
    if note:
        print(f"{'':15}({note})", flush=True)
    if error:
        print(f"{error}\n{_journal(laptop)}", flush=True)
    return not error


def _journal(laptop: Laptop) -> str:
    """What systemd and the daemons said last, if the laptop still answers."""
    try:
        return laptop.shell(f"journalctl -n 40 --no-pager -u {WORKER} -u {MASTER} -u {MOUNT}; systemctl list-jobs")
    except Failed as error:
        return str(error)
