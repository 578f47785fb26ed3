"""The end of an examination: safe with `rename`, safe with `lock`, or not safe; why; and all of it in one line.

Law: a strategy is safe unless a finding rules it out; the limits of a look by one machine are stated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spoold.protocol.amount import amount
from spoold.protocol.heartbeat import MountFacts
from spoold.protocol.report import Remark, Safety, Strategy
from spoold.rules.share.mount_options import describe

_ORDER = {"bad": 0, "warning": 1, "note": 2}


def ordered(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """The worst first; of equals, the one that rules out more."""
    return tuple(sorted(remarks, key=lambda remark: (_ORDER[remark.grade], -len(remark.against))))


def conclude(
    remarks: Sequence[Remark], machines: int, *, network: bool, directory: str = "DIR"
) -> tuple[Safety, str]:
    """The verdict and its reason, a sentence each. machines: how many took part; network: others serve the mount.

    directory: in the form for a shell.
    """
    against: dict[Strategy, list[Remark]] = {
        strategy: [remark for remark in remarks if strategy in remark.against] for strategy in ("rename", "lock")
    }
    if not against["rename"]:
        return "safe with rename", _proof(machines, directory, network=network)
    reason = _because(against["rename"][0])
    if not against["lock"]:
        return "safe with lock", f"rename alone does not do, {reason}; {_proof(machines, directory, network=network)}"
    # A remark that rules out both says more than remarks that rule out either.
    both = next((remark for remark in remarks if len(remark.against) > 1), None)
    return "not safe", _because(both) if both else f"{reason}; and no lock either, {_because(against['lock'][0])}"


def chosen(remarks: Sequence[Remark]) -> Strategy | None:
    """The strategy for a new spool; None if neither is safe."""
    for strategy in ("rename", "lock"):
        if not any(strategy in remark.against for remark in remarks):
            return strategy
    return None


def _because(remark: Remark) -> str:
    where = f" (on {remark.host})" if remark.host else ""
    return f"since {remark.problem}{where}"


def _proof(machines: int, directory: str, *, network: bool) -> str:
    together = f"run `spool doctor {directory} --with 2` on two of them within a minute"
    if machines > 1:
        return f"as {amount(machines, 'machine')} saw it together"
    if network:
        return f"as far as one machine can tell; to be sure, {together}"
    return f"as far as this machine alone uses it; if other machines mount it too, {together}"


def line(
    verdict: Safety,
    mount: MountFacts | None,
    measured: Mapping[str, Mapping[str, Any]],
    together: Mapping[str, Mapping[str, Any]],
    system: str,
) -> str:
    """The line that a bug report should begin with. system: versions of spoold, the kernel and so on, in words."""
    parts = [system, describe(mount) if mount else "unknown mount"]
    pace = measured.get("pace", {})
    timed = [(name, pace[name]) for name in ("rename", "list", "read") if name in pace]
    parts += [f"{name} {times['p50_ms']:g}/{times['p99_ms']:g} ms" for name, times in timed]
    for probe, keys in _TOLD.items():
        figures = {**measured.get(probe, {}), **together.get(probe, {})}
        told = " ".join(f"{key}={figures[key]}" for key in keys if key in figures)
        if told:
            parts.append(f"{probe} {told}")
    return "; ".join([*parts, verdict])


_TOLD = {
    "clock": ("offset_s", "mtime_step_ns"),
    "locks": ("flock", "rounds", "overlaps"),
    "peers": ("machines",),
    "freshness": ("rounds", "late", "worst_s", "ping_p50_ms"),
    "absent": ("seen_by_stat_s", "seen_after_listing"),
    "claims": ("files", "doubled", "lost"),
    "handover": ("moves", "overlaps"),
    "read_rename": ("refused",),
}
