"""Which mount options make a spool unsafe, whether a node mounts as the doctor approved, and how an examination ends:
safe with `rename`, safe with `lock`, or not safe.

Law: options are judged by the behaviour of real clients; an option that is not listed here is no finding, since
the doctor's trials speak for themselves. Sources: nfs(5), mount.cifs(8), and trials with Linux 6.1 and 6.12 clients.

A node that works on a local file system beside nodes that mount over the network is on the server itself: no other
machine could see its heartbeat. NFS clients see its renames like any others. But its flock is the kernel's own and
theirs is a byte range, so `lock` excludes no node there; and Samba does not see local changes, so that an SMB client
may believe an old listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spoold.protocol.amount import amount
from spoold.protocol.doctor_report import Remark, Report, Safety, Strategy
from spoold.protocol.heartbeat import MountFacts
from spoold.rules.share.remarks import BOTH, LOCK, bad, note, warning

_NFS = ("nfs", "nfs4")
_SMB = ("cifs", "smb2", "smb3", "smbfs")
# A bucket behind a directory: a rename is a copy and a delete, and two clients can both succeed.
_BUCKETS = ("s3fs", "goofys", "gcsfuse", "rclone", "blobfuse", "mountpoint-s3", "ossfs")
_MATTER = {
    "nfs": ("soft", "softerr", "nocto", "noac", "nolock", "local_lock", "lookupcache", "ro"),
    "smb": ("nobrl", "nolease", "cache", "closetimeo", "ro"),
    "other": ("cache", "ro"),
}


def family(fstype: str) -> str:
    """nfs, smb or other."""
    return "nfs" if fstype in _NFS else "smb" if fstype in _SMB else "other"


def by_name(mount: MountFacts) -> bool:
    """Whether the server knows this client by its host name, as NFS 4 does if the client has no other id."""
    return mount.network and family(mount.fstype) == "nfs" and (mount.version[:1] == "4" or mount.fstype == "nfs4")


def facts_of(fstype: str, options: Iterable[str], *, network: bool) -> MountFacts:
    """The facts of a mount that affect safety, in one spelling."""
    listed = list(options)
    named = dict(option.partition("=")[::2] for option in listed)
    kind = family(fstype)
    matter = _MATTER[kind] if network else ("ro",)
    usual = {"local_lock": "none", "lookupcache": "all", "cache": "strict" if kind == "smb" else "none"}
    kept = [
        f"{name}={named[name]}" if named[name] else name
        for name in matter
        if name in named and usual.get(name) != named[name] and (name, named[name]) != ("closetimeo", "1")
    ]
    return MountFacts(fstype=fstype, version=named.get("vers", ""), options=tuple(sorted(kept)), network=network)


def describe(mount: MountFacts) -> str:
    """A mount in a few words: nfs4 4.2 (soft)."""
    options = f" ({','.join(mount.options)})" if mount.options else ""
    return f"{mount.fstype} {mount.version}".strip() + options


def judge_mount(mount: MountFacts) -> list[Remark]:
    """The remarks on the options alone."""
    found = []
    if "ro" in mount.options:
        found.append(bad("mount", "the spool is mounted read-only", "mount it read-write (rw)", BOTH))
    if mount.fstype.removeprefix("fuse.") in _BUCKETS:
        problem = f"{mount.fstype} makes a rename of a copy and a delete, so two machines can both win one task"
        found.append(bad("mount", problem, "put the spool on NFS, SMB or a disk", BOTH))
    elif mount.network:
        judge = {"nfs": _judge_nfs, "smb": _judge_smb, "other": _judge_other}[family(mount.fstype)]
        found += judge(mount)
    return found


def _judge_nfs(mount: MountFacts) -> list[Remark]:
    has = set(mount.options)
    found = []
    if has & {"soft", "softerr"}:
        problem = "a soft mount reports a rename as failed and may still carry it out later, when the network is back"
        found.append(bad("mount", problem, "mount with hard instead of soft", BOTH))
    if "nocto" in has:
        problem = "with nocto a file that another machine has just written may be read as it was before, or empty"
        found.append(bad("mount", problem, "mount without nocto", BOTH))
    if has & {"nolock", "local_lock=all", "local_lock=flock"}:
        problem = "locks stay on this machine (nolock, local_lock); `rename` needs none, but `lock` excludes no node"
        found.append(
            bad("mount", problem, "mount without nolock and local_lock, if the spool is to use `lock`", LOCK)
        )
    if "noac" in has:
        problem = "noac makes every write wait for the server and is not needed"
        found.append(warning("mount", problem, "mount without noac; lookupcache=positive,actimeo=3 is enough"))
    if mount.version in ("2", "3"):
        problem = (
            f"NFS {mount.version} shows a directory's changes by its time, so of two within one tick of the server's "
            "clock (1 to 10 ms) the second may stay unseen until spoold touches the directory, after ten seconds"
        )
        found.append(
            warning("mount", problem, "mount with vers=4.2, or keep the files on a server with Linux 6.13 or newer")
        )
    elif mount.version == "4.0":
        problem = "NFS 4.0 has no sessions, so a reply that is lost while the server restarts costs a look"
        found.append(note("mount", problem, "mount with vers=4.2, where the server has it"))
    return found


def _judge_smb(mount: MountFacts) -> list[Remark]:
    has = set(mount.options)
    found = []
    if "cache=loose" in has:
        problem = "cache=loose believes its own copy of files that other machines change"
        found.append(bad("mount", problem, "mount with cache=strict", BOTH))
    if "nobrl" in has:
        problem = "with nobrl locks never reach the server; `rename` needs none, but `lock` excludes no node"
        found.append(bad("mount", problem, "mount without nobrl, if the spool is to use `lock`", LOCK))
    if not has & {"nolease", "closetimeo=0"}:
        problem = "this machine holds on to files for a second after reading them, so renames by others wait or fail"
        found.append(warning("mount", problem, "mount with nolease (or closetimeo=0)"))
    if mount.version and mount.version[0] in "12":
        found.append(warning("mount", f"SMB {mount.version} is old", "mount with vers=3.1.1"))
    return found


def _judge_other(mount: MountFacts) -> list[Remark]:
    if mount.fstype == "9p" and any(option.startswith("cache=") for option in mount.options):
        problem = "9p with a cache shows other machines' changes only much later"
        return [bad("mount", problem, "mount with cache=none", BOTH)]
    if mount.fstype == "fuse.sshfs":
        problem = "sshfs remembers listings for many seconds, and its locks stay on this machine"
        return [
            warning(
                "mount", problem, "mount with -o dir_cache=no, or better over NFS; let two machines run the doctor"
            )
        ]
    if mount.fstype.startswith("fuse"):
        problem = f"the guarantees of {mount.fstype} are not known here"
        return [warning("mount", problem, "let two machines run the doctor at once before you trust it")]
    return []


def disapproved(mounts: Mapping[str, MountFacts], reports: Iterable[Report], claim: Strategy) -> list[str]:
    """Warnings for `status`, by name of node: mounts that the known facts about their kind do not call safe.

    mounts: of every living node that reports it; reports: in the order of their numbers; claim: how moves are made in
    this spool. Nodes that all work on local file systems share a machine, and need no approval.
    """
    known = in_force(reports)
    shared = [mount for mount in mounts.values() if mount.network]
    warnings = []
    for node, mount in sorted(mounts.items()):
        if mount.network:
            problem = _unapproved(mount, known.get(_kind(mount)), claim)
        else:
            problem = "; ".join(filter(None, beside(shared, claim)))
        if problem:
            warnings.append(f"{node} {problem}")
    return warnings


Kind = tuple[str, str, tuple[str, ...], bool]


def in_force(reports: Iterable[Report]) -> dict[Kind, Report]:
    """The report that counts for each kind of mount: the newest, but several machines outweigh one.

    Otherwise a look by one machine, which cannot see a race, would erase the finding of two machines.
    """
    known: dict[Kind, Report] = {}
    for report in reports:
        if report.mount is not None:
            kind = _kind(report.mount)
            if report.machines > 1 or kind not in known or known[kind].machines == 1:
                known[kind] = report
    return known


def _kind(mount: MountFacts) -> Kind:
    """Mounts of one kind behave alike; their targets are not compared, since one server has many names."""
    return mount.fstype, mount.version, mount.options, mount.network


def beside(shared: Iterable[MountFacts], claim: Strategy) -> tuple[str, str]:
    """The fault of working on the server's own disk while others mount it like this, and the fix; or ''."""
    families = {family(mount.fstype) for mount in shared}
    mend = "mount the share on the server too, and start the node on that"
    if families and claim == "lock":
        problem = "works on the server's own disk, where its locks and those of other machines do not see each other"
        return problem, mend
    if "smb" in families:
        return "works on the server's own disk, and Samba does not notify its clients of changes there", mend
    return "", ""


def _unapproved(mount: MountFacts, report: Report | None, claim: Strategy) -> str:
    how = f"mounts the spool as {describe(mount)}"
    against = next((remark for remark in judge_mount(mount) if claim in remark.against), None)
    if against is None and report is None:
        return f"{how}, which no doctor has seen; run `spool doctor` there"
    if against is None and report is not None:
        # A fault of another machine that took part says nothing of this kind of mount.
        own = (remark for remark in report.remarks if not remark.host)
        against = next((remark for remark in own if claim in remark.against), None)
    return f"{how}: {against.problem}; {against.mend}" if against is not None else ""


# The end of an examination: safe with `rename`, safe with `lock`, or not safe; why; and all of it in one line.
# Law: a strategy is safe unless a finding rules it out; the limits of a look by one machine are stated.


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
