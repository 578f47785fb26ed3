"""One machine, or several in threads, examined in this process on a share that may lie."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from spoold.doctor.trial_process import Order, Teller, examine
from spoold.doctor.trial_share import Share
from spoold.protocol.doctor_report import Report
from spoold.system.host import FakeHost


class Listener(Teller):
    """Keeps what is told instead of printing it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []

    def tell(self, **line: Any) -> None:
        self.lines.append(line)

    @property
    def report(self) -> Report:
        (found,) = [line["report"] for line in self.lines if "report" in line]
        return Report.model_validate(found)


def examined(share: Share, *, quick: bool = True, host: FakeHost | None = None) -> Report:
    """The report of one machine."""
    listener = Listener()
    order = Order(share.root, "doctor-a-00000", quick=quick)
    examine(order, share, host or FakeHost("a"), listener)
    return listener.report


def examined_together(
    *shares: Share, hosts: tuple[FakeHost, ...] = (), files: int = 60, told: list[list[str]] | None = None
) -> list[Report]:
    """The reports of several machines, one thread each. told: gets what each says to its person.

    Errors: whatever one of them raised.
    """
    listeners = [Listener() for _ in shares]
    errors: list[BaseException] = []
    order = Order(shares[0].root, "", peers=len(shares), wait_s=30, files=files, quick=True)

    def run(number: int) -> None:
        host = hosts[number] if hosts else FakeHost("abc"[number])
        try:
            examine(replace(order, node=f"doctor-{number}"), shares[number], host, listeners[number])
        except BaseException as error:  # noqa: BLE001 - it is raised again, where the test sees it
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(shares))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    if told is not None:
        told += [[line["say"] for line in listener.lines if "say" in line] for listener in listeners]
    return [listener.report for listener in listeners]


def files_in(directory: Path) -> list[str]:
    """Every path below the directory."""
    return sorted(
        os.path.relpath(os.path.join(at, name), directory) for at, ds, fs in os.walk(directory) for name in fs + ds
    )
