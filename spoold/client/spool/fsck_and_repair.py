"""Audits a spool, alive or not, and has it repaired where that is safe.

Law: a finding of one look may only be a file on the move, so each finding must show in two looks. Nothing is
repaired while a node lives, since the tree belongs to the nodes.

Touches: the clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from spoold.client.spool.living_nodes import Sleep, living, watch_most_s
from spoold.client.spool.spool_status import LOOK_AGAIN_S
from spoold.protocol.errors import SpoolError, Unavailable
from spoold.rules.tree.audit import Finding, Severity, audit, confirmed, counts, verdict
from spoold.store.path_conflicts import obstacles
from spoold.store.store import Store
from spoold.store.tree_repair import Mended, repair, survey
from spoold.system.clock import Clock
from spoold.system.host import Host


class StillAlive(SpoolError):
    """The spool is in use, so it must not be repaired."""


@dataclass(frozen=True, slots=True)
class FsckReport:
    """The report of an audit: the verdict in a few words, every finding, the number of tasks in each directory."""

    verdict: str
    findings: tuple[Finding, ...]
    counts: dict[str, int]

    @property
    def broken(self) -> bool:
        """Return whether a law is broken; warnings do not count."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def check(store: Store, *, sleep: Sleep = time.sleep) -> FsckReport:
    """Audit the whole tree, a second time where the first look shows anything wrong. Errors: OSError."""
    seen = survey(store)
    findings = audit(seen)
    if any(finding.severity is not Severity.INFO for finding in findings):
        sleep(LOOK_AGAIN_S)
        seen = survey(store)
        findings = confirmed(findings, audit(seen))
    return FsckReport(verdict(findings), tuple(findings), counts(seen))


def mend(
    store: Store, host: Host, clock: Clock, report: FsckReport, *, force: bool = False, sleep: Sleep = time.sleep
) -> list[Mended]:
    """Carry out the fixes of a report. Errors: StillAlive while a leader or worker lives, unless forced; Unavailable
    where a directory of the tree is not one, since its tasks are then unknown; OSError.
    """
    if blocked := obstacles(store.fs):
        raise Unavailable(f"nothing was repaired: {'; '.join(blocked)}. Then run fsck again.")
    if not any(finding.fix is not None for finding in report.findings):
        return []
    slow: dict[str, float] = {}
    alive = [] if force else living(store, host, clock, sleep=sleep, slow=slow)
    if running := [node for node in alive if node not in slow]:
        raise StillAlive(
            f"{', '.join(running)} still runs on this spool. Stop masters and workers first; --force repairs anyway "
            "and may take a running task from its worker."
        )
    if slow:
        raise StillAlive(
            " ".join(_unknown(node, every_s, watch_most_s(store)) for node, every_s in sorted(slow.items()))
        )
    return repair(store, list(report.findings))


def _unknown(node: str, every_s: float, watched_s: float) -> str:
    return (
        f"{node} may still run: its heartbeat says that it beats every {every_s:,.0f} s, and no beat came in the "
        f"{watched_s:,.0f} s for which it was watched. Stop that node, or remove heartbeats/{node}.*.json if it does "
        "not run; --force repairs anyway and may take a running task from its worker."
    )
