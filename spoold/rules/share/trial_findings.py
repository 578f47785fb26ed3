"""The meaning of the doctor's figures, of one machine and of several together. Measurements in, remarks out.

Law: a missing figure proves nothing and is no finding, unless its probe ended in an error; operations that spoold
never uses (replace a file, rely on a lock in `rename`, create exclusively) yield at most a note. The figures:

    marker      present, spool_id, claim
    space       free_mb (null: unknown), free_inodes (null: not counted)
    access      denied: directories of the tree that cannot be written; uid, owner; file_mode, dir_mode, umask
    names       lost: names that came back changed or not at all; case_sensitive, unicode
    rename      over, into, directory, over_directory, noreplace: "done" or an errno's name
    crossing    pairs; failed: "from→to: ERRNO" of renames between directories of the tree
    exclusive   file, directory: whether a second create of one name was refused
    durability  file, directory: "done" or an errno's name
    locks       flock, ofd: "excludes", "granted twice", "no answer" or an errno's name
    clock       offset_s of the server against this machine, mtime_step_ns
    hints       works, reason
    race        files, doubled, lost: claims by several threads of this machine
    pace        per operation p50_ms, p99_ms, max_ms
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spoold.protocol.amount import amount
from spoold.protocol.doctor_report import Remark
from spoold.protocol.plain_settings import Basics
from spoold.rules.share.free_space import FEW_INODES, room
from spoold.rules.share.remarks import BOTH, LOCK, RENAME, Figures, bad, judged, note, warning

FULL_MB = 64
CLOCK_OFF_S = 60.0
SLOW_MS = 500.0
NO_ANSWER = "no answer"


def judge_machine(measured: Mapping[str, Figures]) -> list[Remark]:
    """The remarks on one machine's figures; the mount's options are judged in `mount_options`."""
    return judged(measured, _JUDGES)


def _marker(figures: Figures) -> list[Remark]:
    if figures["present"]:
        return []
    return [
        note("marker", "this is no spool yet: `spool init DIR` makes one; if it should be, is the share mounted?")
    ]


def _space(figures: Figures) -> list[Remark]:
    found = []
    unknown = figures["free_mb"] is None
    total, free = figures.get("total_mb", 0) << 20, (figures["free_mb"] or 0) << 20
    if unknown:
        found.append(note("space", "this file system does not say its size, so nothing is said when it gets full"))
    elif (now := room(total, free, None, Basics())).full:
        problem = f"{now.value} by the defaults of [disk]; with them no drop is admitted and no task starts"
        found.append(warning("space", problem, now.mend))
    elif figures["free_mb"] < FULL_MB:
        found.append(
            warning("space", f"only {figures['free_mb']} MiB are free", "free some room, or raise the quota")
        )
    inodes = figures["free_inodes"]
    if inodes is not None and inodes < FEW_INODES:
        found.append(
            warning("space", f"only {amount(inodes, 'more file')} can be made", "remove files, or raise the quota")
        )
    return found


def _access(figures: Figures) -> list[Remark]:
    found = []
    if figures["denied"]:
        problem = f"this user cannot write to {', '.join(figures['denied'])}"
        found.append(bad("access", problem, "give the spool's directories to a group of all users, with mode 2775"))
    if figures["owner"] != figures["uid"]:
        problem = f"files made here belong to user {figures['owner']}, not to {figures['uid']}: the server maps users"
        found.append(note("access", problem))
    group = int(figures["file_mode"], 8) & 0o040 and int(figures["dir_mode"], 8) & 0o020
    if not group:
        problem = (
            f"files and directories made here ({figures['file_mode']}, {figures['dir_mode']}) are for one user only"
        )
        found.append(note("access", f"{problem}; for a team use umask 0002 and directories of mode 2775"))
    return found


def _names(figures: Figures) -> list[Remark]:
    found = []
    if figures["lost"]:
        problem = f"names of tasks come back changed, or not at all: {', '.join(figures['lost'])}"
        found.append(
            bad(
                "names",
                problem,
                "on SMB mount with the usual mapping of names; names of 254 bytes must fit, and paths of 460",
            )
        )
    if not figures["case_sensitive"]:
        found.append(note("names", "names that differ by case alone are one file here; spoold makes no such names"))
    if not figures["unicode"]:
        found.append(note("names", "names outside ASCII do not survive here; drops should be called in ASCII"))
    return found


def _rename(figures: Figures) -> list[Remark]:
    found = []
    if figures["into"] != "done":
        problem = f"a file cannot be renamed into another directory ({figures['into']})"
        found.append(bad("rename", problem, "put the spool on a file system whose directories are one volume"))
    for what, name in (("over", "a file over another"), ("directory", "a directory")):
        if figures[what] != "done":
            found.append(note("rename", f"renaming {name} gives {figures[what]}; spoold never does that"))
    return found


def _crossing(figures: Figures) -> list[Remark]:
    if not figures["failed"]:
        return []
    some = ", ".join(figures["failed"][:3])
    tried = amount(figures["pairs"], "rename")
    problem = f"{len(figures['failed'])} of {tried} between the spool's directories fail: {some}"
    return [
        bad("crossing", problem, "keep the whole spool in one directory of one file system, under one quota tree")
    ]


def _exclusive(figures: Figures) -> list[Remark]:
    found = []
    if not figures["directory"]:
        problem = "a directory can be made twice"
        found.append(bad("exclusive", problem, "put the spool on a file system with POSIX directories"))
    if not figures["file"]:
        found.append(note("exclusive", "O_EXCL does not exclude here; spoold does not rely on it"))
    return found


def _durability(figures: Figures) -> list[Remark]:
    if figures["file"] == "done":
        return []
    problem = f"fsync gives {figures['file']}: results may not survive a power cut of the server"
    return [warning("durability", problem, "fix the server, or set [durability] fsync = false and accept that")]


def _locks(figures: Figures) -> list[Remark]:
    said = figures["flock"]
    if said == "excludes":
        return []
    problem = "flock was granted twice at once" if said == "granted twice" else f"flock gives {said}"
    mend = "mount with locks (NFS: no nolock; version 3: rpc.statd; SMB: no nobrl), if the spool is to use `lock`"
    if said == NO_ANSWER:
        mend = f"a file server that has just started grants no locks for up to two minutes: try again then; or {mend}"
    return [Remark(grade="bad", probe="locks", problem=problem, mend=mend, against=LOCK)]


def _clock(figures: Figures) -> list[Remark]:
    if abs(figures["offset_s"]) < CLOCK_OFF_S:
        return []
    problem = f"the server's clock and this machine's are {abs(figures['offset_s']):.0f} s apart"
    mend = (
        "let both keep time by NTP (`timedatectl set-ntp true`, or chrony). No task is lost by it: deadline and "
        "not_before follow the clock that most machines share, the server's among them; but times that people read "
        "do not fit together"
    )
    return [warning("clock", problem, mend)]


def _race(figures: Figures) -> list[Remark]:
    if not figures["doubled"] and not figures["lost"]:
        return []
    tried = amount(figures["files"], "rename")
    problem = f"of {tried}, {figures['doubled']} were won twice and {figures['lost']} by no thread"
    mend = "use `spool init --claim lock` if locks work here, else another file system"
    return [Remark(grade="bad", probe="race", problem=problem, mend=mend, against=("rename",))]


def _pace(figures: Figures) -> list[Remark]:
    slow = {name: times["p50_ms"] for name, times in figures.items() if times["p50_ms"] > SLOW_MS}
    if not slow:
        return []
    worst = max(slow, key=lambda name: slow[name])
    mend = "check the network; raise [heartbeat] interval_s and [poll] idle_s in spool.toml if it stays so slow"
    return [warning("pace", f"{worst} takes {slow[worst]:.0f} ms, most of the time", mend)]


_JUDGES: dict[str, Callable[[Figures], list[Remark]]] = {
    "marker": _marker,
    "space": _space,
    "access": _access,
    "names": _names,
    "rename": _rename,
    "crossing": _crossing,
    "exclusive": _exclusive,
    "durability": _durability,
    "locks": _locks,
    "clock": _clock,
    "race": _race,
    "pace": _pace,
}


# The meaning of the figures of several machines that ran trials together. Measurements in, remarks out.
# Law: as above. Only operations that spoold relies on can rule a strategy out. The figures, over all
# machines:
#   freshness         rounds, late (listings that lacked what must be in them), touched (of those, that came only
#                     when the directory was touched), worst_s (of the others), ping_p50_ms, ping_max_ms
#   absent            seen_by_stat_s (up to limit_s): how long stat believed in an absence; seen_after_listing
#   moved             stat_still_sees, open_still_works, still_listed (once touched): counts of observers;
#                     inode_kept
#   read_rename       rounds, refused, stuck, errors, longest_s: renames of a file that a peer had just read
#   replaced          errors, target_there: renames over a file that a peer held open
#   beats             beats, seen, last_seen, longest_gap_s
#   claims            files, doubled, lost, left where they were, won per machine, errors
#   handover          moves, overlaps, miscounted
#   locks             rounds, overlaps, starved, errors
#   same_destination, noreplace, exclusive   rounds, doubled, nobody, errors


VERY_LATE_S = 1.0
LONG_GAP_S = 3.0
LONG_ABSENT_S = 1.0


def judge_gathering(together: Mapping[str, Figures]) -> list[Remark]:
    """The remarks on the common trials."""
    return judged(together, _JUDGES_TOGETHER)


_FRESH = "NFS: vers=4.2, no nocto; SMB: cache=strict, no directory leases; sshfs: dir_cache=no"


def _freshness(figures: Figures) -> list[Remark]:
    late, touched = figures["late"], figures["touched"]
    if not late:
        return []
    problem = f"{late} of {amount(figures['rounds'], 'listing')} lacked a file that another machine had made before, "
    if figures["worst_s"] >= VERY_LATE_S:
        problem += f"for up to {figures['worst_s']:.1f} s"
        return [bad("freshness", problem, f"make listings fresh ({_FRESH})", BOTH)]
    if touched:
        problem += f"{touched} of them until the directory was touched, as spoold does when it polls on NFS"
    else:
        problem += f"for up to {figures['worst_s']:.1f} s"
    return [warning("freshness", problem, f"to see tasks sooner: {_FRESH}")]


def _absent(figures: Figures) -> list[Remark]:
    found = []
    if not figures["seen_after_listing"]:
        problem = "a name that was absent once stays absent even after its directory was listed anew"
        found.append(
            bad("absent", problem, f"mount with lookupcache=positive, and make listings fresh ({_FRESH})", BOTH)
        )
    elif figures["seen_by_stat_s"] >= LONG_ABSENT_S:
        seconds = f"{figures['seen_by_stat_s']:.0f} s or more"
        found.append(note("absent", f"stat believes in an absence for {seconds}; spoold lists before it looks"))
    return found


def _moved(figures: Figures) -> list[Remark]:
    found = []
    if figures["still_listed"]:
        problem = "a file that another machine had moved away was still listed"
        found.append(bad("moved", problem, f"make listings fresh ({_FRESH})", BOTH))
    if figures["stat_still_sees"] or figures["open_still_works"]:
        found.append(
            note("moved", "stat or open still find a file under a name that it has left, as usual on a network")
        )
    if not figures["inode_kept"]:
        found.append(note("moved", "inode numbers do not stay with a file; spoold does not look at them"))
    return found


def _read_rename(figures: Figures) -> list[Remark]:
    if not figures["refused"]:
        return []
    errors = ", ".join(figures["errors"])
    problem = f"a file that another machine has just read cannot be renamed at once ({errors})"
    mend = "mount with nolease or closetimeo=0 on all machines, or use a newer Samba"
    if figures["stuck"]:
        return [bad("read_rename", f"{problem}, and not after {figures['longest_s']:.0f} s", mend, BOTH)]
    return [warning("read_rename", problem, mend)]


def _replaced(figures: Figures) -> list[Remark]:
    if not figures["errors"] and figures["target_there"]:
        return []
    return [note("replaced", "a rename over a file that another machine holds open is not atomic; spoold makes none")]


def _beats(figures: Figures) -> list[Remark]:
    if not figures["last_seen"]:
        beats = amount(figures["beats"], "heartbeat")
        problem = f"only {figures['seen']} of {beats} of other machines were seen, and not the last"
        return [bad("beats", problem, f"make listings fresh ({_FRESH})", BOTH)]
    if figures["longest_gap_s"] >= LONG_GAP_S:
        problem = f"heartbeats that came every 0.1 s were not seen for {figures['longest_gap_s']:.1f} s"
        mend = "raise [heartbeat] interval_s in spool.toml, or fix the network"
        return [warning("beats", problem, mend)]
    return []


_ONE_WINNER = "make the spool with --claim lock if locks work here, else use another file server"


def _claims(figures: Figures) -> list[Remark]:
    if not figures["doubled"] and not figures["lost"]:
        return []
    files = amount(figures["files"], "file")
    problem = f"of {files}, {figures['doubled']} were won by two machines and {figures['lost']} by none"
    return [bad("claims", problem, _ONE_WINNER, RENAME)]


def _handover(figures: Figures) -> list[Remark]:
    if not figures["overlaps"] and not figures["miscounted"]:
        return []
    overlaps = amount(figures["overlaps"], "time")
    problem = (
        f"in {figures['moves']} hand-overs of a token, two machines held it at once {overlaps}, and the count was "
        f"{figures['miscounted']} off"
    )
    return [bad("handover", problem, _ONE_WINNER, RENAME)]


def _locks_together(figures: Figures) -> list[Remark]:
    mend = "mount with locks (NFS: no nolock; SMB: no nobrl), if the spool is to use `lock`"
    if figures["overlaps"]:
        overlaps = amount(figures["overlaps"], "time")
        problem = f"two machines held one flock at the same time, {overlaps} in {figures['rounds']}"
        return [bad("locks", problem, mend, LOCK)]
    if figures["errors"]:
        return [bad("locks", f"flock gives {', '.join(figures['errors'])}", mend, LOCK)]
    if figures["starved"]:
        return [
            bad(
                "locks", f"{amount(figures['starved'], 'machine')} never got a lock that others gave back", mend, LOCK
            )
        ]
    return []


def _informed(probe: str, what: str) -> Callable[[Figures], list[Remark]]:
    """Judge a race that spoold never runs: reported, since it is the reason why."""

    def judge(figures: Figures) -> list[Remark]:
        if not figures["doubled"]:
            return []
        return [note(probe, f"{figures['doubled']} of {amount(figures['rounds'], 'time')} two machines won {what}")]

    return judge


_JUDGES_TOGETHER: dict[str, Callable[[Figures], list[Remark]]] = {
    "freshness": _freshness,
    "absent": _absent,
    "moved": _moved,
    "read_rename": _read_rename,
    "replaced": _replaced,
    "beats": _beats,
    "claims": _claims,
    "handover": _handover,
    "locks": _locks_together,
    "same_destination": _informed("same_destination", "a rename of one file to one name; spoold makes none"),
    "noreplace": _informed("noreplace", "one name with RENAME_NOREPLACE; spoold does not use it"),
    "exclusive": _informed("exclusive", "an exclusive creation; spoold does not rely on it"),
}
