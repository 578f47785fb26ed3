"""The meaning of the figures of several machines that ran trials together. Measurements in, remarks out.

Law: as in `checkup`. Only operations that spoold relies on can rule a strategy out. The figures, over all machines:

    freshness         rounds, late (listings that lacked what must be in them), touched (of those, that came only
                      when the directory was touched), worst_s (of the others), ping_p50_ms, ping_max_ms
    absent            seen_by_stat_s (up to limit_s): how long stat believed in an absence; seen_after_listing
    moved             stat_still_sees, open_still_works, still_listed (once touched): counts of observers;
                      inode_kept
    read_rename       rounds, refused, stuck, errors, longest_s: renames of a file that a peer had just read
    replaced          errors, target_there: renames over a file that a peer held open
    beats             beats, seen, last_seen, longest_gap_s
    claims            files, doubled, lost, left where they were, won per machine, errors
    handover          moves, overlaps, miscounted
    locks             rounds, overlaps, starved, errors
    same_destination, noreplace, exclusive   rounds, doubled, nobody, errors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spoold.protocol.amount import amount
from spoold.protocol.report import Remark
from spoold.rules.share.remarks import BOTH, LOCK, RENAME, Figures, bad, judged, note, warning

VERY_LATE_S = 1.0
LONG_GAP_S = 3.0
LONG_ABSENT_S = 1.0


def judge_gathering(together: Mapping[str, Figures]) -> list[Remark]:
    """The remarks on the common trials."""
    return judged(together, _JUDGES)


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


def _locks(figures: Figures) -> list[Remark]:
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


_JUDGES: dict[str, Callable[[Figures], list[Remark]]] = {
    "freshness": _freshness,
    "absent": _absent,
    "moved": _moved,
    "read_rename": _read_rename,
    "replaced": _replaced,
    "beats": _beats,
    "claims": _claims,
    "handover": _handover,
    "locks": _locks,
    "same_destination": _informed("same_destination", "a rename of one file to one name; spoold makes none"),
    "noreplace": _informed("noreplace", "one name with RENAME_NOREPLACE; spoold does not use it"),
    "exclusive": _informed("exclusive", "an exclusive creation; spoold does not rely on it"),
}
