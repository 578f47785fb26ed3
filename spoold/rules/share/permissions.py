"""Who can use a spool, by its owner, its group and this node's umask: one sentence with the fix, or none.

Law: these are words for people, and nothing is decided by them. An unknown umask is no finding.
"""

from __future__ import annotations

from spoold.protocol.amount import some

GROUP_WRITES, SETGID = 0o020, 0o2000


def node_remark(
    uid: int,
    owner: int,
    group: str,
    root_mode: int,
    umask: int | None,
    unshared: tuple[str, ...] = (),
    *,
    member: bool,
    primary: bool,
    where: str,
) -> str | None:
    """The remark if this node's user and the others cannot move each other's files; None if they can.

    uid: of the node; owner: of the spool's directory `where`; member: of its group; primary: whether that group is
    the one that the node's files get by themselves; umask: None if unknown; unshared: directories of the spool that
    the group does not share as it shares the root.
    """
    share = f"let the group share the spool (`chmod g+ws {where} {where}/*/`)"
    if root_mode & GROUP_WRITES and root_mode & SETGID:
        if member or uid == owner:
            return _unshared_remark(group, unshared, where) if unshared else None
        said = f"user {uid} is no member of group {group}, which shares this spool: others cannot move its files"
        return f"{said}; add the user to the group, and start the node again"
    if root_mode & GROUP_WRITES:
        if umask is not None and umask & GROUP_WRITES:
            said = f"umask {umask:03o}: files of this node cannot be moved by others of group {group}"
            return f"{said}; start it with umask 002, or {share}"
        if primary:
            return None
        return f"group {group} may write to this spool, but this node's files belong to another group; {share}"
    if uid != owner:
        said = f"this node runs as user {uid}, and user {owner}, who owns the spool, cannot move its files"
        share = f"share the spool by a group (`chgrp -R GROUP {where}; chmod g+ws {where} {where}/*/`)"
        return f"{said}; start it as that user, or {share}"
    return None


def _unshared_remark(group: str, unshared: tuple[str, ...], where: str) -> str:
    said = f"group {group} shares this spool, but not {some([f'{name}/' for name in unshared])}"
    fix = f"the owner runs `chgrp {group} {where}/*/; chmod g+ws {where}/*/`"
    return f"{said}: others cannot move this node's files there; {fix}"


def init_remark(user: str, group: str | None, umask: int | None) -> str:
    """The remark of `spool init` on who can use the new spool. group: the group that shares it, or None."""
    if group is not None:
        return f"members of group {group} can use this spool, with any umask; only they can read results or logs"
    if umask is not None and not umask & GROUP_WRITES:
        said = f"the group of user {user} may write to this spool (umask {umask:03o}), if each node has that umask"
        return f"{said}; `spool init --group GROUP DIR` makes one in which umasks do not matter"
    because = "" if umask is None else f" (umask {umask:03o})"
    return f"only user {user} can use this spool{because}; for several users use `spool init --group GROUP DIR`"
